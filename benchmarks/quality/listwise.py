"""A linear ranking fitted by a listwise loss: each piece of evidence against all that is none. numpy only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Objective = Callable[[Floats], tuple[float, Floats]]

MOST_STEPS, REMEMBERED = 200, 10
ENOUGH = 1e-6
"""Of the loss: below that a step has gained nothing."""


class Lists:
    """Candidates of several questions, one under the other."""

    def __init__(
        self,
        tables: Sequence[Floats],
        offsets: Sequence[Floats],
        is_evidence: Sequence[NDArray[np.bool_]],
        weights: Sequence[float],
    ) -> None:
        counts = np.array([len(table) for table in tables])
        self._table = np.concatenate(tables)
        self._offset = np.concatenate(offsets)
        self._is_evidence = np.concatenate(is_evidence)
        self._starts = np.cumsum(counts) - counts
        self._list = np.repeat(np.arange(len(counts)), counts)
        each = np.array(weights) / sum(weights) / np.add.reduceat(self._is_evidence, self._starts, dtype=np.float64)
        self._weight = each[self._list]
        self.scale: Floats = self._table.std(axis=0) + 1e-6
        self._table /= self.scale

    def loss(self, weights: Floats) -> tuple[float, Floats]:
        """Mean of −log of the share that each piece of evidence has beside all that is none; and its slope."""
        scores = self._table @ weights + self._offset
        scores -= np.maximum.reduceat(scores, self._starts)[self._list]
        power = np.exp(scores)
        others = np.add.reduceat(np.where(self._is_evidence, 0.0, power), self._starts)[self._list]
        beside = others + power
        loss = float((self._weight * (np.log(beside) - scores))[self._is_evidence].sum())
        pull = np.add.reduceat(np.where(self._is_evidence, self._weight / beside, 0.0), self._starts)[self._list]
        slope = np.where(self._is_evidence, self._weight * (power / beside - 1), power * pull)
        return loss, slope @ self._table


def fitted(lists: Lists, start: Floats, ridge: float) -> Floats:
    """The weights that lose least, held to `start` by the ridge."""
    origin = start * lists.scale

    def objective(weights: Floats) -> tuple[float, Floats]:
        loss, slope = lists.loss(weights)
        moved = weights - origin
        return loss + ridge * float(moved @ moved) / 2, slope + ridge * moved

    found: Floats = minimised(objective, origin) / lists.scale
    return found


def minimised(objective: Objective, start: Floats) -> Floats:
    """By L-BFGS with halved steps."""
    at, (value, slope) = start.copy(), objective(start)
    moves: list[tuple[Floats, Floats]] = []
    for _ in range(MOST_STEPS):
        step = -_direction(slope, moves)
        size = 1.0
        while True:
            nearer = at + size * step
            lower, next_slope = objective(nearer)
            if lower <= value + 1e-4 * size * float(slope @ step) or size < 1e-6:
                break
            size /= 2
        move, change = nearer - at, next_slope - slope
        if move @ change > 1e-12:
            moves = [*moves, (move, change)][-REMEMBERED:]
        gained = value - lower
        at, value, slope = nearer, lower, next_slope
        if gained < ENOUGH * max(1.0, abs(value)):
            break
    return at


def _direction(slope: Floats, moves: Sequence[tuple[Floats, Floats]]) -> Floats:
    direction = slope.copy()
    taken: list[float] = []
    for move, change in reversed(moves):
        share = float(move @ direction / (move @ change))
        taken.append(share)
        direction -= share * change
    if moves:
        move, change = moves[-1]
        direction *= (move @ change) / (change @ change)
    else:
        direction /= max(float(np.linalg.norm(slope)), 1e-12)
    for (move, change), share in zip(moves, reversed(taken), strict=True):
        direction += move * (share - float(change @ direction) / float(move @ change))
    return direction
