"""The pure steps of ranking: what speaks for each candidate, and which of several alike is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offbook.retrieval.evidence import FEATURES, Evidence
from offbook.retrieval.index.rows import BOILERPLATE, DENIAL, MEMORY_QUESTION, QUESTION, SYSTEM, TOOL
from offbook.retrieval.recipes import Recipe

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Span = tuple[float, float]
"""Microseconds since 1970, from and up to; either may be infinite."""

IN_TIME = 3.0
NEAR_TIME = 1.0
DAY = 86_400_000_000
NEAR_DAYS = 2
"""What happened on a day is often told the day after."""
ECHO = 0.85
WITHOUT_SUBSTANCE = {DENIAL: -8.0, MEMORY_QUESTION: -8.0, BOILERPLATE: -3.0}
"""Enough to stand behind whatever says anything (D7)."""
TOOL_RESULT = -0.5
"""What a tool printed, or the host told the agent, is seldom what is remembered."""
SAME = 0.9
"""Cosine above which two messages say the same, and one is shown (A2)."""
IDENTICAL = 0.995
"""From here on, the same words."""
ABOUT_THE_SAME = 0.8
EQUAL_SCORES = 0.5
"""Scores this close are equals: the newer goes first (D5)."""


def weighed(evidence: Evidence, recipe: Recipe) -> Floats:
    """The recipe's sum."""
    total = np.zeros(len(evidence.rows))
    for name in FEATURES:
        if weight := recipe.weight(name):
            total += weight * evidence.features[name]
    return total


def timely(ts: NDArray[Any], spans: Sequence[tuple[Span, bool]]) -> Floats:
    """For what was said in the time asked about, and a little for what was said just before or soon after."""
    if not spans:
        return np.zeros(len(ts))
    best = np.full(len(ts), 0.0)
    for (start, end), is_exact in spans:
        inside = (ts >= start) & (ts < end)
        # Before the move is before it; but what happened on a day is often told the day after.
        is_closed = np.isfinite(start) and np.isfinite(end)
        near = is_closed & (ts >= start - DAY) & (ts < end + NEAR_DAYS * DAY)
        weight = IN_TIME if is_exact else NEAR_TIME
        best = np.maximum(best, np.where(inside, weight, np.where(near, min(weight, NEAR_TIME), 0.0)))
    return best


def substantial(rows: NDArray[Any]) -> Floats:
    """Denials, questions about memory and greetings stand behind what says something."""
    total = np.where(np.isin(rows["role"], (TOOL, SYSTEM)), TOOL_RESULT, 0.0)
    for flag, penalty in WITHOUT_SUBSTANCE.items():
        total += np.where(rows["flags"] & flag, penalty, 0.0)
    return total


def echoing(rows: NDArray[Any], evidence: Evidence) -> Floats:
    """An earlier question that asks the same resembles the query more than any answer does."""
    is_echo = ((rows["flags"] & QUESTION) > 0) & evidence.has_vector & (evidence.similarity > ECHO)
    return np.where(is_echo, WITHOUT_SUBSTANCE[MEMORY_QUESTION], 0.0)


def newer_first(scores: Floats, ts: NDArray[Any], likeness: NDArray[np.float32]) -> Floats:
    """Of two that are about the same thing and score the same, the newer moves up before the older one."""
    lead = scores[:, None] - scores[None, :]
    is_rival = (likeness >= ABOUT_THE_SAME) & (ts[None, :] > ts[:, None]) & (lead >= 0) & (lead < EQUAL_SCORES)
    moved = scores.copy()
    for older in np.flatnonzero(is_rival.any(axis=1)):
        rivals = np.flatnonzero(is_rival[older])
        for step, rival in enumerate(rivals[np.argsort(ts[rivals], kind="stable")], 1):
            moved[rival] = max(moved[rival], moved[older] + 1e-6 * step)
    return moved


def told_apart(likeness: NDArray[np.float32], numbers: NDArray[Any]) -> NDArray[np.float32]:
    """Two weights of two days are not the same, however alike they sound."""
    return np.where(numbers[:, None] == numbers[None, :], likeness, np.minimum(likeness, SAME))


def once_each(order: Ints, likeness: NDArray[np.float32], rows: NDArray[Any]) -> tuple[Ints, dict[int, int]]:
    """Without those that say the same as a better one; and for each left out, the one that stands for it.

    Of two that are almost word for word the same, of the same side, the newer stands for both: what differs may be a
    correction that no rule has noticed.
    """
    has_twin = ((likeness > SAME).sum(axis=1) > 1).tolist()
    kept: list[int] = []
    stands_for: dict[int, int] = {}
    for at in order.tolist():
        twins = [one for one in kept if likeness[one, at] > SAME] if has_twin[at] else []
        if not twins:
            kept.append(at)
        elif all(likeness[one, at] < IDENTICAL and _restates(rows[at], rows[one]) for one in twins):
            kept[kept.index(twins[0])] = at
            kept = [one for one in kept if one not in twins]
            stands_for = {one: at if other in twins else other for one, other in stands_for.items()}
            stands_for |= dict.fromkeys(twins, at)
        else:
            stands_for[at] = twins[0]
    return np.array(kept, np.int64), stands_for


def _restates(new: Any, old: Any) -> bool:
    return bool(new["role"] == old["role"] and new["ts"] > old["ts"])
