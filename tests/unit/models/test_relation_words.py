"""The first look at a pair. How good it is is measured by `benchmarks/memory`."""

from __future__ import annotations

import pytest

from offbook.models.relation_words import MOST_SHARED, Said, log_odds

LISBON, BERLIN = "I live in Lisbon with my daughter.", "I moved to Berlin and live there now."


def said(text: str, keep: float = 0.6) -> Said:
    return Said(text, keep, is_replacing=True)


def test_what_replaces_is_told_from_what_has_nothing_to_do_with_it() -> None:
    replaces = log_odds(said(LISBON), said(BERLIN), shared=1)
    assert replaces > log_odds(said("How long does cooked rice keep?", 0.0), said(BERLIN), shared=0)
    assert replaces > log_odds(said(LISBON), said("Thanks, that looks good.", 0.0), shared=0)


def test_it_is_the_same_each_time_and_counts_shared_words_up_to_a_few() -> None:
    assert log_odds(said(LISBON), said(BERLIN), 1) == log_odds(said(LISBON), said(BERLIN), 1)
    few, many = (log_odds(said(LISBON), said(BERLIN), shared) for shared in (MOST_SHARED, 100))
    assert few == many


@pytest.mark.parametrize("text", ["", " ", "\ud800", "x" * 100_000, "猫" * 5_000])
def test_whatever_the_texts_there_are_odds(text: str) -> None:
    for earlier, later in ((text, BERLIN), (BERLIN, text), (text, text)):
        assert abs(log_odds(said(earlier), said(later), 0)) < 100
