"""What comes to mind by itself before a turn: the rules of the documents (A2, A3, A5, D6), over recall's ranking.

Ranking is recall's own; these rules say how much of it is shown: what is similar enough, at least two where there
are any, as many as fit; and where nothing qualifies the newest there is, marked as such.
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
FIRST_RANKS, NEARLY = 3, 0.75
"""Of the questions of a LoCoMo conversation 0.67 instead of 0.56 have their evidence come to mind so. Of ten prompts
about nothing in it none brings anything; in a RealMem conversation each brings 0.6 entries instead of 0.2
(development data, one conversation each)."""


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


C = TypeVar("C", bound=Candidate)


def budget_tokens(settings: TokenBudget, *, current_tokens: int, context_window: int | None = None) -> int:
    """A5: a share of what is left of the window, never less than the minimum."""
    window = settings.context_window if context_window is None else context_window
    available = window - current_tokens - settings.safety_margin_tokens
    return max(settings.min_budget_tokens, math.floor(available * settings.budget_share))


def chosen(candidates: Sequence[C], *, budget: int, min_score: float, keep: int, least: int = LEAST_SHOWN) -> list[C]:
    """Those to show. What is not similar enough is shown only to make up the least, and only where something is."""
    qualifies = [_qualifies(one, min_score, rank) for rank, one in enumerate(candidates)]
    similar = [one for one, is_similar in zip(candidates, qualifies, strict=True) if is_similar]
    if not similar:
        return []
    others = [one for one, is_similar in zip(candidates, qualifies, strict=True) if not is_similar]
    wanted = [*similar, *others[: max(0, least - len(similar))]][:keep]
    shown: list[C] = []
    left = budget
    for one in wanted:
        if chunk_tokens(one.chars) <= left:
            shown.append(one)
            left -= chunk_tokens(one.chars)
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
