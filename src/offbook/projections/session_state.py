"""A session's working state, topics and anchors, followed message by message.

Three folds over the same pages of the log, whose sentences are read once. Each is kept as a note of the session, so
that it survives restarts and compactions, and goes on where it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta

import msgspec

from offbook.context.session_notes import STATE_NOTE, THREAD_NOTE, Thread, thread_of, working_state
from offbook.log.store import Store
from offbook.model.errors import StoreCorrupt
from offbook.model.settings import Settings
from offbook.model.types import LoggedMessage, Scope, Session
from offbook.models.worker import IN_PROCESS, Worker
from offbook.projections.base import Batch, Erased, Finding, Progress, Removal
from offbook.projections.log_pages import sessions_of
from offbook.statements import anchors, topics
from offbook.statements.state import WorkingState, advanced
from offbook.statements.turns import Turn, read_turn

PAGE, PAGES = 200, 50
LASTING = (
    "`offbook restore` from a backup made before: nothing makes these again, not even `offbook compress`, which leaves "
    "what is there; the messages they were made of are untouched"
)
PASSING = "go on with the session: its next message has what was noted of it made anew from the log"
NOTES: tuple[tuple[str, type[WorkingState] | type[Thread], str], ...] = (
    (STATE_NOTE, WorkingState, "the working state"),
    (THREAD_NOTE, Thread, "what its turns are about"),
)


class SessionState:
    name = "session_state"

    def __init__(self, store: Store, settings: Settings, worker: Worker = IN_PROCESS) -> None:
        self._store = store
        self._settings = settings
        self._worker = worker
        self._seen: dict[Scope, int] = {}
        """Of the sessions that were followed to their end, where that was."""

    async def advance(self, batch: Batch) -> Progress:
        if batch.session_id is None:
            changed = [one.session_id async for one in self._changed(batch.agent_id)]
            return Progress(sessions=tuple(changed))
        scope = Scope(agent_id=batch.agent_id, session_id=batch.session_id)
        session = await self._store.session(scope)
        if session is None or not session.last_seq:
            return Progress()
        is_done = await self._advance(scope, session)
        if is_done:
            self._seen[scope] = session.last_seq
        return Progress(is_done=is_done)

    async def forget(self, erased: Erased) -> Removal:
        """The notes went with what the store derives; they are made anew from what is left."""
        if not erased.is_dry_run:
            self._seen = {scope: seq for scope, seq in self._seen.items() if scope.agent_id != erased.agent_id}
        return Removal()

    async def rebuild(self, agent_id: str) -> None:
        async for session in sessions_of(self._store, agent_id):
            scope = Scope(agent_id=agent_id, session_id=session.session_id)
            self._seen.pop(scope, None)
            for name in (STATE_NOTE, THREAD_NOTE):
                await self._store.set_session_note(scope, name, None)

    def let_go(self, agent_id: str) -> None:
        self._seen = {scope: seq for scope, seq in self._seen.items() if scope.agent_id != agent_id}

    async def check(self, agent_id: str, erased: Erased | None = None) -> list[Finding]:
        if erased is not None:
            return []  # its notes are texts beside the log, which are all looked through
        found: list[Finding] = []
        self._store.let_go(agent_id)  # what lies there is looked at
        async for session in sessions_of(self._store, agent_id):
            scope = Scope(agent_id=agent_id, session_id=session.session_id)
            for name, kind, what in NOTES:
                try:
                    note = await self._store.session_note(scope, name)
                    through = msgspec.json.decode(note, type=kind).through_seq if note else 0
                except StoreCorrupt:
                    found.append(Finding(session.session_id, f"{what} cannot be read", LASTING))
                except msgspec.DecodeError as error:
                    found.append(Finding(session.session_id, f"{what} cannot be read ({error})", PASSING))
                else:
                    if through > session.last_seq:
                        found.append(Finding(session.session_id, f"{what} is of another history", PASSING))
        return found

    async def _changed(self, agent_id: str) -> AsyncIterator[Session]:
        async for session in sessions_of(self._store, agent_id):
            if self._seen.get(Scope(agent_id=agent_id, session_id=session.session_id)) != session.last_seq:
                yield session

    async def _advance(self, scope: Scope, session: Session) -> bool:
        """True where everything up to the newest message has been seen."""
        state, thread = await working_state(self._store, scope), await thread_of(self._store, scope)
        after_seq = min(state.through_seq, thread.through_seq)
        if after_seq >= session.last_seq:
            return True
        settings = self._settings.for_agent(scope.agent_id)
        for _ in range(PAGES):
            page = await self._store.messages(scope, after_seq=after_seq, limit=PAGE)
            if not page:
                break
            state, thread = await self._worker.run(_read, settings, state, thread, page)
            after_seq = page[-1].seq
            if len(page) < PAGE:
                break
        await asyncio.gather(
            self._store.set_session_note(scope, STATE_NOTE, msgspec.json.encode(state).decode()),
            self._store.set_session_note(scope, THREAD_NOTE, msgspec.json.encode(thread).decode()),
        )
        return after_seq >= session.last_seq


def _read(
    settings: Settings, state: WorkingState, thread: Thread, page: Sequence[LoggedMessage]
) -> tuple[WorkingState, Thread]:
    silence = settings.session.new_session_gap
    turns = [_turn(one) for one in page]
    for some in in_conversations([one for one in turns if one.seq > thread.through_seq], thread.last_at, silence):
        is_new = thread.last_at is None or some[0].at - thread.last_at >= silence
        begun = (some[0].at, thread.topics.turns) if is_new else (thread.begun_at, thread.turns_before)
        about = topics.advanced(thread.topics, some, settings.topic_tracking)
        kept = anchors.advanced(thread.anchors, some, settings.anchors)
        thread = Thread(topics=about, anchors=kept, begun_at=begun[0], turns_before=begun[1], last_at=some[-1].at)
    return advanced(state, turns), thread


def in_conversations(turns: Sequence[Turn], last_at: datetime | None, silence: timedelta) -> list[list[Turn]]:
    """The turns, parted where nothing was said for so long. A clock that jumps back parts nothing."""
    parted: list[list[Turn]] = []
    for turn in turns:
        if not parted or (last_at is not None and turn.at - last_at >= silence):
            parted.append([])
        parted[-1].append(turn)
        last_at = turn.at
    return parted


def _turn(one: LoggedMessage) -> Turn:
    at = one.message.ts or one.received_at
    return read_turn(one.seq, at, one.message, is_noise=one.entry.noise is not None)
