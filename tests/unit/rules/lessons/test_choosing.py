from __future__ import annotations

from typing import Any

from offbook.model.lesson import Lesson
from offbook.model.settings.sections import Lessons
from offbook.rules.lessons.fold import chosen_lessons
from tests.unit.rules.lessons.lessons import DAY, NOON


def lesson(number: int, **fields: Any) -> Lesson:
    given = {
        "id": f"lesson-{number:04d}",
        "agent_id": "main",
        "kind": "preference",
        "text": f"Number {number}.",
        "status": "learnt",
        "confidence": 0.8,
        "first_seen": NOON,
        "last_seen": NOON + number * DAY,
        "times": 1,
        "sources": [],
        "learnt_by": "rules",
        "key": f"key {number}",
        **fields,
    }
    return Lesson(**given)


def chosen(*lessons: Lesson, **fields: Any) -> list[int]:
    return [int(one.id[-4:]) for one in chosen_lessons(lessons, Lessons(**fields), NOON + 30 * DAY)]


def test_what_a_person_judged_comes_first_then_the_newest() -> None:
    assert chosen(lesson(1, status="accepted", confidence=0.1), lesson(3), lesson(4), lesson(2, status="edited")) == [
        2,
        1,
        4,
        3,
    ]


def test_rejected_replaced_and_unsure_ones_never_come() -> None:
    assert chosen(lesson(1, status="rejected"), lesson(2, replaced_by="lesson-0003"), lesson(3, confidence=0.5)) == []
    assert chosen(lesson(3, confidence=0.5), min_confidence=0.4) == [3]


def test_one_that_is_spoken_against_is_less_sure() -> None:
    old, new = lesson(1, key="user|live = lisbon"), lesson(2, key="user|live = chiado")
    assert chosen(old, new) == [2]
    assert chosen(old) == [1]


def test_so_many_and_no_more() -> None:
    many = [lesson(number) for number in range(1, 20)]
    assert chosen(*many) == list(range(19, 7, -1))
    assert chosen(*many, max_injected=0) == []
    assert chosen(*many, enabled=False) == []
