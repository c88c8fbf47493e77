"""A sentence that is said again with another value is a correction by its form, in any language."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from offbook.models import relation_gate
from offbook.projections.link_pairs import Spoken, pairs_worth_judging, read_as, restated

DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)


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


def spoken(text: str, place: int, role: str = "user") -> Spoken:
    return Spoken(place, DAY + place * timedelta(hours=1), role, None, read_as(text, is_user=role == "user"))


def worth(text: str, *others: tuple[str, float | None]) -> list[str]:
    """What of the others is compared with it."""
    earlier = [(spoken(other, place), gate) for place, (other, gate) in enumerate(others)]
    return [pair.first for pair in pairs_worth_judging(spoken(text, len(others)), earlier)]


PORT, MOVED = "The gateway listens on port 8443.", "Since the move the gateway answers on port 9443 only."


def test_what_the_gate_lets_through_is_compared_and_at_most_three() -> None:
    others = [
        (f"The {name} listens on port 8443.", 1.0 + at) for at, name in enumerate(("proxy", "mail", "cache", "api"))
    ]
    assert worth(MOVED, (PORT, 0.0)) == [PORT]
    assert worth(MOVED, (PORT, relation_gate.LEAST - 1)) == []
    assert worth(MOVED, *others) == [text for text, _ in reversed(others[1:])]


def test_without_vectors_they_must_share_a_telling_word_or_follow_each_other() -> None:
    assert worth(MOVED, (PORT, None)) == [PORT]
    assert worth("I live in Leipzig now.", (PORT, None)) == []
    assert worth("It is 9443 now.", (PORT, relation_gate.LEAST)) == [PORT]


def test_a_question_may_be_replaced_only_where_they_share_a_telling_word() -> None:
    question = "Why does curl say that port 8443 of the gateway refuses?"
    assert worth(MOVED, (question, 0.0)) == [question]
    assert worth("I live in Leipzig now.", (question, 0.0)) == []


def test_one_more_entry_of_a_log_replaces_nothing() -> None:
    days = [(f"Day {day}: {day * 7} miles under sail.", 5.0) for day in range(1, 4)]
    assert worth("Day 4: 28 miles under sail.", *days) == []
    assert worth("The budget is 6000 euros.", ("The budget is 5000 euros.", 5.0)) == ["The budget is 5000 euros."]
