"""What comes to mind by itself before a turn: how much of recall's ranking is shown, within a budget (A5).

Whatever is likely enough to matter (`probable`), the likeliest first. The documents' own rule (`chosen`: A2, D6), which
`search.qualifies` restores, goes by the cosine: what is similar enough, at least two where there are any. And the
newest there is (`fallback`: A3), marked as such, where a conversation is picked up and nothing else came to mind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, TypeVar

from offbook.model.settings.sections import TokenBudget
from offbook.models.tokens import chunk_tokens

LEAST_SHOWN = 2
FALLBACK_ENTRIES = 2
FALLBACK_CHARS = 20
FALLBACK_SCORE = -1.0
WINDOW_PARTS, LEAST_RECALL = 12, 500
"""A twelfth of the window is the most that recall takes of it; a window in which that is less is none."""
FIRST_RANKS, NEARLY = 3, 0.75
"""Of the questions of a LoCoMo conversation 0.67 instead of 0.56 have their evidence come to mind so. Of ten prompts
about nothing in it none brings anything; in a RealMem conversation each brings 0.6 entries instead of 0.2
(development data, one conversation each)."""


FURTHER, FURTHER_CHARS = 0.4, 2_400
"""Of the probability that is needed, where something else has it; and how much is shown in all before nothing less
likely is added."""


class Candidate(Protocol):
    """Something that might be shown, in the order of recall's ranking."""

    @property
    def chars(self) -> int:
        """Only asked of what there may be room for: it may take a while to say."""

    @property
    def similarity(self) -> float | None:
        """Cosine; None where there is no vector."""

    @property
    def is_by_text(self) -> bool: ...

    @property
    def probability(self) -> float:
        """That it matters here. It may take a while to say."""

    @property
    def most_probability(self) -> float:
        """What that cannot exceed."""


C = TypeVar("C", bound=Candidate)


def budget_tokens(settings: TokenBudget, *, current_tokens: int, context_window: int | None = None) -> int:
    """A5: a share of what is left of the window, never less than the minimum."""
    window = settings.context_window if context_window is None else context_window
    available = window - current_tokens - settings.safety_margin_tokens
    return max(settings.min_budget_tokens, math.floor(available * settings.budget_share))


def recall_limit(budget: int, context_window: int) -> int:
    """Of the budget: its least would be much of a small window, which has to hold the turn, too."""
    return min(budget, max(LEAST_RECALL, context_window // WINDOW_PARTS))


def probable(candidates: Sequence[C], *, budget: int, least_probability: float, keep: int) -> list[C]:
    """Those that are likely enough to matter, the likeliest first, as many as fit and are to be kept. Where there are
    any, those that are less likely come with them, as far as these take little room: alone they would not come."""
    likely = _likely(candidates, least_probability)
    if not likely:
        return []
    shown = _fitting(likely[:keep], budget)
    told = sum(chunk_tokens(one.chars) for one in shown)
    further = [one for one in _likely(candidates, FURTHER * least_probability) if one not in likely]
    return [*shown, *_fitting(further[: keep - len(shown)], min(budget, chunk_tokens(FURTHER_CHARS)) - told)]


def _likely(candidates: Sequence[C], least: float) -> list[C]:
    possible = [one for one in candidates if one.most_probability >= least]
    return sorted((one for one in possible if one.probability >= least), key=lambda one: -one.probability)


def chosen(candidates: Sequence[C], *, budget: int, min_score: float, keep: int, least: int = LEAST_SHOWN) -> list[C]:
    """Those to show. What is not similar enough is shown only to make up the least, and only where something is."""
    qualifies = [_qualifies(one, min_score, rank) for rank, one in enumerate(candidates)]
    similar = [one for one, is_similar in zip(candidates, qualifies, strict=True) if is_similar]
    if not similar:
        return []
    others = [one for one, is_similar in zip(candidates, qualifies, strict=True) if not is_similar]
    return _fitting([*similar, *others[: max(0, least - len(similar))]][:keep], budget)


def _fitting(wanted: Sequence[C], budget: int) -> list[C]:
    shown: list[C] = []
    for one in wanted:
        cost = chunk_tokens(one.chars)
        if cost <= budget:
            shown.append(one)
            budget -= cost
    return shown


def fallback(newest_first: Sequence[C], *, budget: int) -> list[C]:
    """A3: the last one or two that say anything, where nothing else qualified."""
    shown: list[C] = []
    left = budget
    for one in newest_first:
        if len(shown) == FALLBACK_ENTRIES:
            break
        if one.chars >= FALLBACK_CHARS and chunk_tokens(one.chars) <= left:
            shown.append(one)
            left -= chunk_tokens(one.chars)
    return shown


def _qualifies(one: Candidate, min_score: float, rank: int) -> bool:
    """Without a vector there is no cosine to compare: sharing words has to do (A17). What ranks first and shares words
    may be a little less similar."""
    if one.similarity is None:
        return one.is_by_text
    is_near = rank < FIRST_RANKS and one.is_by_text and one.similarity >= NEARLY * min_score
    return one.similarity >= min_score or is_near
