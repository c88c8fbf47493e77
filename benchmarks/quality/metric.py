"""The metric of `shared/data`: which share of a question's evidence is among what was returned."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from benchmarks.samples import percentile

BUDGET_CHARS = 4_000
MOST = 30


class Returned(NamedTuple):
    """One entry of an answer: the turns it spans, and how many characters of it are shown."""

    turns: tuple[str, ...]
    chars: int


class Score(NamedTuple):
    """Of one question."""

    category: str
    at_5: float
    at_10: float
    at_30: float
    in_budget: float
    reciprocal_rank: float
    milliseconds: float


class Mean(NamedTuple):
    """Of several."""

    questions: int
    at_5: float
    at_10: float
    at_30: float
    in_budget: float
    reciprocal_rank: float


def turns_of(answer: Iterable[Returned]) -> list[str]:
    """In order; an entry that spans several turns takes as many of the places, a turn that comes again none."""
    return list(dict.fromkeys(turn for entry in answer for turn in entry.turns))


def recall_at(turns: Sequence[str], evidence: Collection[str], k: int) -> float:
    """The share of the evidence among the first k turns."""
    wanted = set(evidence)
    return len(wanted.intersection(turns[:k])) / len(wanted)


def recall_within(answer: Iterable[Returned], evidence: Collection[str], chars: int) -> float:
    """The share of the evidence among the entries that fit, taken from the first on until one does not."""
    taken: list[str] = []
    for entry in answer:
        chars -= entry.chars
        if chars < 0:
            break
        taken += entry.turns
    return recall_at(taken, evidence, len(taken))


def reciprocal_rank(turns: Sequence[str], evidence: Collection[str]) -> float:
    """One over the place of the first turn that is evidence; 0 where none is."""
    return next((1 / place for place, turn in enumerate(turns, 1) if turn in evidence), 0.0)


def scored(answer: Sequence[Returned], evidence: Collection[str], category: str, milliseconds: float) -> Score:
    turns = turns_of(answer)[:MOST]
    return Score(
        category=category,
        at_5=recall_at(turns, evidence, 5),
        at_10=recall_at(turns, evidence, 10),
        at_30=recall_at(turns, evidence, 30),
        in_budget=recall_within(answer, evidence, BUDGET_CHARS),
        reciprocal_rank=reciprocal_rank(turns, evidence),
        milliseconds=milliseconds,
    )


def mean(scores: Sequence[Score]) -> Mean:
    return Mean(
        questions=len(scores),
        at_5=fmean(score.at_5 for score in scores),
        at_10=fmean(score.at_10 for score in scores),
        at_30=fmean(score.at_30 for score in scores),
        in_budget=fmean(score.in_budget for score in scores),
        reciprocal_rank=fmean(score.reciprocal_rank for score in scores),
    )


def milliseconds(scores: Sequence[Score], percent: float) -> float:
    return percentile([score.milliseconds for score in scores], percent)
