from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from benchmarks.quality.data import APART, Conversation, Question, Session, Turn
from benchmarks.quality.metric import (
    Returned,
    mean,
    recall_at,
    recall_within,
    reciprocal_rank,
    scored,
    turns_of,
)


def answer(*entries: str, chars: int = 100) -> list[Returned]:
    return [Returned(tuple(entry.split("+")), chars) for entry in entries]


@pytest.mark.parametrize(
    ("turns", "evidence", "k", "share"),
    [
        ("abc", "a", 1, 1.0),
        ("abc", "c", 2, 0.0),
        ("abc", "ac", 2, 0.5),
        ("abc", "ac", 3, 1.0),
        ("abc", "axyz", 10, 0.25),
        ("abc", "aa", 1, 1.0),
        ("", "a", 10, 0.0),
    ],
)
def test_recall_is_the_share_of_the_evidence_among_the_first(turns: str, evidence: str, k: int, share: float) -> None:
    assert recall_at(list(turns), list(evidence), k) == share


def test_an_entry_of_several_turns_takes_as_many_places() -> None:
    turns = turns_of(answer("a+b", "c+d", "e"))
    assert turns == ["a", "b", "c", "d", "e"]
    assert recall_at(turns, ["d"], 3) == 0.0
    assert recall_at(turns, ["d"], 4) == 1.0


def test_a_turn_that_comes_again_takes_no_place() -> None:
    assert turns_of(answer("a+b", "b+c")) == ["a", "b", "c"]


@pytest.mark.parametrize(("chars", "share"), [(99, 0.0), (100, 0.5), (199, 0.5), (299, 0.5), (300, 1.0), (4_000, 1.0)])
def test_within_a_budget_only_whole_entries_count(chars: int, share: float) -> None:
    assert recall_within(answer("a", "b", "c"), ["a", "c"], chars) == share


def test_what_does_not_fit_ends_the_answer() -> None:
    entries = [Returned(("a",), 100), Returned(("b",), 5_000), Returned(("c",), 100)]
    assert recall_within(entries, ["c"], 4_000) == 0.0


@pytest.mark.parametrize(("evidence", "rank"), [("a", 1.0), ("b", 0.5), ("cb", 0.5), ("x", 0.0)])
def test_the_reciprocal_rank_is_of_the_first_that_is_evidence(evidence: str, rank: float) -> None:
    assert reciprocal_rank(["a", "b", "c"], list(evidence)) == rank


def test_a_question_is_scored_and_questions_are_averaged() -> None:
    first = scored(answer(*"abcdef"), ["a", "f"], "one", 1.0)
    second = scored([], ["a"], "two", 2.0)
    assert (first.at_5, first.at_10, first.at_30, first.in_budget, first.reciprocal_rank) == (0.5, 1.0, 1.0, 1.0, 1.0)
    both = mean([first, second])
    assert (both.questions, both.at_5, both.at_10, both.reciprocal_rank) == (2, 0.25, 0.5, 0.5)


def test_no_more_than_thirty_turns_count() -> None:
    entries = [Returned((str(number),), 1) for number in range(40)]
    assert scored(entries, ["35"], "", 0.0).reciprocal_rank == 0.0


def test_sessions_of_one_day_keep_their_order_and_questions_come_when_they_may() -> None:
    day = datetime(2026, 1, 1)
    sessions = [Session(str(number), day, [Turn(f"t{number}", "user", "said")]) for number in range(3)]
    questions = [Question(str(seen), "asked", "", ["t0"], seen) for seen in (3, 1, 3)]
    conversation = Conversation("one", sessions, questions)
    began = conversation.began()
    assert began[0] == day.replace(tzinfo=UTC)
    assert [later - earlier for earlier, later in pairwise(began)] == [APART, APART]
    assert timedelta(hours=2) < APART
    assert [(seen, len(asked)) for seen, asked in conversation.questions_by_sight()] == [(1, 1), (3, 2)]
    assert conversation.turns_through(2) == 2
