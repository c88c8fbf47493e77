"""From our estimate to the count of the model's provider: `reported = overhead + ratio × estimate`, corrected by every
usage that is reported. Pure. The plugin has the same in TypeScript (`calibration.ts`); a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

POINTS_KEPT = 8
LEAST_RATIO, MOST_RATIO = 0.6, 2.0
TRUSTED_TOKENS, TRUSTED_SHARE = 500, 0.1
"""Until the points lie further apart than this, the ratio stays near 1: what a turn adds beside its messages varies."""


class UsagePoint(NamedTuple):
    """A prompt: what we estimated of its messages, and what the model's provider counted in all."""

    estimate: float
    reported: float


class Fit(NamedTuple):
    overhead: float
    """Tokens beside the messages: instructions, tools."""
    ratio: float
    """Tokens of the provider's for each that we estimate."""


def with_point(points: Sequence[UsagePoint], point: UsagePoint) -> tuple[UsagePoint, ...]:
    """With a new point. Where there are too many, of the two that tell most nearly the same the older goes."""
    kept = (*points, point)
    if len(kept) <= POINTS_KEPT:
        return kept
    pairs = combinations(range(len(kept)), 2)
    # Of equals the newest: the first ones are furthest apart.
    older, _ = min(pairs, key=lambda pair: (abs(kept[pair[0]].estimate - kept[pair[1]].estimate), -pair[0]))
    return kept[:older] + kept[older + 1 :]


def fitted(points: Sequence[UsagePoint], instructions: float = 0.0) -> Fit:
    """Least squares, held towards a ratio of 1. `instructions`: what we estimate of them, until a count is reported."""
    if not points:
        return Fit(instructions, 1.0)
    mean_x = sum(point.estimate for point in points) / len(points)
    mean_y = sum(point.reported for point in points) / len(points)
    held = TRUSTED_TOKENS**2 + (TRUSTED_SHARE * max(point.estimate for point in points)) ** 2

    def slope(x: float, y: float) -> float:
        together = sum((point.estimate - x) * (point.reported - y) for point in points)
        spread = sum((point.estimate - x) ** 2 for point in points)
        return min(MOST_RATIO, max(LEAST_RATIO, (together + held) / (spread + held)))

    ratio = slope(mean_x, mean_y)
    overhead = mean_y - ratio * mean_x
    return Fit(overhead, ratio) if overhead >= 0 else Fit(0.0, slope(0.0, 0.0))
