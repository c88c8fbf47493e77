"""What the verbs do with contexts and summaries: swap, expand, inspect, replay."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from offbook.content import render
from offbook.errors import NotFound, WrongShape
from offbook.protocols import Store
from offbook.reading import Built, SessionReader
from offbook.settings import Settings
from offbook.summaries import (
    Expansion,
    HandedContext,
    HandedKind,
    Ledger,
    Replay,
    ReplayEvent,
    SourceLine,
    SourceSpan,
    SummaryPage,
    Swap,
    view_of,
)
from offbook.tokens import CHARS_PER_TOKEN, estimate_tokens
from offbook.types import AuditDraft, Caller, CompressedContext, LoggedMessage, Mark, Message, Scope, Session, now

MOST_FITTINGS = 4
"""A context is fitted by characters and judged by tokens: a script that takes more of these is fitted again."""
MESSAGE_TOKENS = 4
"""What a provider counts for a message besides its text."""
REPLAYED_AT_ONCE = 500
MOST_REPLAYED = 20_000
EVENTS_LOOKED_AT = 1_000
TELLING_VERBS = frozenset(
    {"swap", "hooks/session-start", "hooks/session-end", "hooks/pre-compaction", "hooks/post-compaction", "compress"}
)
"""Events that say why a context was what it was."""


class Contexts:
    def __init__(self, store: Store, settings: Settings, reader: SessionReader) -> None:
        self._store = store
        self._settings = settings
        self._reader = reader
        self._swapping = asyncio.Lock()

    # ── swap ──

    async def swap(self, scope: Scope, *, used_tokens: int, context_window: int, force: bool, by: Caller) -> Swap:
        """Slot B takes the place of slot A where that is due. Asked again with nothing new, it is the same answer."""
        started = time.perf_counter()
        async with self._swapping:
            session = await self._store.session(scope)
            handed = await self._store.handed(scope) if session else None
            if handed is not None and session is not None and _is_repeat(handed, session, used_tokens, context_window):
                answer = _swapped(handed, "swapped before: nothing has come since", started)
            else:
                answer = await self._swap(scope, session, used_tokens, context_window, force, by, started)
                if answer.swapped:
                    return answer  # recorded with the swap itself
        details = {"swapped": answer.swapped, "generation": answer.generation, "reason": answer.reason}
        await self._store.record(scope.agent_id, _event("swap", by, scope, details))
        return answer

    async def _swap(
        self,
        scope: Scope,
        session: Session | None,
        used_tokens: int,
        context_window: int,
        force: bool,
        by: Caller,
        started: float,
    ) -> Swap:
        compaction = self._settings.for_agent(scope.agent_id).memory.compaction
        generation = session.generation if session else 0
        if session is None or not session.last_seq:
            return _kept(f"nothing is known of the session {scope.session_id!r}", generation, used_tokens, started)
        threshold = int(context_window * compaction.threshold)
        if used_tokens < threshold and not force:
            reason = f"{used_tokens:,} of {context_window:,} tokens are in use; it is due at {threshold:,}"
            return _kept(reason, generation, used_tokens, started)
        target = max(1, int(context_window * compaction.target_size))
        built, tokens_after = await self._fitted(scope, session, target)
        if tokens_after >= used_tokens and not force:
            reason = f"the new context would have {tokens_after:,} tokens, no fewer than the {used_tokens:,} in use"
            return _kept(reason, generation, used_tokens, started)
        handed = _handed(
            built.context,
            "swap",
            generation + 1,
            await self._reader.ledger(scope, session, built),
            used_tokens=used_tokens,
            context_window=context_window,
            tokens_after=tokens_after,
        )
        reason = "forced" if used_tokens < threshold else f"{used_tokens:,} of {context_window:,} tokens were in use"
        details = {
            "swapped": True,
            "generation": handed.generation,
            "reason": reason,
            "usedTokens": used_tokens,
            "contextWindow": context_window,
            **what_was_shown(built.context),
        }
        await self._store.hand_over(scope, handed, _event("swap", by, scope, details))
        return _swapped(handed, reason, started)

    async def _fitted(self, scope: Scope, session: Session, target_tokens: int) -> tuple[Built, int]:
        max_chars = target_tokens * CHARS_PER_TOKEN
        for _ in range(MOST_FITTINGS):
            built = await self._reader.built(scope, session, max_chars)
            tokens = await asyncio.to_thread(tokens_of, built.context.messages)
            if tokens <= target_tokens:
                break
            max_chars = max(1, int(built.context.chars * target_tokens / tokens * 0.97))
        return built, tokens

    # ── a context for a session that starts ──

    async def started(self, scope: Scope, session: Session, max_chars: int, by: Caller) -> CompressedContext:
        """What the agent goes on with, kept so that it can be shown again."""
        built = await self._reader.built(scope, session, max_chars)
        handed = _handed(
            built.context,
            "start",
            session.generation,
            Ledger(),
            used_tokens=0,
            context_window=0,
            tokens_after=await asyncio.to_thread(tokens_of, built.context.messages),
        )
        await self._store.hand_over(scope, handed, None)
        event = _event("hooks/session-start", by, scope, what_was_shown(built.context))
        await self._store.mark(scope, Mark(kind="start", at=now()), event)
        return built.context

    # ── summaries and what is behind them ──

    async def expand(
        self,
        agent_id: str,
        *,
        summary_id: str | None,
        span: SourceSpan | None,
        after: str | None,
        limit: int,
        by: Caller,
    ) -> Expansion:
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
        summary = await self._store.summary(agent_id, summary_id)
        if summary is None:
            raise NotFound(f"there is no summary {summary_id!r} of agent {agent_id!r}: `offbook inspect` lists them")
        return summary.draft.spans

    async def summaries(
        self, agent_id: str, *, level: int | None, session_id: str | None, before: str | None, limit: int, by: Caller
    ) -> SummaryPage:
        found = await self._store.summaries(
            agent_id, level=level, session_id=session_id, before=before, limit=limit + 1
        )
        details = {"level": level, "summaries": min(len(found), limit)}
        await self._store.record(
            agent_id, AuditDraft(verb="summaries", actor=by.name, session_id=session_id, details=details)
        )
        shown = found[:limit]
        return SummaryPage(
            summaries=[view_of(summary) for summary in shown], next=shown[-1].id if len(found) > limit else None
        )

    # ── what was in the context then ──

    async def replay(self, scope: Scope, at: datetime, *, by: Caller) -> Replay:
        handed = await self._store.handed(scope, at=at)
        after_seq = handed.last_seq if handed else 0
        since, is_all = await self._since(scope, after_seq, at)
        whole = [await self._reader.whole(scope, logged) for logged in since]
        messages = [*(handed.messages if handed else []), *whole]
        events = await self._store.newest_audit_events(
            scope.agent_id, session_id=scope.session_id, limit=EVENTS_LOOKED_AT
        )
        why = [
            ReplayEvent(at=event.at, verb=event.verb, actor=event.actor, details=event.details)
            for event in events
            if event.verb in TELLING_VERBS and event.at <= at
        ]
        await self._store.record(scope.agent_id, _event("replay", by, scope, {"at": at.isoformat()}))
        return Replay(
            session_id=scope.session_id,
            agent_id=scope.agent_id,
            at=at,
            generation=handed.generation if handed else 0,
            kind=handed.kind if handed else "log",
            handed_at=handed.at if handed else None,
            memory=handed.memory if handed else "",
            messages=messages,
            last_seq=since[-1].seq if since else after_seq,
            is_exact=is_all and not _compacted_by_itself(why, handed),
            why=why[-50:],
        )

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


def tokens_of(messages: Sequence[Message]) -> int:
    """By our estimate, which is the same for every model (D18)."""
    return sum(estimate_tokens(render(message)) + MESSAGE_TOKENS for message in messages)


def what_was_shown(context: CompressedContext) -> dict[str, Any]:
    """Enough to prove later what exactly was handed out, without keeping the text twice."""
    return {
        "maxChars": context.max_chars,
        "chars": context.chars,
        "generation": context.generation,
        "lastSeq": context.covers.last_seq,
        "sha256": sha256(context.text.encode("utf-8", "surrogatepass")).hexdigest(),
    }


def _is_repeat(handed: HandedContext, session: Session, used_tokens: int, context_window: int) -> bool:
    return (
        handed.kind == "swap"
        and handed.last_seq == session.last_seq
        and (handed.used_tokens, handed.context_window) == (used_tokens, context_window)
    )


def _handed(
    context: CompressedContext,
    kind: HandedKind,
    generation: int,
    ledger: Ledger,
    *,
    used_tokens: int,
    context_window: int,
    tokens_after: int,
) -> HandedContext:
    has_memory = bool(context.parts) and context.parts[0].kind == "summary" and bool(context.messages)
    first = context.messages[0].content if has_memory else ""
    return HandedContext(
        kind=kind,
        generation=generation,
        at=now(),
        last_seq=context.covers.last_seq,
        used_tokens=used_tokens,
        context_window=context_window,
        tokens_after=tokens_after,
        max_chars=context.max_chars,
        memory=first if isinstance(first, str) else "",
        text=context.text,
        messages=context.messages,
        parts=context.parts,
        ledger=ledger,
    )


def _swapped(handed: HandedContext, reason: str, started: float) -> Swap:
    return Swap(
        swapped=True,
        reason=reason,
        generation=handed.generation,
        messages=handed.messages,
        tokens_before=handed.used_tokens,
        tokens_after=handed.tokens_after,
        ledger=handed.ledger,
        took_ms=_milliseconds(started),
    )


def _kept(reason: str, generation: int, used_tokens: int, started: float) -> Swap:
    return Swap(
        swapped=False,
        reason=reason,
        generation=generation,
        messages=[],
        tokens_before=used_tokens,
        tokens_after=used_tokens,
        ledger=Ledger(),
        took_ms=_milliseconds(started),
    )


def _milliseconds(started: float) -> float:
    return round((time.perf_counter() - started) * 1_000, 3)


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
    )


def _compacted_by_itself(why: Sequence[ReplayEvent], handed: HandedContext | None) -> bool:
    """Whether the host went on with something we did not give it and do not have."""
    since = handed.at if handed else None
    return any(event.verb == "hooks/post-compaction" and (since is None or event.at > since) for event in why)


def _event(verb: str, by: Caller, scope: Scope, details: dict[str, Any]) -> AuditDraft:
    return AuditDraft(verb=verb, actor=by.name, session_id=scope.session_id, details=details)
