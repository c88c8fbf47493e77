"""What is noted of a session as it is followed: its working state, and what its turns are about.

Notes are derived from the log. One that cannot be read is made anew.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

import msgspec

from offbook.log.store import Store
from offbook.model.errors import StoreCorrupt
from offbook.model.types import Scope, Value
from offbook.rules.anchors.fold import AnchorState
from offbook.rules.state.working_state import WorkingState
from offbook.rules.topics.fold import TopicState

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
