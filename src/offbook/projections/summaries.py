"""From the log to summaries: reads a session's news, summarises what is due, merges what gathered.

Nothing is remembered of what is left to do: what no summary stands for is found from the summaries there are. So a
piece that broke off anywhere is done again, and what a model had answered by then is not paid for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from offbook.context.cover import due, least_rest, left_over, next_merge
from offbook.context.pending_messages import PendingMessages, warmed
from offbook.log.store import ExaminedMessage, Store
from offbook.model.errors import StoreCorrupt, StoreError
from offbook.model.settings import Settings
from offbook.model.status import SummaryStatus
from offbook.model.summary import CompressionEstimate, Summary, summary_id
from offbook.model.types import Scope, Session, now
from offbook.models.tokens import CHARS_PER_TOKEN
from offbook.projections.base import Batch, Erased, Finding, Progress, Removal
from offbook.projections.log_pages import sessions_of
from offbook.projections.summary_drafts import SummaryDrafter
from offbook.projections.summary_rewrites import SummaryRewriter
from offbook.projections.summary_writer import Writer

PIECE_CHARS = 200_000
"""Read of one session before it is another's turn."""
LEFT_OVER_LOOKED_AT = 300
RESTORE = "`offbook restore` from a backup made before: the messages they were made of are untouched"


class _Stage(NamedTuple):
    """What there is to do in a session depends on it."""

    last_seq: int
    is_over: bool
    is_past: bool


