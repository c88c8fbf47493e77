"""Which of all an agent's summaries are shown at the start of a context: recent ones fine, older ones coarse. Pure.

Every level has its budget, and what a coarser level leaves flows to the next finer one (C5). All summaries may be
shown, merged ones too (C6): where there is room a summary gives way to those it merges, the newest first, so that
nothing is shown at two levels (C3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from offbook.summaries import Summary

COARSEST = 3
"""Levels above share the budget of this one."""
NAME_TOKENS = 8
"""What the name and the line's end add to a summary."""


def chosen(summaries: Sequence[Summary], budgets: Mapping[int, int], most_tokens: int) -> list[Summary]:
    """Those to be shown: the coarsest level first, oldest first inside a level. `budgets`: tokens by level.

    Of one tree, either a summary or those it merges. The oldest are left out where even the coarsest do not fit.
    """
    known = {one.id: one for one in summaries}
    merged: dict[str, list[Summary]] = {}
    for one in summaries:
        if one.parent in known:
            merged.setdefault(known[one.parent].id, []).append(one)
    room = _Room(budgets, most_tokens)
    shown: list[Summary] = []
    for root in _newest_first([one for one in summaries if one.parent not in known]):
        if room.has({_bucket(root): cost(root)}):
            room.take({_bucket(root): cost(root)})
            shown.append(root)
    return sorted(_refined(shown, merged, room), key=lambda one: (-one.draft.level, one.draft.first_at, one.id))


def cost(summary: Summary) -> int:
    return summary.draft.tokens + NAME_TOKENS


def _refined(shown: Sequence[Summary], merged: Mapping[str, Sequence[Summary]], room: _Room) -> list[Summary]:
    """The newest in as much detail as there is room for."""
    refined: list[Summary] = []
    waiting = _newest_first(shown)
    while waiting:
        one = waiting.pop(0)
        finer = merged.get(one.id, ())
        change = {_bucket(one): -cost(one)}
        for part in finer:
            change[_bucket(part)] = change.get(_bucket(part), 0) + cost(part)
        if len(finer) == len(one.draft.sources) > 0 and room.has(change):
            room.take(change)
            waiting = [*_newest_first(finer), *waiting]
        else:
            refined.append(one)
    return refined


def _newest_first(summaries: Sequence[Summary]) -> list[Summary]:
    return sorted(summaries, key=lambda one: (one.draft.last_at, one.id), reverse=True)


def _bucket(summary: Summary) -> int:
    return min(summary.draft.level, COARSEST)


class _Room:
    """What is left. A level and those above it may take their budgets together: so unused budget flows down."""

    def __init__(self, budgets: Mapping[int, int], most_tokens: int) -> None:
        self._left: dict[int, int] = {}
        together = 0
        for level in range(COARSEST, 0, -1):
            together += budgets.get(level, 0)
            self._left[level] = min(together, most_tokens)

    def has(self, change: Mapping[int, int]) -> bool:
        return all(self._after(level, change) >= 0 for level in self._left)

    def take(self, change: Mapping[int, int]) -> None:
        self._left = {level: self._after(level, change) for level in self._left}

    def _after(self, level: int, change: Mapping[int, int]) -> int:
        return self._left[level] - sum(tokens for one, tokens in change.items() if one >= level)
