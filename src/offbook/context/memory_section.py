"""The stable section: what the agent knows of before, in its own first person, the same until the next swap. Pure.

    what I remember: [L3 …] [L2 …] [L1 …]   what stays with me   what I have learnt   what I was doing   pinned

What must not be lost has its share first; the summaries get what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import floor
from typing import NamedTuple

from offbook.context.cover import chosen
from offbook.context.days import day_text
from offbook.context.handover import HEADING, anchor_lines, in_order_of_time, not_contradicted
from offbook.context.prompt_text import named
from offbook.context.quotes import defused, quoted
from offbook.ingest.frames import frame
from offbook.model.content import render
from offbook.model.lesson import Lesson
from offbook.model.settings import Settings
from offbook.model.summary import Summary
from offbook.model.turn import Anchor, PartKind, SessionState, TurnPart
from offbook.model.types import Message
from offbook.models.tokens import estimate_tokens
from offbook.rules.state.goals import HEADING as DOING
from offbook.rules.state.goals import rendered

SWAPPED_SHARE = 0.1
"""Of the window, where the agent runs on a context of ours already: the two together must not bring the next swap
nearer."""
KEPT_SHARE = 0.1
"""Of the section, for each of anchors, lessons, working state and pins."""
MOST_KEPT_TOKENS = 1_500
"""Of each of the four."""
LEARNT = "What I have learnt, each with the day it was last said:"
PINNED_CHARS, STATE_CHARS = 500, 1_200
INTRODUCTION = (
    "What I remember from before, oldest first. A name such as [L1-0003] can be expanded to the exact messages."
)
_LEVELS = {3: "Long ago:", 2: "Earlier:", 1: "Lately:"}


class Known(NamedTuple):
    """What the section is made of."""

    summaries: Sequence[Summary]
    """The newest of each level that are not in the agent's context already."""
    anchors: Sequence[Anchor]
    states: Sequence[SessionState]
    """Of the newest sessions, the newest first; that of the session itself has its id."""
    pinned: Sequence[str]
    """What was said, as it is shown, oldest first."""
    lessons: Sequence[Lesson] = ()
    """Those that are sure enough, the first to be told first."""
    judged: Sequence[Lesson] = ()
    """Those that a person has judged, told or not."""


class MemorySection(NamedTuple):
    text: str
    tokens: int
    parts: list[TurnPart]