class Summaries:
    name = "summaries"

    def __init__(
        self,
        store: Store,
        settings: Settings,
        pending_messages: PendingMessages,
        writer: Writer,
        drafting: SummaryDrafter,
    ) -> None:
        self._store = store
        self._settings = settings
        self._pending_messages = pending_messages
        self._writer = writer
        self._drafting = drafting
        self._rewriting = SummaryRewriter(store, pending_messages, writer, drafting)
        self._settled: dict[Scope, _Stage] = {}
        """Of the sessions with nothing left to do, at which stage that was."""

    # ── as a projection ──

    async def advance(self, batch: Batch) -> Progress:
        """A bounded step of one session. Without one: what is written again, where somebody asked for it; else every
        session that has grown or is over since it was last looked at, as one that falls silent tells nobody."""
        agent_id = batch.agent_id
        if batch.session_id is not None:
            return Progress(is_done=await self._advance(Scope(agent_id=agent_id, session_id=batch.session_id)))
        if self._rewriting.waiting(agent_id):
            return Progress(is_done=await self._rewriting.run(agent_id))
        changed = [one async for one in sessions_of(self._store, agent_id) if self._has_changed(one)]
        return Progress(sessions=tuple(one.session_id for one in changed), is_idle=not changed)

    async def forget(self, erased: Erased) -> Removal:
        """They were written again without it, with the log; what a model could say better is written once more."""
        if not erased.is_dry_run:
            self._settled = {scope: at for scope, at in self._settled.items() if scope.agent_id != erased.agent_id}
            if erased.spans and self._writer.has_models(erased.agent_id):
                self._rewriting.want(erased.agent_id, None)
        return Removal()

    async def rebuild(self, agent_id: str) -> None:
        """Each is written again in its place, the lowest level first: what a model answered before is not asked for
        twice. What no summary stands for yet is found by `advance`."""
        for level in sorted(await self._store.summary_counts(agent_id)):
            before: str | None = None
            while page := await self._store.summaries(agent_id, level=level, before=before):
                before = page[-1].id
                for summary in page:
                    await self._write_again(agent_id, summary)
        self._settled = {scope: at for scope, at in self._settled.items() if scope.agent_id != agent_id}

    def let_go(self, agent_id: str) -> None:
        self._settled = {scope: at for scope, at in self._settled.items() if scope.agent_id != agent_id}
        self._rewriting.let_go(agent_id)

    async def check(self, agent_id: str, erased: Erased | None = None) -> list[Finding]:
        """Summaries that stand for messages that are not there, or cannot be read."""
        if erased is not None:
            return []  # texts beside the log, which are all looked through
        found: list[Finding] = []
        for level, count in sorted((await self._store.summary_counts(agent_id)).items()):
            for number in range(1, count + 1):
                id_ = summary_id(level, number)
                try:
                    summary = await self._store.summary(agent_id, id_)
                    what = "it is missing" if summary is None else await self._fault(agent_id, summary)
                except StoreCorrupt as error:
                    what = error.detail
                found += [Finding(f"summary {id_}", what, RESTORE)] if what else []
        return found

    async def _fault(self, agent_id: str, summary: Summary) -> str | None:
        for span in summary.draft.spans:
            session = await self._store.session(Scope(agent_id=agent_id, session_id=span.session_id))
            if session is None or not 1 <= span.first_seq <= span.last_seq <= session.last_seq:
                return f"it stands for messages of {span.session_id!r} that are not there"
        # Of very little that was said, nothing may be worth a line: then it counts no tokens, either.
        return "its text is gone" if summary.draft.tokens and not summary.draft.text.strip() else None

    async def _write_again(self, agent_id: str, summary: Summary) -> None:
        draft, span = summary.draft, summary.draft.spans[0]
        if draft.sources:
            read = [await self._store.summary(agent_id, source) for source in draft.sources]
            again = await self._drafting.merge(agent_id, [source for source in read if source is not None])
        else:
            scope = Scope(agent_id=agent_id, session_id=span.session_id)
            again = await self._drafting.chunk(
                scope, await self._pending_messages.read(scope, span.first_seq, span.last_seq)
            )
        session_id = span.session_id if len({each.session_id for each in draft.spans}) == 1 else None
        if again != draft:
            await self._drafting.keep(agent_id, session_id, again, replaced=summary.id)

    # ── what is asked of it ──

    def look_again(self, agent_id: str) -> None:
        """At every session of the agent's, when it is next its turn."""
        self._settled = {scope: at for scope, at in self._settled.items() if scope.agent_id != agent_id}

    def want_again(self, agent_id: str, session_id: str | None) -> None:
        """Have what a better summarizer can write now written again."""
        self._rewriting.want(agent_id, session_id)

    def waiting(self, agent_id: str | None = None) -> int:
        """What is to be written again and is not."""
        return self._rewriting.waiting(agent_id)

    async def status(self, agent_id: str, waiting: int) -> SummaryStatus:
        counts = await self._store.summary_counts(agent_id)
        return SummaryStatus(
            counts={f"L{level}": count for level, count in sorted(counts.items())},
            waiting=waiting,
            summarizers=self._writer.names(agent_id),
            troubles=self._writer.troubles(agent_id),
            spending=await self._writer.spending(agent_id),
        )

    async def estimate(
        self, agent_id: str, session_id: str | None, *, is_again: bool, waiting: int
    ) -> CompressionEstimate:
        """What is left to summarise, reckoned from characters: it is told before anything is read. With `is_again`
        also what would be written again. `waiting`: sessions that are still to be looked at."""
        again = await self._rewriting.count(agent_id, session_id) if is_again else 0
        settings = self._settings.for_agent(agent_id)
        sessions = source_tokens = chunks = 0
        async for session in self._sessions(agent_id, session_id):
            through = await self._store.summarised_through(Scope(agent_id=agent_id, session_id=session.session_id))
            tokens = await self._unsummarised_tokens(session, through)
            stage = self._stage(session)
            due_tokens = tokens - (0 if stage.is_over else settings.pruning_boundary_tokens)
            least = self._least_rest(session, stage, through) if stage.is_over else settings.chunk_tokens
            if due_tokens >= least:
                sessions += 1
                source_tokens += due_tokens
                chunks += max(1, due_tokens // settings.chunk_tokens)
        summaries = chunks + chunks // settings.merge_threshold + chunks // settings.merge_threshold**2
        usage = self._writer.expected(agent_id, summaries + again)
        counts = await self._store.summary_counts(agent_id)
        return CompressionEstimate(
            agent_id=agent_id,
            sessions=sessions,
            waiting=waiting,
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
        async for session in sessions_of(self._store, agent_id):
            yield session

    async def _unsummarised_tokens(self, session: Session, through: int) -> int:
        scope = Scope(agent_id=session.agent_id, session_id=session.session_id)
        done = 0
        if through:
            examined = await self._store.examined_messages(scope, after_seq=through - 1, limit=1)
            done = examined[0].chars_through if examined and isinstance(examined[0], ExaminedMessage) else 0
        return max(0, session.chars - done) // CHARS_PER_TOKEN

    # ── one session ──

    async def _advance(self, scope: Scope) -> bool:
        """A bounded step of one session; True where it is done."""
        session = await self._store.session(scope)
        if session is None or not session.last_seq:
            return True
        # Looked at once: one that falls silent meanwhile is looked at again.
        stage = self._stage(session)
        async with self._pending_messages.following(scope, session, most_chars=PIECE_CHARS) as (pending, has_all):
            if has_all and stage.is_over:
                pending.end(self._least_rest(session, stage, pending.summarised_through))
            finished = pending.finished
            boundary = 0 if stage.is_over else self._settings.for_agent(scope.agent_id).pruning_boundary_tokens
            rest = pending.rest_tokens
            # So that whoever asks for a context finds the digests made.
            message_spans = pending.message_spans()
        await asyncio.to_thread(warmed, message_spans)
        ready = finished[: due([one.message_span for one in finished], rest, boundary)]
        if ready:
            try:
                draft = await self._drafting.chunk(scope, ready[0])
                async with pending.busy:
                    await self._drafting.keep(scope.agent_id, scope.session_id, draft)
                    pending.forget_through(ready[0].message_span.last_seq)
            except StoreError:
                self._pending_messages.forget(scope)  # what it knows may be out of date: the next try reads it anew
                raise
        merged = await self._merge(scope.agent_id, scope.session_id)
        if has_all and stage.is_over and len(ready) <= 1 and not merged:
            merged = await self._merge_left_over(scope.agent_id)
        is_done = has_all and len(ready) <= 1 and not merged
        if is_done:
            self._settled[scope] = stage
        return is_done

    def _has_changed(self, session: Session) -> bool:
        scope = Scope(agent_id=session.agent_id, session_id=session.session_id)
        return self._settled.get(scope) != self._stage(session)

    def _stage(self, session: Session) -> _Stage:
        is_past = self._is_past(session)
        return _Stage(session.last_seq, is_over=is_past or session.ended_at is not None, is_past=is_past)

    def _is_past(self, session: Session) -> bool:
        return now() - session.last_at >= self._settings.for_agent(session.agent_id).session.new_session_gap

    def _least_rest(self, session: Session, stage: _Stage, summarised_through: int) -> int:
        chunk_tokens = self._settings.for_agent(session.agent_id).chunk_tokens
        return least_rest(chunk_tokens, is_past=stage.is_past, has_summaries=summarised_through > 0)

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
