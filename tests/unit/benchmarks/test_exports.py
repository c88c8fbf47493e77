from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.exports import LOG, Kind, compared, format_difference


def export(folder: Path, *records: tuple[str, int]) -> Path:
    agent = folder / "agents" / "main"
    agent.mkdir(parents=True)
    (agent / "memory.jsonl").write_text("".join(json.dumps({"type": kind, "n": n}) + "\n" for kind, n in records))
    return folder


RECORDS = [("session", 1), ("message", 1), ("message", 2), ("mark", 1), ("summary", 1)]


def test_the_same_bytes_are_the_same(tmp_path: Path) -> None:
    same = compared("twice", 2, export(tmp_path / "one", *RECORDS), export(tmp_path / "other", *RECORDS))
    assert same.is_same
    assert same.has_same_log
    assert format_difference(same) == "the same, 5 records"


@pytest.mark.parametrize("changed", range(len(RECORDS)))
def test_what_differs_is_told_by_its_kind(tmp_path: Path, changed: int) -> None:
    kind = RECORDS[changed][0]
    others = [(kind, 9) if at == changed else record for at, record in enumerate(RECORDS)]
    same = compared("changed", 2, export(tmp_path / "one", *RECORDS), export(tmp_path / "other", *others))
    count = sum(record[0] == kind for record in RECORDS)
    assert not same.is_same
    assert same.kinds[kind] == Kind(count, count, count - 1)
    assert same.has_same_log == (kind not in LOG)
    assert format_difference(same) == f"differ: 1 of {count} {kind}s"


def test_another_order_is_not_the_same_bytes_though_all_records_are_there(tmp_path: Path) -> None:
    same = compared("turned", 2, export(tmp_path / "one", *RECORDS), export(tmp_path / "other", *RECORDS[::-1]))
    assert not same.is_same
    assert format_difference(same) == "in another order, 5 records"