def memory_budget(settings: Settings, *, window: int, current_tokens: int, recall_budget: int, is_handed: bool) -> int:
    """Tokens that the section may take: the levels' budgets (C5), within the share of the window that continuity may
    fill (D2) beside what is in use."""
    levels = settings.injection_budget
    most = floor(window * settings.context_budget.context_budget_ratio) - current_tokens - recall_budget
    if is_handed:
        most = min(most, floor(window * SWAPPED_SHARE))
    least = min(settings.token_budget.min_budget_tokens, window // 4)
    return max(least, min(most, levels.l1 + levels.l2 + levels.l3))


def memory_section(known: Known, settings: Settings, *, session_id: str, budget: int, key: bytes) -> MemorySection:
    each = min(MOST_KEPT_TOKENS, int(budget * KEPT_SHARE))
    quoted_still = not_contradicted(known.anchors, known.judged)
    anchors = _anchors_part(quoted_still, each)
    found = (
        anchors,
        _lessons_part(known.lessons, quoted_still if anchors else (), each),
        _state_part(known.states, session_id, each),
        _pinned_part(known.pinned, each),
    )
    kept = [one for one in found if one is not None]
    levels = settings.injection_budget
    room = budget - sum(one.tokens for one in kept) - estimate_tokens(frame(INTRODUCTION, kind="memory", key=key))
    shown = chosen(known.summaries, {1: levels.l1, 2: levels.l2, 3: levels.l3}, max(0, room))
    texts = {one.id: defused(one.draft.text) for one in shown}
    while True:
        parts = [*([_summaries_part(shown, texts, len(known.summaries))] if shown else []), *kept]
        text = _framed(parts, key)
        tokens = estimate_tokens(text)
        if tokens <= budget or not text:
            return MemorySection(text, tokens, parts)
        if shown:  # what was reckoned by its parts is a little more as a whole: the oldest goes
            shown = [one for one in shown if one is not min(shown, key=lambda one: one.draft.last_at)]
        else:
            kept = kept[:-1]


def _framed(parts: Sequence[TurnPart], key: bytes) -> str:
    if not parts:
        return ""
    texts = [one.text for one in parts]
    if parts[0].kind == "summaries":
        texts.insert(0, INTRODUCTION)
    return frame("\n\n".join(texts), kind="memory", key=key)


def _part(kind: PartKind, text: str, items: int, why: str) -> TurnPart:
    return TurnPart(section="memory", kind=kind, tokens=estimate_tokens(text), items=items, why=why, text=text)


def _summaries_part(shown: Sequence[Summary], texts_of: Mapping[str, str], looked_at: int) -> TurnPart:
    texts: list[str] = []
    heading = ""
    for one in shown:
        named = _LEVELS.get(one.draft.level, _LEVELS[3])
        texts += [named] if named != heading else []
        heading = named
        texts.append(f"[{one.id}] {texts_of[one.id]}")
    why = f"recent in detail, older coarser, within the budget of each level ({len(shown)} of the newest {looked_at})"
    return _part("summaries", "\n".join(texts), len(shown), why)


def _anchors_part(anchors: Sequence[Anchor], most_tokens: int) -> TurnPart | None:
    """The fresh ones; of the others only who they are, which lasts."""
    shown = [one for one in anchors if one.is_fresh or one.kind == "identity"]
    while shown:
        text = "\n".join([HEADING, *anchor_lines(in_order_of_time(shown))])
        if estimate_tokens(text) <= most_tokens:
            return _part("anchors", text, len(shown), "fresh, or who they are, which lasts")
        shown = shown[:-1]
    return None


def _lessons_part(lessons: Sequence[Lesson], anchors: Sequence[Anchor], most_tokens: int) -> TurnPart | None:
    """As many as fit, the first rather than the last. What an anchor quotes is not told twice, unless a person has said
    how it is to be told."""
    quoted_at = {(one.session_id, one.seq) for one in anchors}
    included = [
        one
        for one in lessons
        if one.status != "learnt" or quoted_at.isdisjoint((source.session_id, source.seq) for source in one.sources)
    ]
    while included:
        lines = [f"- {' '.join(defused(one.text).split())} ({_day(one.last_seen)})" for one in included]
        text = "\n".join([LEARNT, *lines])
        if estimate_tokens(text) <= most_tokens:
            return _part("lessons", text, len(included), "judged by a person, or sure enough, and still so")
        included = included[:-1]
    return None


def _state_part(states: Sequence[SessionState], session_id: str, most_tokens: int) -> TurnPart | None:
    texts: list[str] = []
    records = 0
    for one in states:
        text = defused(rendered(one.records, STATE_CHARS))
        if not text:
            continue
        if one.session_id != session_id:
            text = text.replace(DOING, f"What I was doing in another conversation, {_day(one.last_at)}:", 1)
        if estimate_tokens("\n".join([*texts, text])) > most_tokens:
            break
        texts.append(text)
        records += len(one.records)
    return (
        _part("working state", "\n".join(texts), records, "open, done or running when last heard of") if texts else None
    )


def _pinned_part(pinned: Sequence[str], most_tokens: int) -> TurnPart | None:
    """As many as fit, the newest rather than the oldest."""
    kept = [f"- {text}" for text in pinned]
    while kept:
        text = "\n".join(["Pinned, to be kept in mind:", *kept])
        if estimate_tokens(text) <= most_tokens:
            return _part("pinned", text, len(kept), "pinned by hand")
        kept = kept[1:]
    return None


def _day(at: datetime) -> str:
    # A date rather than "yesterday": the section is read for as long as it stays the same.
    return day_text(at.date(), None)


def pinned_text(message: Message, at: datetime) -> str:
    by = {"assistant": "I", "tool": "A tool", "system": "The system"}.get(message.role) or named(message.name)
    return f"{by} ({_day(at)}): {quoted(render(message), PINNED_CHARS).text}"
