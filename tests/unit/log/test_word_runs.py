"""Known stretches of words, found in texts as they would be by reading every word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.forget.probes import Prober, candidates
from offbook.log import erasure
from offbook.log.erasure import FEW, Window, WordRuns, folded, windows_of

PROBER = Prober(b"k" * 32)
SENTENCE = "the vault code of the house by the harbour is seven four nine"

words = st.text("abAB äÄ记ｆＦß\u0345", min_size=1, max_size=3).map(lambda word: word.replace(" ", "") or "a")
texts = st.lists(words, max_size=30).map(" ".join)


def read(windows: set[Window], text: str) -> set[Window]:
    """Word by word."""
    return {window for size in {len(each) for each in windows} for window in windows_of(text, size)} & windows


@given(texts, texts, st.booleans())
def test_they_are_found_as_by_reading_every_word(said: str, text: str, are_few: bool) -> None:
    windows = {window for size in (1, 2, 3, 5) for window in windows_of(said, size)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(erasure, "FEW", len(windows) if are_few else 0)
        known = WordRuns(windows)
    assert known.found_in(said) == windows
    assert known.found_in(text) == read(windows, text)
    assert known.found_in(f"{text} {said}") == read(windows, f"{text} {said}")


def test_a_text_without_their_words_is_not_read_word_by_word(monkeypatch: pytest.MonkeyPatch) -> None:
    few = WordRuns(windows_of(SENTENCE))
    many = WordRuns(windows_of(" ".join(f"word{number}" for number in range(2 * FEW))))
    monkeypatch.setattr(erasure, "WORD", None)
    assert few.found_in("the house by the river " * 100) == set()
    with pytest.raises(AttributeError):
        few.found_in(SENTENCE)
    with pytest.raises(AttributeError):
        many.found_in("nothing of it")
    assert WordRuns([]).found_in("anything") == set()


@given(texts, texts)
def test_probes_whose_words_are_known_are_heard_as_by_their_digests(said: str, text: str) -> None:
    windows = sorted(candidates([said, SENTENCE]))
    probes = PROBER.probes(windows)
    for heard in (text, said, f"{text} {SENTENCE}"):
        expected = PROBER.hearer(probes)(heard)
        # Also where the words of some only are known, or of others than are sought.
        for known in (windows, windows[::2], [*windows, ("quite", "another")]):
            assert PROBER.hearer(probes, known)(heard) == expected
            assert PROBER.finder(probes, known)(heard) == bool(expected)
    assert not PROBER.finder([], windows)(SENTENCE)


@pytest.mark.parametrize("text", ["a \t b\n\nc", " \x1ca\x1f\u00a0b\u2028\u3000", "", "\x85", "Ｚürich  ﬁne"])
def test_every_kind_of_blank_is_one(text: str) -> None:
    assert folded(text) == " ".join(folded(text).split())
    assert not any(letter.isspace() and letter != " " for letter in folded(text))
