"""Figures from samples, told so that noise shows instead of hiding."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median


def percentile(samples: Sequence[float], percent: float) -> float:
    """The nearest sample at or above that share of all."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def middle_ratio(above: Sequence[Sequence[float]], below: Sequence[Sequence[float]], percent: float = 50) -> float:
    """The median over rounds of one percentile over another's: what slows a whole round cancels out."""
    return median(
        percentile(one, percent) / percentile(other, percent) for one, other in zip(above, below, strict=True)
    )


def flat(rounds: Sequence[Sequence[float]]) -> list[float]:
    return [sample for samples in rounds for sample in samples]
