from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from offbook.model.memory_entry import StoredVector
from offbook.search.index.agent_index import CHECKPOINT, FORMAT, AgentIndex
from offbook.search.index.rows import Rows
from offbook.search.index.vectors import quantised
from tests.unit.search.index.sayings import said

SILENCE = timedelta(hours=2)
MODEL = "a/model:1"
OPEN_FILES = Path("/proc/self/fd")


def open_index(folder: Path) -> AgentIndex:
    return AgentIndex(folder, silence=SILENCE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "agent"


@pytest.fixture
def index(folder: Path) -> Iterator[AgentIndex]:
    opened = open_index(folder)
    yield opened
    opened.close()


def take(index: AgentIndex, first: int, last: int) -> None:
    """One message an event, at the place of the same number."""
    index.take([said(place, f"cat number{place}", speaker="Ada") for place in range(first, last + 1)], last)


def vector(number: int, place: int, part: int = 0, dimensions: int = 8) -> StoredVector:
    made = np.random.default_rng(number).normal(size=(1, dimensions)).astype(np.float32)
    return StoredVector(number=number, place=place, part=part, data=quantised(made)[0].tobytes())


def places(index: AgentIndex) -> list[int]:
    return index.rows.view()["place"].tolist()


def found(index: AgentIndex, word: str = "cat") -> list[int]:
    return sorted(index.text.search([word], 1_000).tolist())


def vectors_of(index: AgentIndex) -> tuple[int, int, int]:
    vectors = index.vectors(MODEL)
    return (vectors.count, vectors.embedded, index.vectors_through(MODEL)) if vectors else (0, 0, 0)


def test_what_was_committed_is_there_again(index: AgentIndex, folder: Path) -> None:
    take(index, 1, 30)
    index.take_vectors(MODEL, 8, [vector(1, 3), vector(2, 3, 1), vector(3, 7)])
    index.commit("hash 30")
    assert not index.is_dirty
    index.close()
    again = open_index(folder)
    assert (again.through_event, again.checkpointed_event, again.through_hash) == (30, 30, "hash 30")
    assert places(again) == list(range(1, 31))
    assert found(again) == list(range(30))
    assert again.rows.speakers == ["Ada"]
    assert vectors_of(again) == (3, 2, 3)
    again.close()


def test_what_was_not_committed_is_gone_and_can_be_taken_again(index: AgentIndex, folder: Path) -> None:
    take(index, 1, 10)
    index.take_vectors(MODEL, 8, [vector(1, 1)])
    index.commit("hash 10")
    take(index, 11, 300)
    index.take_vectors(MODEL, 8, [vector(2, 11)])
    assert index.is_dirty
    index.close()
    again = open_index(folder)
    assert (again.through_event, again.rows.count) == (10, 10)
    assert vectors_of(again) == (1, 1, 1)
    take(again, 11, 300)
    again.take_vectors(MODEL, 8, [vector(2, 11)])
    again.commit("hash 300")
    assert found(again) == list(range(300))
    assert vectors_of(again) == (2, 2, 2)
    again.close()


def test_events_without_messages_count_too(index: AgentIndex, folder: Path) -> None:
    take(index, 1, 3)
    index.take((), 9)
    index.commit("hash 9")
    index.close()
    again = open_index(folder)
    assert (again.through_event, again.rows.count) == (9, 3)
    again.close()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 4])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no checkpoint": lambda folder: (folder / CHECKPOINT).unlink(),
    "half a checkpoint": lambda folder: cut(folder / CHECKPOINT),
    "a checkpoint of another shape": lambda folder: (folder / CHECKPOINT).write_text('{"rows": "many"}'),
    "another format": lambda folder: (folder / CHECKPOINT).write_text(
        (folder / CHECKPOINT).read_text().replace(f'"format":{FORMAT}', f'"format":{FORMAT + 1}')
    ),
    "no rows": lambda folder: (folder / "rows").unlink(),
    "too few rows": lambda folder: cut(folder / "rows"),
    "too few words": lambda folder: cut(folder / "words"),
    "no text": lambda folder: shutil.rmtree(folder / "text"),
    "another text": lambda folder: (folder / "text" / "meta.json").write_text("{}"),
    "no vectors": lambda folder: shutil.rmtree(folder / "vectors"),
    "a folder in the place of a file": lambda folder: ((folder / "rows").unlink(), (folder / "rows").mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_one_begins_anew_and_follows_again(index: AgentIndex, folder: Path, damage: str) -> None:
    take(index, 1, 200)
    index.take_vectors(MODEL, 8, [vector(place, place) for place in range(1, 201)])
    index.commit("hash 200")
    index.close()
    DAMAGES[damage](folder)
    again = open_index(folder)
    assert (again.through_event, again.through_hash, again.rows.count) == (0, "", 0)
    assert vectors_of(again) == (0, 0, 0)
    take(again, 1, 200)
    again.commit("hash 200")
    again.close()
    once_more = open_index(folder)
    assert found(once_more) == list(range(200))
    once_more.close()


def test_vectors_are_taken_for_messages_that_have_a_row(index: AgentIndex) -> None:
    take(index, 1, 3)
    unsound = StoredVector(number=2, place=2, part=0, data=b"short")
    index.take_vectors(MODEL, 8, [vector(1, 1), unsound, vector(3, 99), vector(4, 3)])
    assert vectors_of(index) == (2, 2, 4)
    index.take_vectors(MODEL, 8, [])
    assert vectors_of(index) == (2, 2, 4)


def test_vectors_are_dropped_for_good_and_another_models_stay(index: AgentIndex, folder: Path) -> None:
    take(index, 1, 5)
    index.take_vectors(MODEL, 8, [vector(1, 1)])
    index.take_vectors("another", 16, [vector(1, 2, dimensions=16)])
    index.commit("hash 5")
    take(index, 6, 8)
    index.drop_vectors(MODEL)
    index.drop_vectors("unheard-of")
    assert index.vectors(MODEL) is None
    index.close()
    again = open_index(folder)
    assert (again.through_event, again.through_hash) == (5, "hash 5"), "a hash belongs to its event"
    assert vectors_of(again) == (0, 0, 0)
    other = again.vectors("another")
    assert other is not None
    assert other.count == 1
    assert len(list((folder / "vectors").iterdir())) == 1
    again.close()


def test_who_reads_goes_on_while_it_is_discarded(index: AgentIndex, folder: Path) -> None:
    take(index, 1, 500)
    index.take_vectors(MODEL, 8, [vector(place, place) for place in range(1, 501)])
    index.commit("hash 500")
    vectors = index.vectors(MODEL)
    assert vectors is not None
    index.discard()
    assert not folder.exists()
    anew = open_index(folder)
    assert found(index) == list(range(500))
    assert places(index) == list(range(1, 501))
    assert len(vectors.nearest(np.ones(8, np.float32), 10)[0]) == 10
    assert anew.rows.count == 0
    anew.close()


def test_who_reads_while_it_grows_finds_nothing_torn(index: AgentIndex) -> None:
    """One thread takes, others read: whatever row they see has its words, its neighbours and whole vectors."""
    trouble: list[BaseException] = []
    is_over = threading.Event()

    def look() -> None:
        rows = index.rows
        count = rows.count
        some = np.arange(max(0, count - 300), count)
        if count:
            view = rows.view()
            rows.next_of(some, count)
            rows.episode_rows(np.unique(view["episode"][some]).astype(np.int64), count)
            assert (view["words_at"][some] + view["words"][some]).max() <= rows.word_count
            assert (rows.find(view["place"][some].tolist()) == some).all()
        vectors = index.vectors(MODEL)
        if vectors is not None:
            found = vectors.passages_of(some)
            assert (found.counts > 0).all()
            found.similarity(np.ones(8, np.float32))

    def read() -> None:
        try:
            while not is_over.is_set():
                look()
        except BaseException as error:
            trouble.append(error)
            raise

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for first in range(1, 4_000, 40):
        take(index, first, first + 39)
        parts = [(place, part) for place in range(first, first + 40, 2) for part in range(2)]
        index.take_vectors(MODEL, 8, [vector(2 * place + part, place, part) for place, part in parts])
    is_over.set()
    for reader in readers:
        reader.join()
    assert trouble == []


def test_models_whose_names_differ_have_folders_of_their_own(index: AgentIndex) -> None:
    take(index, 1, 2)
    for number, model in enumerate(["a/b", "a-b", "a" * 90 + "1", "a" * 90 + "2"], 1):
        index.take_vectors(model, 8, [vector(number, 1)] * number)
    folders = list((index.folder / "vectors").iterdir())
    assert len(folders) == 4


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("module", ["rows", "text", "vectors"])
def test_what_cannot_be_opened_now_is_not_thrown_away(
    index: AgentIndex, folder: Path, monkeypatch: pytest.MonkeyPatch, number: int, module: str
) -> None:
    take(index, 1, 50)
    index.take_vectors(MODEL, 8, [vector(place, place) for place in range(1, 51)])
    index.commit("hash 50")
    index.close()
    error: Exception = OSError(number, os.strerror(number))
    if module == "text":  # as tantivy says it
        error = ValueError(
            f"Failed to open file for read: 'IoError {{ io_error: Os {{ code: {number}, kind: Other }} }}'"
        )

    def refuse(*args: object, **kwargs: object) -> None:
        raise error

    names = {"rows": "Rows", "text": "TextIndex", "vectors": "VectorIndex"}
    with monkeypatch.context() as patch:
        patch.setattr(f"offbook.search.index.agent_index.{names[module]}", refuse)
        with pytest.raises(type(error)):
            open_index(folder)
    again = open_index(folder)
    assert (again.rows.count, again.through_event, vectors_of(again)) == (50, 50, (50, 50, 50))
    again.close()


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="only Linux tells")
def test_what_cannot_be_opened_leaves_no_file_open(index: AgentIndex, folder: Path) -> None:
    take(index, 1, 50)
    index.commit("hash 50")
    index.close()
    (folder / "words").unlink()
    (folder / "words").mkdir()
    before = len(list(OPEN_FILES.iterdir()))
    for _ in range(5):
        with pytest.raises(IsADirectoryError):
            Rows(folder, rows=50, words=0, speakers=[], silence=SILENCE)
    assert len(list(OPEN_FILES.iterdir())) < before + 5  # others in this process come and go
