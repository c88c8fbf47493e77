"""What is noted of a session as it is followed: its working state, what its turns are about, how large its swaps are.

Notes are derived from the log, but for the size, which a host says with each swap. One that cannot be read is made
anew. What is told of them leaves out what was replaced or taken back since: the links say that, whoever found them.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from math import isclose

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
SWAP_SIZE_NOTE = "swapSize"
SAME_SIZE = 0.05


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


class SwapSize(Value, frozen=True):
    """When a swap is due and what it may leave, in the tokens of the model's provider."""

    due_tokens: int
    target_tokens: int
    token_ratio: float = 1.0
    """Tokens of the provider's for each that we estimate."""

    @property
    def estimated_target(self) -> int:
        return max(1, int(self.target_tokens / self.token_ratio))

    def is_near(self, other: SwapSize) -> bool:
        """So near that a context made for the one does for the other."""
        return isclose(self.due_tokens, other.due_tokens, rel_tol=SAME_SIZE) and isclose(
            self.estimated_target, other.estimated_target, rel_tol=SAME_SIZE
        )


async def swap_size(store: Store, scope: Scope) -> SwapSize | None:
    with suppress(msgspec.DecodeError, StoreCorrupt):
        note = await store.session_note(scope, SWAP_SIZE_NOTE)
        return msgspec.json.decode(note, type=SwapSize) if note else None
    return None


async def note_swap_size(store: Store, scope: Scope, size: SwapSize) -> None:
    await store.set_session_note(scope, SWAP_SIZE_NOTE, msgspec.json.encode(size).decode())


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
