"""A sentence that is said again with another value is a correction by its form, in any language."""

from __future__ import annotations

import pytest

from offbook.projections.link_pairs import restated


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Our dog is called Bruno.", "Actually, our dog is called Brutus."),
        ("I live in Gothenburg.", "I moved, I live in Malmö now."),
        ("Der Elternabend ist am Dienstag.", "Korrektur: Der Elternabend ist am Donnerstag, nicht am Dienstag."),
        ("La riunione è di lunedì.", "La riunione è di venerdì, non di lunedì."),
        ("我们的狗叫小黑。", "我们的狗叫小白。"),
    ],
)
def test_another_value_near_the_end_is_a_correction(earlier: str, later: str) -> None:
    assert restated(earlier, later) == "value"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Our dog is called Bruno.", "Our cat is called Mimi."),
        ("My sister's wedding is on the 12th of June.", "My sister's birthday is on the 19th of June."),
        ("The weather of Rome is fine.", "The weather of Oslo is fine."),
        ("Anna lives in Rome with her dog.", "Berta lives in Rome with her dog."),
        ("I like tea.", "I like coffee."),
        ("I live in Berlin.", "I've since moved to Leipzig."),
    ],
    ids=["two values", "another thing", "another subject", "another person", "too short", "other words"],
)
def test_what_is_about_something_else_is_none(earlier: str, later: str) -> None:
    assert restated(earlier, later) == ""


def test_a_number_may_be_the_next_entry_of_a_list() -> None:
    assert restated("We spoke of roof tiles and of item 6881.", "We spoke of roof tiles and of item 2380.") == "number"
