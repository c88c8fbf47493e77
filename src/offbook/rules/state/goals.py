"""What the user wants done: which request is the task now, which are still open, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from offbook.model.summary import StateKind, StateRecord
from offbook.rules.state.records import (
    MAX_EARLIER_GOALS,
    MAX_TEXT_CHARS,
    Kept,
    Sort,
    Turn,
    cut,
    record,
    refreshed,
    shared,
    without_minor,
    words_of,
)
from offbook.rules.state.reports import Report, Spoken, asks_user, is_answer, offers
from offbook.rules.state.rules import is_follow_up, is_told_rather_than_done, moves_on

CONTEXT_WORDS = 3
"""A request of fewer words ("please fix it") is understood from what stands before it."""
ANSWER_CHARS = 200
"""A text of this length may be the very thing that was asked for."""
I_ASKED = "I asked the user: "
REPORTED = " (I have reported it done.)"
ANSWERED = " (I have answered it.)"


def requested(goals: list[Kept], sentences: list[str], at: int, turn: Turn) -> list[Kept]:
    """The goals after a message whose sentence at `at` asks for something."""
    first = at
    while first > 0 and len(words_of(" ".join(sentences[first : at + 1]))) < CONTEXT_WORDS:
        first -= 1
    text = cut(" ".join(sentences[first:]))
    words = words_of(text)
    again = next((one for one in goals if one.words == words), None)
    if again is not None:
        asked = msgspec.structs.replace(refreshed(again, turn), sort="open")
        return [*(one for one in goals if one is not again), asked]
    is_behind = bool(goals) and moves_on(sentences[: at + 1])
    new = Kept(record=record("goal", text, turn), words=words, sort="open", is_minor=is_follow_up(text))
    return _with(goals[:-1] if is_behind else goals, new)


def agreed(goals: list[Kept], asking: Kept, sentences: list[str], turn: Turn) -> list[Kept]:
    """The goals after a yes: what was offered and taken up is wanted."""
    question = asking.record.text.removeprefix(I_ASKED)
    if not offers(question):
        return goals
    text = f"{question} The user said: {' '.join(sentences)}"
    return _with(goals, Kept(record=record("goal", text, turn), words=words_of(question), sort="open", is_minor=True))


def reported(
    goals: list[Kept], sentences: Sequence[Spoken], reports: Sequence[Report], *, is_final: bool
) -> list[Kept]:
    """The goals after a message of the agent. One that is done stays until the user goes on, and says that it is."""
    if not goals or goals[-1].sort == "done":
        return goals
    current = goals[-1]
    # Half of a task done is not the task done: what is reported must be what it is about.
    is_done = any(one.says_done for one in sentences[:3]) or any(
        shared(current.words, words_of(report.text)) * 2 >= max(2, len(current.words)) for report in reports
    )
    is_told = is_final and is_told_rather_than_done(current.record.text) and not any(map(asks_user, sentences))
    is_long = sum(len(one.text) for one in sentences) >= ANSWER_CHARS
    if not (is_done or (is_told and is_long and any(map(is_answer, sentences)))):
        return goals
    sort: Sort = "done" if is_done else "answered"
    return [*goals[:-1], msgspec.structs.replace(current, sort=sort)]


def shown(one: Kept) -> StateRecord:
    """The record, with what became of it: a task that is done must not be taken up again."""
    ending = {"done": REPORTED, "answered": ANSWERED}.get(one.sort, "")
    if not ending:
        return one.record
    return msgspec.structs.replace(one.record, text=cut(one.record.text, MAX_TEXT_CHARS - len(ending)) + ending)


def _with(goals: Sequence[Kept], new: Kept) -> list[Kept]:
    still_open = [one for one in goals if one.sort == "open"]
    # A task outlives the small changes of it.
    return [*without_minor(still_open, MAX_EARLIER_GOALS, 0), new]


# ── Working state as the agent reads it: memory in the first person, with the times, asking fo ──

HEADING = "What I was doing:"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LABELS: dict[StateKind, str] = {
    "goal": "Goal (said {at}): ",
    "open loop": "Open (since {at}): ",
    "confirmed action": "Done, not to be repeated ({at}): ",
    "live handle": "Running (since {at}): ",
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
