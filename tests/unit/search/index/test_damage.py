"""Files of an index that were changed from outside: what reads them says so, as an error like any other."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from offbook.search.index.agent_index import AgentIndex
from offbook.search.index.records import IndexDamaged
from offbook.search.index.text import TextIndex
from tests.unit.search.index.sayings import said


class PanicException(BaseException):
    """As tantivy's, which no module has."""


def test_a_panic_is_an_error_that_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = TextIndex(tmp_path, rows=0)

    class Panics:
        def doc_freq(self, *_: object) -> int:
            raise PanicException("assertion failed: end <= orig_range.end")

    monkeypatch.setattr(index, "_searcher", Panics())
    with pytest.raises(IndexDamaged, match="ask again"):
        index.frequencies(["word"])


def test_what_is_no_panic_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = TextIndex(tmp_path, rows=0)

    class Interrupted:
        def doc_freq(self, *_: object) -> int:
            raise KeyboardInterrupt

    monkeypatch.setattr(index, "_searcher", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        index.frequencies(["word"])


def test_numbers_that_lead_nowhere_are_damage(tmp_path: Path) -> None:
    index = AgentIndex(tmp_path, silence=timedelta(hours=1))
    index.take([said(1, "the first"), said(2, "the second")], 2)
    index.rows._next.view()[0] = 7
    with pytest.raises(IndexDamaged, match="made anew"):
        index.rows.next_of(index.rows.next_of(np.array([0]), 100), 100)
    index.close()


def test_what_tantivy_cannot_read_is_damage_and_a_want_of_descriptors_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = TextIndex(tmp_path, rows=0)

    class Fails:
        said = "Data corrupted: 'Failed to open field \"words\"'s positions in the composite file.'"

        def doc_freq(self, *_: object) -> int:
            raise ValueError(self.said)

    monkeypatch.setattr(index, "_searcher", Fails())
    with pytest.raises(IndexDamaged):
        index.frequencies(["word"])
    monkeypatch.setattr(Fails, "said", "An IO error occurred: 'Too many open files (os error 24)'")
    with pytest.raises(ValueError, match="os error 24"):
        index.frequencies(["word"])
