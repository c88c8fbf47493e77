"""Working state as the agent reads it: memory in the first person, with the times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from offbook.model.summary import StateKind, StateRecord

HEADING = "What I was doing:"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LABELS: dict[StateKind, str] = {
    "goal": "Goal (said {at}): ",
    "open loop": "Open (since {at}): ",
    "confirmed action": "Done, not to be repeated ({at}): ",
    "live handle": "Running when last heard of ({at}): ",
}
_EARLIER_GOAL = "Earlier goal, still open (said {at}): "


def rendered(records: Sequence[StateRecord], max_chars: int) -> str:
    """As many whole records as fit, the most recent of each kind before others, oldest first; "" where none does.

    The kinds take turns, so that a long list of what was done does not cost what is running.
    """
    by_kind = {kind: _lines(kind, records) for kind in _LABELS}
    left = max_chars - len(HEADING)
    chosen: dict[StateKind, list[str]] = {kind: [] for kind in _LABELS}
    for rank in range(max(map(len, by_kind.values()))):
        for kind, lines in by_kind.items():
            if rank < len(lines) and len(lines[rank]) < left:
                chosen[kind].append(lines[rank])
                left -= len(lines[rank]) + 1
    # What was changed since stands after what it changed.
    shown = [line for lines in chosen.values() for line in reversed(lines)]
    return "\n".join((HEADING, *shown)) if shown else ""


def _lines(kind: StateKind, records: Sequence[StateRecord]) -> list[str]:
    newest_first = sorted((one for one in records if one.kind == kind), key=lambda one: -one.last_seq)
    return [
        (_EARLIER_GOAL if kind == "goal" and at else _LABELS[kind]).format(at=_moment(one.at))
        + " ".join(one.text.split())
        for at, one in enumerate(newest_first)
    ]


def _moment(at: datetime) -> str:
    # By hand: the names that `strftime` gives depend on the process's locale.
    return f"{at.day} {_MONTHS[at.month - 1]} {at:%H:%M}"
