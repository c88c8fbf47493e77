"""A history that lacks its beginning, laid beside the conversation it is of. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from offbook.proxy.fingerprints import Known, followed

MOST_OF_ITS_OWN = 4
"""Messages that a client may have put in the place of those it left out, such as a summary."""
LEAST_ALIKE = 2
"""Messages in a row that must be the same: one alone ("OK") says nothing."""


class Aligned(NamedTuple):
    places: list[Known | None]
    """None for each of the first ones that the client made up itself."""
    alike: int
    """How many in a row are the same."""


def aligned(prints: Sequence[str], path: Sequence[Known]) -> Aligned | None:
    """The messages with these fingerprints as those of the path, then as what is new behind them.

    None where it is of something else.
    """
    where: dict[str, list[int]] = {}
    for position, known in enumerate(path):
        where.setdefault(known.fingerprint, []).append(position)
    best = (0, 0, 0)
    for own in range(min(MOST_OF_ITS_OWN + 1, len(prints))):
        for position in where.get(prints[own], ()):
            best = max(best, (_alike(prints, own, path, position), -own, position))
    alike, negative_own, position = best
    if alike < LEAST_ALIKE:
        return None
    own = -negative_own
    found: list[Known | None] = [*([None] * own), *path[position : position + alike]]
    node = path[position + alike - 1].node
    for each in prints[own + alike :]:
        known = followed(node, each)
        node = known.node
        found.append(known)
    return Aligned(found, alike)


def _alike(prints: Sequence[str], own: int, path: Sequence[Known], position: int) -> int:
    count = 0
    for each, known in zip(prints[own:], path[position:], strict=False):
        if each != known.fingerprint:
            break
        count += 1
    return count
