"""What is noted of a session as it is followed: its working state, and what its turns are about.

Notes are derived from the log. One that cannot be read is made anew. What is told of them leaves out what was replaced
or taken back since: the links say that, whoever found them.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime

import msgspec

from offbook.log.store import Store
from offbook.model.errors import StoreCorrupt
from offbook.model.memory_entry import TAKEN_BACK
from offbook.model.summary import StateRecord
from offbook.model.types import Scope, Value
from offbook.search.resolve import PARTLY, RETRACTED, SINCE
from offbook.statements.anchors import AnchorState
from offbook.statements.state import WorkingState
from offbook.statements.topics import TopicState

STATE_NOTE = "workingState"
THREAD_NOTE = "continuity"


class Thread(Value, frozen=True):
    """What a session's turns are about."""

    topics: TopicState = TopicState()
    anchors: AnchorState = AnchorState()
    begun_at: datetime | None = None
    """When the conversation began: at first, or after the last silence that makes a new one of it (D16)."""
    turns_before: int = 0
    """Of the conversations before it."""
    last_at: datetime | None = None

    @property
    def exchanges(self) -> int:
        return self.topics.turns - self.turns_before

    @property
    def through_seq(self) -> int:
        return min(self.topics.through_seq, self.anchors.through_seq)


async def working_state(store: Store, scope: Scope) -> WorkingState:
    with suppress(msgspec.DecodeError, StoreCorrupt):
        note = await store.session_note(scope, STATE_NOTE)
        return msgspec.json.decode(note, type=WorkingState) if note else WorkingState()
    return WorkingState()


async def thread_of(store: Store, scope: Scope) -> Thread:
    with suppress(msgspec.DecodeError, StoreCorrupt):
        note = await store.session_note(scope, THREAD_NOTE)
        return msgspec.json.decode(note, type=Thread) if note else Thread()
    return Thread()


async def told_records(store: Store, scope: Scope) -> list[StateRecord]:
    """The working state, without what was said of something that holds no more."""
    records = (await working_state(store, scope)).records
    gone = await _gone(store, scope, {seq for one in records for seq in _said_at(one)}, unless=(PARTLY, SINCE))
    return [one for one in records if gone.isdisjoint(_said_at(one))]


async def told_thread(store: Store, scope: Scope) -> Thread:
    """What its turns are about, without the anchors that hold no more."""
    thread = await thread_of(store, scope)
    # Who they are is told as it was said last, also where that is only likely to be about the same.
    gone = await _gone(store, scope, {one.seq for one in thread.anchors.kept}, unless=(PARTLY,))
    if not gone:
        return thread
    kept = [one for one in thread.anchors.kept if one.seq not in gone]
    return msgspec.structs.replace(thread, anchors=msgspec.structs.replace(thread.anchors, kept=kept))


def _said_at(one: StateRecord) -> set[int]:
    """A goal is the user's; what is open or done may be the agent's answer to the message before it."""
    return {one.last_seq} if one.kind == "goal" or one.last_seq == 1 else {one.last_seq, one.last_seq - 1}


async def _gone(store: Store, scope: Scope, seqs: set[int], *, unless: Collection[str]) -> set[int]:
    """Those of the messages that were replaced or taken back, or that took something back."""
    ordered = sorted(seqs)
    places = await store.places(scope, ordered) if ordered else []
    links = await store.supersessions(scope.agent_id, places) if places else []
    old = {link.old_place for link in links if link.kind not in (*unless, TAKEN_BACK)}
    old |= {link.new_place for link in links if link.kind == RETRACTED}
    if not old:
        return set()
    if len(places) == len(ordered):
        return {seq for seq, place in zip(ordered, places, strict=True) if place in old}
    return {seq for seq in ordered if not old.isdisjoint(await store.places(scope, [seq]))}
