from __future__ import annotations

import pytest

from offbook.models.calibration import Fit, UsagePoint, fitted, with_point


def points(turns: int, tokens: int, ratio: float, overhead: int, aside: int = 0) -> tuple[UsagePoint, ...]:
    """What turns of so many estimated tokens report, where `ratio` of them are counted beside `overhead`."""
    kept: tuple[UsagePoint, ...] = ()
    for turn in range(1, turns + 1):
        reported = overhead + ratio * turn * tokens + turn % 3 * aside
        kept = with_point(kept, UsagePoint(turn * tokens, reported))
    return kept


@pytest.mark.parametrize("tokens", [700, 1_500, 4_000])
@pytest.mark.parametrize("ratio", [1 / 0.83, 1 / 0.76, 1 / 0.73, 1 / 0.62])  # German, Dutch, Italian, base64
def test_a_language_that_is_estimated_too_low_is_within_a_tenth_after_three_turns(ratio: float, tokens: int) -> None:
    fit = fitted(points(3, tokens, ratio, 10_000))
    assert fit.ratio == pytest.approx(ratio, rel=0.1)
    assert fit.overhead + fit.ratio * tokens * 4 == pytest.approx(10_000 + ratio * tokens * 4, rel=0.1)


def test_the_overhead_is_known_before_anything_was_reported_and_after_a_turn_heavy_with_tools() -> None:
    assert fitted((), 9_500) == Fit(9_500, 1.0)
    assert fitted(()) == Fit(0.0, 1.0)
    assert fitted([UsagePoint(500, 9_500)]) == Fit(9_000, 1.0)
    calls = [UsagePoint(estimate, 10_000 + 1.3 * estimate) for estimate in (300, 4_000, 9_000)]
    assert fitted(calls).overhead == pytest.approx(10_000, rel=0.1)


def test_what_a_turn_adds_beside_its_messages_does_not_upset_it() -> None:
    fit = fitted(points(40, 600, 1.2, 10_000, aside=300))
    assert fit.ratio == pytest.approx(1.2, rel=0.1)
    assert fit.overhead == pytest.approx(10_300, rel=0.1)


def test_no_count_is_believed_beyond_bounds() -> None:
    assert fitted(points(8, 5_000, 9, 0)).ratio == 2.0
    assert fitted(points(8, 5_000, 0.01, 0)) == Fit(0.0, 0.6)


def test_the_points_that_are_kept_lie_far_apart() -> None:
    kept = points(200, 500, 1, 10_000)
    assert len(kept) == 8
    assert kept[-1].estimate == 100_000
    assert kept[0].estimate < 30_000
