"""Topics, anchors and working state of an agent's newest sessions, as the background noted them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from offbook.context.handover import LastTime
from offbook.context.session_notes import Thread, thread_of, told_records, told_thread
from offbook.ingest.scope import checked_session
from offbook.log.store import ANY_SEQ, Store
from offbook.model.content import own_text, text_of
from offbook.model.lesson import LESSONS_SESSION
from offbook.model.settings import Settings
from offbook.model.turn import Anchor, AnchorList, ContinuityState, SessionInfo, SessionState, Topic, TopicList
from offbook.model.types import EMBEDDED, AuditDraft, Caller, LoggedMessage, Message, Scope, Session, SessionGaps, now
from offbook.statements.anchors import anchors_of
from offbook.statements.topics import merged, since, topics_of

SESSIONS_LOOKED_AT = 8
"""The newest: what older sessions were about is found by recall."""
STATES_SHOWN = 3
NEWEST_LOOKED_AT = 12
"""For something that was said: heartbeats may have come since."""


class Follows(NamedTuple):
    """How a turn goes on from what was said before it, the prompt itself left aside where it is in the log already."""

    info: SessionInfo | None
    """None where nothing was said before it."""
    last_said: str = ""
    """By the user."""
    prompt_seq: int = 0
    """Of the prompt itself, where it is in the log already."""


class SessionStateService:
    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    # ── the verbs ──

    async def topics(self, agent_id: str, *, session_id: str | None = None, by: Caller = EMBEDDED) -> TopicList:
        """What they keep returning to, in one session or in the newest ones."""
        checked_session(session_id)
        found = self._topics(agent_id, await self._threads(agent_id, session_id), session_id)
        await self._record("topics", agent_id, session_id, by, {"topics": len(found)})
        return TopicList(topics=found)

    async def anchors(self, agent_id: str, *, session_id: str | None = None, by: Caller = EMBEDDED) -> AnchorList:
        """What must not be lost from sight."""
        checked_session(session_id)
        found = self.anchors_in(agent_id, await self._threads(agent_id, session_id))
        await self._record("anchors", agent_id, session_id, by, {"anchors": len(found)})
        return AnchorList(anchors=found)

    async def state(self, agent_id: str, *, session_id: str | None = None, by: Caller = EMBEDDED) -> ContinuityState:
        """Topics, anchors, and what each session was doing."""
        checked_session(session_id)
        threads = await self._threads(agent_id, session_id)
        states = await self.states([session for session, _ in threads])
        follows = await self._stands(*threads[0]) if session_id is not None and threads else Follows(None)
        await self._record("state", agent_id, session_id, by, {"sessions": len(threads)})
        return ContinuityState(
            agent_id=agent_id,
            topics=self._topics(agent_id, threads, session_id),
            anchors=self.anchors_in(agent_id, threads),
            working=states,
            session=follows.info,
        )

    # ── what turns are prepared from ──

    async def newest(self, agent_id: str) -> list[Session]:
        """The newest sessions that something was said in, the one written to last first."""
        sessions = await self._store.sessions(agent_id, limit=SESSIONS_LOOKED_AT + 1)
        spoken = [session for session in sessions if session.session_id != LESSONS_SESSION]
        return [session for session in spoken[:SESSIONS_LOOKED_AT] if session.last_seq]

    async def threads(self, sessions: Sequence[Session]) -> list[tuple[Session, Thread]]:
        found = await asyncio.gather(*(told_thread(self._store, _scope(session)) for session in sessions))
        return list(zip(sessions, found, strict=True))

    async def states(self, sessions: Sequence[Session]) -> list[SessionState]:
        """What those that were doing anything were doing."""
        found = await asyncio.gather(*(told_records(self._store, _scope(session)) for session in sessions))
        return [
            SessionState(session_id=session.session_id, last_at=session.last_at, records=records)
            for session, records in zip(sessions, found, strict=True)
            if records
        ][:STATES_SHOWN]

    def anchors_in(self, agent_id: str, threads: Sequence[tuple[Session, Thread]]) -> list[Anchor]:
        settings = self._settings.for_agent(agent_id).anchors
        return anchors_of([(session.session_id, thread.anchors) for session, thread in threads], settings, now())

    def topics_in(self, agent_id: str, thread: Thread) -> list[Topic]:
        """What the conversation is about: not what one was about that was had under the same key long before."""
        settings = self._settings.for_agent(agent_id).topic_tracking
        return topics_of(since(thread.topics, thread.begun_at), settings)

    async def facts(self, scope: Scope, prompt: str) -> tuple[Session | None, Thread, Follows]:
        """The session, what its turns are about, and how a prompt goes on from it."""
        (session, newest), thread = await asyncio.gather(
            self._store.session_and_newest(scope, limit=NEWEST_LOOKED_AT), thread_of(self._store, scope)
        )
        return session, thread, self._follows(session, newest, thread, prompt)

    def _follows(
        self, session: Session | None, newest: Sequence[LoggedMessage], thread: Thread, prompt: str = ""
    ) -> Follows:
        """How a prompt goes on from the session, whether the host has sent it already or is about to."""
        prompt_seq, at = 0, now()
        if newest and prompt and _is_same(newest[0].message, prompt):
            prompt_seq, at = newest[0].seq, _said_at(newest[0])
            newest = newest[1:]
        newest = [one for one in newest if one.entry.noise is None] or newest[:1]
        if session is None or not newest:
            return Follows(None, prompt_seq=prompt_seq)
        last_at = _said_at(newest[0])
        gaps = self._settings.for_agent(session.agent_id).session
        info = SessionInfo(
            session_id=session.session_id,
            exchanges=thread.exchanges,
            started_at=min(thread.begun_at or session.started_at, last_at),
            last_at=last_at,
            gap="new"  # ended on purpose: however soon it goes on, it is another conversation
            if session.ended_at is not None
            else SessionGaps(interrupted=gaps.interrupted_gap, new=gaps.new_session_gap).between(last_at, at),
        )
        return Follows(info, _last_words(newest), prompt_seq)

    async def last_time(
        self, scope: Scope, session: Session | None, thread: Thread, follows: Follows
    ) -> LastTime | None:
        """The conversation before: the same one where it was silent for long, else the agent's newest other."""
        if session is None or follows.info is None:
            others = [one for one in await self.newest(scope.agent_id) if one.session_id != scope.session_id]
            if not others:
                return None
            # What was imported last need not be the newest, and no clock is ahead of ours for ever.
            session = max(others, key=lambda one: min(one.last_at, now()))
            thread = await told_thread(self._store, _scope(session))
            follows = await self._stands(session, thread)
        states = await self.states([session])
        return LastTime(
            follows.info.last_at if follows.info else session.last_at,
            states[0].records if states else (),
            self.topics_in(scope.agent_id, thread),
            follows.last_said,
            is_here=session.session_id == scope.session_id,
            session_id=session.session_id,
        )

    # ── how ──

    async def _stands(self, session: Session, thread: Thread) -> Follows:
        """How it would be gone on with."""
        newest = await self._store.messages_before(_scope(session), before_seq=ANY_SEQ, limit=NEWEST_LOOKED_AT)
        return self._follows(session, newest, thread)

    async def _threads(self, agent_id: str, session_id: str | None) -> list[tuple[Session, Thread]]:
        if session_id is None:
            return await self.threads(await self.newest(agent_id))
        session = await self._store.session(Scope(agent_id=agent_id, session_id=session_id))
        return await self.threads([session] if session and session.last_seq else [])

    def _topics(self, agent_id: str, threads: Sequence[tuple[Session, Thread]], session_id: str | None) -> list[Topic]:
        if session_id is not None and threads:
            return self.topics_in(agent_id, threads[0][1])
        settings = self._settings.for_agent(agent_id).topic_tracking
        return merged([since(thread.topics, thread.begun_at) for _, thread in threads], settings, now())

    async def _record(
        self, verb: str, agent_id: str, session_id: str | None, by: Caller, details: dict[str, int]
    ) -> None:
        draft = AuditDraft(verb=verb, actor=by.name, session_id=session_id, details=dict(details))
        await self._store.record(agent_id, draft)


def _scope(session: Session) -> Scope:
    return Scope(agent_id=session.agent_id, session_id=session.session_id)


def _said_at(one: LoggedMessage) -> datetime:
    """By the host's clock where it said: what is imported was not said now."""
    return one.message.ts or one.received_at


def _is_said(one: LoggedMessage) -> bool:
    return one.message.role == "user" and one.entry.noise is None and one.message.origin in (None, "", "user")


def _last_words(newest_first: Sequence[LoggedMessage]) -> str:
    """What the user said last."""
    return next((own_text(one.message.content) for one in newest_first if _is_said(one)), "")


def _is_same(message: Message, prompt: str) -> bool:
    text = text_of(message.content) if message.role == "user" else ""
    # Hosts trim and wrap; what is of quite another length is something else, and need not be read.
    return abs(len(text) - len(prompt)) <= len(prompt) // 10 + 10 and text.split() == prompt.split()
