from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.search.index.records import SMALLEST_CAPACITY, Growing, Records

NUMBERS = np.dtype("<i8")
OPEN_FILES = Path("/proc/self/fd")
PAIRS = np.dtype([("one", "<i4"), ("other", "u1")])
pieces = st.lists(st.integers(min_value=0, max_value=3 * SMALLEST_CAPACITY), max_size=12)


def numbers(first: int, count: int) -> np.ndarray:
    return np.arange(first, first + count, dtype=NUMBERS)


@given(pieces)
def test_what_is_appended_in_whatever_pieces_comes_back(sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "numbers"
        records, growing = Records(path, NUMBERS, 0), Growing(np.empty(0, NUMBERS))
        views = []
        for size in sizes:
            block = numbers(records.count, size)
            records.append(block)
            growing.append(block)
            views.append((records.count, records.view(), growing.view()))
        for count, view, grown in views:
            assert np.array_equal(view, numbers(0, count)), "a view stays as it was taken"
            assert np.array_equal(grown, numbers(0, count))
        records.close()
        again = Records(path, NUMBERS, sum(sizes))
        assert np.array_equal(again.view(), numbers(0, sum(sizes)))
        again.close()


@given(pieces, st.data())
def test_opened_with_fewer_it_forgets_the_rest_and_writes_over_it(sizes: list[int], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "numbers"
        records = Records(path, NUMBERS, 0)
        for size in sizes:
            records.append(numbers(records.count, size))
        records.close()
        kept = data.draw(st.integers(min_value=0, max_value=sum(sizes)))
        again = Records(path, NUMBERS, kept)
        assert np.array_equal(again.view(), numbers(0, kept))
        again.append(np.full(5, -1, NUMBERS))
        assert again.view().tolist() == [*range(kept), *[-1] * 5]
        again.close()


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="only Linux says which files are open")
def test_a_file_that_is_too_short_is_refused_and_let_go(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(b"\0" * 8 * 99)
    open_before = set(OPEN_FILES.iterdir())
    with pytest.raises(ValueError, match="holds 99 records, not 100"):
        Records(path, NUMBERS, 100)
    assert set(OPEN_FILES.iterdir()) == open_before


def test_records_of_several_fields(tmp_path: Path) -> None:
    records = Records(tmp_path / "pairs", PAIRS, 0)
    block = np.zeros(3, PAIRS)
    block["one"], block["other"] = [1, 2, 3], [7, 8, 9]
    records.append(block)
    records.sync()
    assert records.view()["other"].tolist() == [7, 8, 9]
    records.close()


def test_who_reads_goes_on_after_it_was_closed_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    records = Records(path, NUMBERS, 0)
    records.append(numbers(0, 500))
    records.close()
    path.unlink()
    assert np.array_equal(records.view(), numbers(0, 500))
    with pytest.raises(ValueError, match="closed"):
        records.append(numbers(0, 1))
    records.close()


def test_its_room_on_the_disk_is_its_own(tmp_path: Path) -> None:
    """Where a map reaches into a hole and the disk is full, a write ends the process."""
    records = Records(tmp_path / "numbers", NUMBERS, 0)
    records.append(numbers(0, 100_000))
    status = (tmp_path / "numbers").stat()
    assert status.st_blocks * 512 >= status.st_size
    assert status.st_mode & 0o777 == 0o600
    records.close()
