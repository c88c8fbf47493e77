"""How sure a lesson is.

    confidence     = 1 - product over each time it was said of (1 - strength of the rule that read it), at most 0.98
    confidence now = confidence x (1 - 0.25 x years since it was last said / 2, two years at most)
                     x 0.7 where something that was said later speaks against it and took not its place

Each saying takes away a share of the doubt, so the order in which they are learnt does not matter, and none lowers it.
The first figure is kept with the lesson. The second is reckoned where lessons are chosen for a turn: it changes by
itself from day to day.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from math import prod

MOST = 0.98
"""However often it was said: they may change their mind."""
FADES_OVER = timedelta(days=730)
FADES_BY = 0.25
"""What a rule was fairly sure of (0.7) and was said once falls below what comes into a turn (0.6) after 14 months; what
was said twice (0.91) stays."""
SPOKEN_AGAINST = 0.7
DIGITS = 4


def confidence_of(strengths: Iterable[float], before: float = 0.0) -> float:
    """After it was said with these strengths, where it had that confidence before."""
    doubt = (1 - before) * prod(1 - strength for strength in strengths)
    return round(min(MOST, 1 - doubt), DIGITS)


def confidence_at(confidence: float, last_seen: datetime, at: datetime, *, is_spoken_against: bool = False) -> float:
    age = min(max(at - last_seen, timedelta()), FADES_OVER)
    faded = confidence * (1 - FADES_BY * (age / FADES_OVER))
    return faded * SPOKEN_AGAINST if is_spoken_against else faded
