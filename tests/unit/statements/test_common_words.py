from __future__ import annotations

from benchmarks.memory.fit.common_words import counted

from offbook.statements.common_words import common, is_common


def test_what_ships_is_what_is_counted_in_the_labelled_messages() -> None:
    assert common() == counted(), "run `python -m benchmarks.memory.fit.common_words`"


def test_everyday_words_are_common_and_names_are_not() -> None:
    assert is_common("the")
    assert is_common("I've")
    assert not is_common("Roswitha")
