"""What holds now: what was replaced gives way to what replaced it, in its rank (D5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from offbook.entries import Supersession

LONGEST_CHAIN = 8
"""Of corrections of corrections: as far as links are looked up."""
RETRACTED = "retract"


@dataclass(frozen=True)
class Standing:
    """A place and what is to be shown of it."""

    place: int
    score: float
    replaces: list[int] = field(default_factory=list)
    superseded_by: int | None = None


@dataclass(frozen=True)
class Settled:
    standing: list[Standing]
    """Best first. Some may be places that were not found themselves."""
    gone: dict[int, Supersession]
    """What gave way, and to what."""


def settled(found: Sequence[tuple[int, float]], links: Sequence[Supersession], *, include_superseded: bool) -> Settled:
    """`found` are places with their scores, best first. What was taken back goes without a successor."""
    newest = {link.old_place: link for link in sorted(links, key=lambda link: (link.at, link.new_place))}
    replaced: dict[int, list[int]] = {}
    for known in sorted(links, key=lambda link: (link.at, link.old_place)):
        if known.kind != RETRACTED:
            replaced.setdefault(known.new_place, []).append(known.old_place)
    scores: dict[int, float] = {}
    gone: dict[int, Supersession] = {}
    for place, score in found:
        link = newest.get(place)
        if link is None or include_superseded:
            scores[place] = max(score, scores.get(place, score))
            continue
        gone[place] = link
        heir = _heir(newest, place)
        if heir is not None:
            scores[heir] = max(score, scores.get(heir, score))
    standing = [
        Standing(
            place=place,
            score=score,
            replaces=replaced.get(place, []),
            superseded_by=newest[place].new_place if place in newest else None,
        )
        for place, score in scores.items()
    ]
    return Settled(standing=sorted(standing, key=lambda one: -one.score), gone=gone)


def _heir(newest: dict[int, Supersession], place: int) -> int | None:
    """The end of the chain; None where what was said was taken back."""
    passed = {place}
    while (link := newest.get(place)) is not None:
        if link.kind == RETRACTED:
            return None
        place = link.new_place
        if place in passed:  # a ring, which only damage could make
            return place
        passed.add(place)
    return place
