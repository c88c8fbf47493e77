"""What the user wants done: which request is the task now, which are still open, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from offbook.continuity.keeping import (
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
from offbook.continuity.state.reports import Report, Spoken, asks_user, is_answer, offers
from offbook.continuity.state.rules import is_follow_up, is_told_rather_than_done, moves_on
from offbook.summaries import StateRecord

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
