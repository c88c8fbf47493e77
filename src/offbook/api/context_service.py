"""What is behind a summary, which summaries there are, and what was in a context at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from offbook.api.background import Background
from offbook.context.summary_prompts import instructions_of
from offbook.context.swaps import text_digest, what_was_shown
from offbook.ingest.entries import in_utc
from offbook.ingest.scope import checked_session
from offbook.log.reading import LogReader
from offbook.log.store import Store
from offbook.model.errors import NotFound, WrongShape
from offbook.model.summary import (
    CompressionEstimate,
    Expansion,
    HandedContext,
    Ledger,
    Replay,
    ReplayEvent,
    SourceLine,
    SourceSpan,
    SummaryPage,
    view_of,
)
from offbook.model.types import (
    EMBEDDED,
    AuditDraft,
    AuditEvent,
    Caller,
    CompressedContext,
    LoggedMessage,
    Scope,
    session_event,
)

LESSON = "lesson-"
"""How the id of a lesson begins, and that of no summary."""
REPLAYED_AT_ONCE = 500
MOST_REPLAYED = 20_000
EVENTS_LOOKED_AT = 1_000
EVENTS_SHOWN, SUMMARIES_SHOWN, TURNS_SHOWN = 50, 10, 3
REPLAYED_VERBS = ("swap", "hooks/session-start", "hooks/session-end", "hooks/pre-compaction", "hooks/post-compaction")
"""Events that say why a context was what it was."""


class ContextService:
    def __init__(self, store: Store, reader: LogReader, background: Background) -> None:
        self._store = store
        self._reader = reader
        self._background = background

    # ── the context that stands by ──

    async def get_compressed_context(self, scope: Scope, max_chars: int, *, by: Caller = EMBEDDED) -> CompressedContext:
        """The session in at most `max_chars` characters."""
        if max_chars < 1:
            raise WrongShape(f"`maxChars` is {max_chars}: ask for at least 1 character")
        context = await self._background.contexts.context(scope, await self._store.session(scope), max_chars)
        event = session_event("getCompressedContext", by, scope, what_was_shown(context))
        await self._store.record(scope.agent_id, event)
        return context

    async def compress(
        self,
        agent_id: str,
        *,
        session_id: str | None = None,
        dry_run: bool = False,
        again: bool = False,
        by: Caller = EMBEDDED,
    ) -> CompressionEstimate:
        """Look for what is to be summarised, in one session or in all, and say what that takes; with `again` also for
        what a lesser summarizer wrote than can be had now."""
        checked_session(session_id)
        estimate = await self._background.compression_estimate(agent_id, session_id, again=again)
        details = {"dryRun": dry_run, "sourceTokens": estimate.source_tokens, "dollars": estimate.dollars}
        details |= {"again": True} if again else {}
        await self._store.record(
            agent_id, AuditDraft(verb="compress", actor=by.name, session_id=session_id, details=details)
        )
        if not dry_run:
            await self._background.compress(agent_id, session_id, again=again)
        return estimate

    # ── summaries and what is behind them ──

    async def expand(
        self,
        agent_id: str,
        *,
        summary_id: str | None = None,
        span: SourceSpan | None = None,
        after: str | None = None,
        limit: int = 100,
        by: Caller = EMBEDDED,
    ) -> Expansion:
        """The source messages behind a summary, a lesson or a span, verbatim, a page at a time."""
        checked_session(span.session_id if span else None)
        if (summary_id is None) == (span is None):
            raise WrongShape("give either `summaryId` or `span`, not both and not neither")
        spans = [span] if span is not None else await self._spans(agent_id, summary_id or "")
        index, at = _place(after, spans)
        lines: list[SourceLine] = []
        following: str | None = None
        for number, one in enumerate(spans[index:], index):
            scope = Scope(agent_id=agent_id, session_id=one.session_id)
            seq = max(at, one.first_seq - 1) if number == index else one.first_seq - 1
            while seq < one.last_seq and len(lines) < limit:
                page = await self._store.messages(
                    scope, after_seq=seq, limit=min(limit - len(lines), one.last_seq - seq)
                )
                found = await self._reader.lines(scope, page)
                if not found:
                    break
                lines += [_source_line(line, one.session_id) for line in found]
                seq = found[-1].seq
                if len(found) < len(page):  # large ones: the page is full
                    limit = len(lines)
            if len(lines) >= limit and (seq < one.last_seq or number + 1 < len(spans)):
                following = f"{number}:{seq}"
                break
        named = {"summary": summary_id} if span is None else {"span": [span.first_seq, span.last_seq]}
        session_id = spans[0].session_id if len(spans) == 1 else None
        await self._store.record(
            agent_id,
            AuditDraft(verb="expand", actor=by.name, session_id=session_id, details={**named, "messages": len(lines)}),
        )
        return Expansion(spans=spans, messages=lines, summary_id=summary_id, next=following)

    async def _spans(self, agent_id: str, summary_id: str) -> list[SourceSpan]:
        if summary_id.startswith(LESSON):
            return await self._said_at(agent_id, summary_id)
        summary = await self._store.summary(agent_id, summary_id)
        if summary is None:
            raise NotFound(f"there is no summary {summary_id!r} of agent {agent_id!r}: `offbook inspect` lists them")
        return summary.draft.spans

    async def _said_at(self, agent_id: str, lesson_id: str) -> list[SourceSpan]:
        lesson = await self._store.lesson(agent_id, lesson_id)
        if lesson is None:
            raise NotFound(f"there is no lesson {lesson_id!r} of agent {agent_id!r}: `offbook lessons` lists them")
        return [SourceSpan(session_id=one.session_id, first_seq=one.seq, last_seq=one.seq) for one in lesson.sources]

    async def summaries(
        self,
        agent_id: str,
        *,
        level: int | None = None,
        session_id: str | None = None,
        before: str | None = None,
        limit: int = 20,
        ids: Sequence[str] | None = None,
        by: Caller = EMBEDDED,
    ) -> SummaryPage:
        """The agent's summaries, the newest first, or those of these ids, in their order."""
        checked_session(session_id)
        if ids is not None:
            named = [await self._store.summary(agent_id, id_) for id_ in ids]
            found = [each for each in named if each is not None]
            limit = len(found)
        else:
            found = await self._store.summaries(
                agent_id, level=level, session_id=session_id, before=before, limit=limit + 1
            )
        details = {"level": level, "summaries": min(len(found), limit)}
        await self._store.record(
            agent_id, AuditDraft(verb="summaries", actor=by.name, session_id=session_id, details=details)
        )
        shown = found[:limit]
        return SummaryPage(
            summaries=[view_of(summary, instructions=instructions_of(summary.draft)) for summary in shown],
            next=shown[-1].id if len(found) > limit else None,
        )

    # ── what was in the context then ──

    async def replay(self, scope: Scope, at: datetime, *, newest: int | None = None, by: Caller = EMBEDDED) -> Replay:
        """What was in the agent's context then, and why; of its messages all, or the `newest` so many."""
        at = in_utc(at, "at")
        handed = await self._store.handed(scope, at=at)
        after_seq = handed.last_seq if handed else 0
        since, is_all = await self._since(scope, after_seq, at)
        left_out = 0 if newest is None else max(0, len(since) - newest)
        read = [await self._reader.read(scope, logged) for logged in since[left_out:]]
        has_all_parts = not any(missing for _, missing in read)
        events = await self._events_of(scope, REPLAYED_VERBS, at, EVENTS_SHOWN)
        made = await self._events_of(scope, ("compress",), at, SUMMARIES_SHOWN)
        own = await self._events_of(scope, ("hooks/post-compaction",), at, 1)
        turns = await self._events_of(scope, ("prepareTurn",), at, TURNS_SHOWN)
        prepared = await self._store.turn_memory(scope, at=at)
        has_compacted = bool(own) and (handed is None or own[-1].at > handed.at)
        await self._store.record(scope.agent_id, session_event("replay", by, scope, {"at": at.isoformat()}))
        return Replay(
            session_id=scope.session_id,
            agent_id=scope.agent_id,
            at=at,
            generation=handed.generation if handed else 0,
            kind=handed.kind if handed else "log",
            handed_at=handed.at if handed else None,
            memory=handed.memory if handed else "",
            messages=[*(handed.messages if handed and not left_out else []), *(message for message, _ in read)],
            last_seq=since[-1].seq if since else after_seq,
            is_exact=is_all and has_all_parts and not has_compacted and await self._is_as_handed(scope, handed),
            why=sorted(
                [
                    ReplayEvent(at=event.at, verb=event.verb, actor=event.actor, details=event.details)
                    for event in [*events, *made, *turns]
                ],
                key=lambda event: event.at,
            ),
            turn_memory=prepared.text if prepared else "",
            turn_parts=prepared.parts if prepared else [],
            parts=handed.parts if handed else [],
            handed_messages=len(handed.messages) if handed and not left_out else 0,
            left_out=left_out + (len(handed.messages) if handed and left_out else 0),
            used_tokens=handed.used_tokens if handed else 0,
            context_window=handed.context_window if handed else 0,
            tokens_after=handed.tokens_after if handed else 0,
            ledger=handed.ledger if handed else Ledger(),
        )

    async def _events_of(self, scope: Scope, verbs: Sequence[str], at: datetime, limit: int) -> list[AuditEvent]:
        return await self._store.newest_audit_events(
            scope.agent_id, session_id=scope.session_id, verbs=verbs, until=at, limit=limit
        )

    async def _is_as_handed(self, scope: Scope, handed: HandedContext | None) -> bool:
        """Whether the audit chain vouches for what was kept of it."""
        if handed is None:
            return True
        verb = "swap" if handed.kind == "swap" else "hooks/session-start"
        events = await self._store.newest_audit_events(
            scope.agent_id, session_id=scope.session_id, verbs=(verb,), limit=EVENTS_LOOKED_AT
        )
        digest = text_digest(handed.memory, handed.messages)
        return any(event.details.get("sha256") == digest for event in events)

    async def _since(self, scope: Scope, after_seq: int, at: datetime) -> tuple[list[LoggedMessage], bool]:
        found: list[LoggedMessage] = []
        while len(found) < MOST_REPLAYED:
            page = await self._store.messages(scope, after_seq=after_seq, limit=REPLAYED_AT_ONCE)
            earlier = [logged for logged in page if logged.received_at <= at]
            found += earlier
            if len(earlier) < len(page) or len(page) < REPLAYED_AT_ONCE:
                return found, True
            after_seq = page[-1].seq
        return found, False


def _place(after: str | None, spans: Sequence[SourceSpan]) -> tuple[int, int]:
    """Where a page goes on: which of the spans, and after which message of it."""
    if after is None:
        return 0, 0
    number, _, seq = after.partition(":")
    if not (number.isascii() and number.isdigit() and seq.isascii() and seq.isdigit() and int(number) < len(spans)):
        raise WrongShape(f"`after` is {after!r}: give the `next` of the page before")
    return int(number), int(seq)


def _source_line(line: Any, session_id: str) -> SourceLine:
    return SourceLine(
        session_id=session_id,
        seq=line.seq,
        received_at=line.received_at,
        message=line.message,
        noise=line.noise,
        redactions=line.redactions,
        missing_parts=line.missing_parts,
    )
