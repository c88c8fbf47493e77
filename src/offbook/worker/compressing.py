"""The background's way from the log to summaries: reads a session's news, summarises what is due, merges what gathered.

Nothing is remembered of what is left to do: what no summary stands for is found from the summaries there are. So a
piece that broke off anywhere is done again, and what a model had answered by then is not paid for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from offbook.context.cover import SHORTEST_REST, due, left_over, next_merge
from offbook.context.pending_messages import Standings, warmed
from offbook.context.slots import Slots
from offbook.log.store import ExaminedMessage, Store
from offbook.model.errors import StoreError
from offbook.model.settings import Settings
from offbook.model.summary import CompressionEstimate, Summary
from offbook.model.types import Scope, Session, now
from offbook.models.tokens import CHARS_PER_TOKEN
from offbook.worker.attending import Attending
from offbook.worker.drafting import Drafting
from offbook.worker.writing import Writer

PIECE_CHARS = 200_000
"""Read of one session before it is another's turn."""
LEFT_OVER_LOOKED_AT = 300


class Compressing:
    def __init__(
        self,
        store: Store,
        settings: Settings,
        standings: Standings,
        writer: Writer,
        drafting: Drafting,
        slots: Slots,
        attending: Attending,
    ) -> None:
        self._store = store
        self._settings = settings
        self._standings = standings
        self._writer = writer
        self._drafting = drafting
        self._slots = slots
        self._attending = attending
        self._waiting: dict[str, dict[str, None]] = {}
        self._in_hand: str | None = None
        self._settled: dict[Scope, tuple[int, bool, bool]] = {}
        """Of the sessions with nothing left to do, at which stage that was."""

    def note(self, scope: Scope) -> None:
        """The session has news, or is over."""
        self._waiting.setdefault(scope.agent_id, {})[scope.session_id] = None

    def waiting(self, agent_id: str | None = None) -> int:
        """Sessions that are still to be looked at."""
        if agent_id is not None:
            return len(self._waiting.get(agent_id, ())) + (self._in_hand == agent_id)
        return sum(map(len, self._waiting.values())) + (self._in_hand is not None)

    async def note_changed(self, agent_id: str) -> bool:
        """Every session that has grown or is over since it was last looked at: one that falls silent tells nobody.
        Whether there are any."""
        found = False
        async for session in self._sessions(agent_id, None):
            scope = Scope(agent_id=agent_id, session_id=session.session_id)
            if self._settled.get(scope) != self._stage(session):
                self.note(scope)
                found = True
        return found

    async def note_all(self, agent_id: str) -> None:
        """Every session of the agent is looked at once."""
        async for session in self._sessions(agent_id, None):
            self.note(Scope(agent_id=agent_id, session_id=session.session_id))

    async def estimate(self, agent_id: str, session_id: str | None, *, again: int = 0) -> CompressionEstimate:
        """What is left to summarise, reckoned from characters: it is told before anything is read. `again` are the
        summaries that are to be written again besides."""
        settings = self._settings.for_agent(agent_id)
        sessions = source_tokens = chunks = 0
        async for session in self._sessions(agent_id, session_id):
            tokens = await self._unsummarised_tokens(session)
            boundary = 0 if self._is_over(session) else settings.pruning_boundary_tokens
            due_tokens = tokens - boundary
            if due_tokens >= (self._shortest_rest(agent_id) if self._is_over(session) else settings.chunk_tokens):
                sessions += 1
                source_tokens += due_tokens
                chunks += max(1, due_tokens // settings.chunk_tokens)
        summaries = chunks + chunks // settings.merge_threshold + chunks // settings.merge_threshold**2
        usage = self._writer.expected(agent_id, summaries + again)
        counts = await self._store.summary_counts(agent_id)
        return CompressionEstimate(
            agent_id=agent_id,
            sessions=sessions,
            waiting=self.waiting(agent_id),
            source_tokens=source_tokens,
            summaries=summaries,
            again=again,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            dollars=usage.dollars,
            summarizer=self._writer.names(agent_id)[0],
            counts={f"L{level}": count for level, count in sorted(counts.items())},
        )

    async def _sessions(self, agent_id: str, session_id: str | None) -> AsyncIterator[Session]:
        if session_id is not None:
            session = await self._store.session(Scope(agent_id=agent_id, session_id=session_id))
            if session is not None:
                yield session
            return
        after: str | None = None
        while page := await self._store.sessions_after(agent_id, after=after):
            for session in page:
                yield session
            after = page[-1].session_id

    async def _unsummarised_tokens(self, session: Session) -> int:
        scope = Scope(agent_id=session.agent_id, session_id=session.session_id)
        through = await self._store.summarised_through(scope)
        done = 0
        if through:
            examined = await self._store.examined_messages(scope, after_seq=through - 1, limit=1)
            done = examined[0].chars_through if examined and isinstance(examined[0], ExaminedMessage) else 0
        return max(0, session.chars - done) // CHARS_PER_TOKEN

    async def run(self, agent_id: str) -> bool:
        """One piece of work for the agent; True where there is none left."""
        sessions = self._waiting.get(agent_id, {})
        if not sessions:
            self._waiting.pop(agent_id, None)
            return True
        session_id = next(iter(sessions))
        del sessions[session_id]
        self._in_hand = agent_id
        is_done = False
        try:
            is_done = await self._advance(Scope(agent_id=agent_id, session_id=session_id))
        finally:
            self._in_hand = None
            if not is_done:
                sessions[session_id] = None  # behind the others
        return not sessions

    async def _advance(self, scope: Scope) -> bool:
        """A bounded step of one session; True where it is done."""
        session = await self._store.session(scope)
        if session is None or not session.last_seq:
            return True
        has_state = await self._attending.advance(scope, session)
        is_over = self._is_over(session)
        async with self._standings.following(scope, session, most_chars=PIECE_CHARS) as (standing, has_all):
            if has_all and is_over:
                standing.end(self._shortest_rest(scope.agent_id))
            finished = standing.finished
            boundary = 0 if is_over else self._settings.for_agent(scope.agent_id).pruning_boundary_tokens
            rest = standing.rest_tokens
            # So that whoever asks for a context finds the digests made.
            stretches = standing.stretches()
        await asyncio.to_thread(warmed, stretches)
        ready = finished[: due([one.stretch for one in finished], rest, boundary)]
        if ready:
            try:
                draft = await self._drafting.chunk(scope, ready[0])
                await self._drafting.keep(scope.agent_id, scope.session_id, draft)
            except StoreError:
                self._standings.forget(scope)  # what it knows may be out of date: the next try reads it anew
                raise
            async with standing.busy:
                standing.forget_through(ready[0].stretch.last_seq)
        merged = await self._merge(scope.agent_id, scope.session_id)
        if has_all and is_over and len(ready) <= 1 and not merged:
            merged = await self._merge_left_over(scope.agent_id)
        is_done = has_all and has_state and len(ready) <= 1 and not merged
        if is_done:
            self._settled[scope] = self._stage(session)
            self._slots.prepare_soon(scope)
        return is_done

    def _stage(self, session: Session) -> tuple[int, bool, bool]:
        """What there is to do depends on: how long it is, whether it is over, whether it is past."""
        return session.last_seq, self._is_over(session), self._is_past(session)

    def _is_over(self, session: Session) -> bool:
        return session.ended_at is not None or self._is_past(session)

    def _is_past(self, session: Session) -> bool:
        return now() - session.last_at >= self._settings.for_agent(session.agent_id).session.new_session_gap

    def _shortest_rest(self, agent_id: str) -> int:
        return max(1, self._settings.for_agent(agent_id).chunk_tokens // SHORTEST_REST)

    # ── merging ──

    async def _merge(self, agent_id: str, session_id: str) -> bool:
        """Merges once, where a level of the session has gathered enough."""
        settings = self._settings.for_agent(agent_id)
        for level in range(1, settings.max_levels):
            unmerged = await self._store.unmerged(
                agent_id, level=level, session_id=session_id, limit=settings.merge_threshold
            )
            if sources := next_merge(unmerged, settings.merge_threshold):
                await self._merge_into_one(agent_id, session_id, sources)
                return True
        return False

    async def _merge_left_over(self, agent_id: str) -> bool:
        """What sessions leave unmerged is merged across them, in order of time (C8), once they have been silent for
        long: one that goes on wants its summaries for itself."""
        settings = self._settings.for_agent(agent_id)
        for level in range(1, settings.max_levels):
            unmerged = await self._store.unmerged(agent_id, level=level, limit=LEFT_OVER_LOOKED_AT)
            if len(unmerged) < settings.merge_threshold:
                continue
            over = {}
            for session_id in {span.session_id for summary in unmerged for span in summary.draft.spans}:
                session = await self._store.session(Scope(agent_id=agent_id, session_id=session_id))
                over[session_id] = session is not None and self._is_past(session)
            if sources := next_merge(left_over(unmerged, over.__getitem__), settings.merge_threshold):
                await self._merge_into_one(agent_id, None, sources)
                return True
        return False

    async def _merge_into_one(self, agent_id: str, session_id: str | None, sources: Sequence[Summary]) -> None:
        draft = await self._drafting.merge(agent_id, sources)
        await self._drafting.keep(agent_id, session_id, draft)
