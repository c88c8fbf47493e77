"""Which stretches were not looked at before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.forget import probes
from offbook.forget.probes import FirstTime, marks_of
from offbook.log.erasure import windows_of

texts = st.lists(st.lists(st.sampled_from(["na", "la", "le", "lo", "记"]), max_size=40), max_size=5)


@given(texts, st.integers(min_value=1, max_value=5))
def test_each_stretch_is_looked_at_once(said: list[list[str]], size: int) -> None:
    first, looked = FirstTime(size), []
    for words in said:
        looked += [tuple(words[at : at + size]) for at in first.look(marks_of(words))]
    assert len(looked) == len(set(looked))
    assert set(looked) == {window for words in said for window in windows_of(" ".join(words), size)}


@given(texts)
def test_what_was_found_is_looked_at_in_each_text(said: list[list[str]]) -> None:
    first, sought = FirstTime(2), ("na", "la")
    for words in said:
        marks = marks_of(words)
        looked = [(at, tuple(words[at : at + 2])) for at in first.look(marks)]
        assert (sought in [window for _, window in looked]) == (sought in set(windows_of(" ".join(words), 2)))
        for at, window in looked:
            if window == sought:
                first.found(marks, at)


def test_what_is_too_much_to_remember_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "MOST_REMEMBERED", 3)
    first = FirstTime(1)
    assert list(first.look(marks_of(["a", "b", "a"]))) == [0, 1]
    assert list(first.look(marks_of(["c", "a", "d"]))) == [0, 2]
    assert list(first.look(marks_of(["c", "a", "d"]))) == [0, 2]
