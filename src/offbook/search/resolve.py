"""What holds now: what was replaced gives way to what replaced it, in its rank (D5)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from offbook.model.memory_entry import TAKEN_BACK, Supersession

LONGEST_CHAIN = 8
"""Of corrections of corrections: as far as links are looked up."""
RETRACTED = "retract"
SINCE = "since"
"""Something was said later that may be about the same: both stay, and the earlier is told as what was said earlier."""
CORRECTION = "correction"
PARTLY = "partly"
"""The older message says more than what was corrected: it stays, with the correction beside it."""
BESIDE = 0.5
"""How far behind it, where the correction was not found by itself."""


@dataclass(frozen=True)
class ResolvedHit:
    """A place and what is to be shown of it."""

    place: int
    score: float
    replaces: list[int] = field(default_factory=list)
    superseded_by: int | None = None
    followed_by: int | None = None
    """What was said later about the same, where that does not surely replace it."""


@dataclass(frozen=True)
class Resolution:
    resolved: list[ResolvedHit]
    """Best first. Some may be places that were not found themselves."""
    gone: dict[int, Supersession]
    """What gave way, and to what."""


def resolve_supersession(
    found: Sequence[tuple[int, float]],
    links: Sequence[Supersession],
    *,
    include_superseded: bool,
    said_then: Collection[int] = (),
    out_of_reach: Collection[int] = (),
) -> Resolution:
    """`found` are places with their scores, best first. What was taken back goes, and what took it back with it.

    What was `said_then`, at the time that is asked about, stays as what was said, unless it was taken back. What
    would give way to something `out_of_reach` stays, marked as replaced: it is all there is to show.
    """
    later = {link.old_place: link.new_place for link in sorted(links, key=_when) if link.kind == SINCE}
    links = [link for link in links if link.kind not in (TAKEN_BACK, SINCE)]
    newest = {link.old_place: link for link in sorted(links, key=_when)}
    replaced: dict[int, list[int]] = {}
    for known in sorted(links, key=lambda link: (link.at, link.old_place)):
        if known.kind not in (RETRACTED, PARTLY):  # what holds in part still stands beside its correction
            replaced.setdefault(known.new_place, []).append(known.old_place)
    takes_back = {known.new_place for known in links if known.kind == RETRACTED} - set(replaced)
    scores: dict[int, float] = {}
    gone: dict[int, Supersession] = {}
    for place, score in found:
        link = newest.get(place)
        if link is None and place in takes_back and not include_superseded:
            continue
        is_history = link is not None and place in said_then and link.kind != RETRACTED
        is_partly = link is not None and link.kind == PARTLY
        if link is None or include_superseded or is_history or is_partly or _heir(newest, place) in out_of_reach:
            scores[place] = max(score, scores.get(place, score))
            beside = link.new_place if is_partly and link is not None else later.get(place)
            if beside is not None and not include_superseded:
                scores[beside] = max(score - BESIDE, scores.get(beside, score - BESIDE))
            continue
        gone[place] = link
        heir = _heir(newest, place)
        if heir is not None:
            scores[heir] = max(score, scores.get(heir, score))
    resolved = [
        ResolvedHit(
            place=place,
            score=score,
            replaces=replaced.get(place, []),
            superseded_by=newest[place].new_place if place in newest else None,
            followed_by=later.get(place) if place not in newest else None,
        )
        for place, score in scores.items()
    ]
    return Resolution(resolved=sorted(resolved, key=lambda one: -one.score), gone=gone)


def _when(link: Supersession) -> tuple[datetime, int]:
    return link.at, link.new_place


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
