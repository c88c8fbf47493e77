"""Slot A is what an agent runs on, slot B stands by (`slots`); a swap hands B over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from hashlib import sha256
from typing import Any
from weakref import WeakValueDictionary

from offbook.context.reader import SessionReader
from offbook.context.slots import Slots, tokens_of
from offbook.context.tail import SEPARATOR, shown
from offbook.log.store import Store
from offbook.model.settings import Settings
from offbook.model.summary import HandedContext, HandedKind, Ledger, Swap
from offbook.model.types import EMBEDDED, Caller, CompressedContext, Mark, Message, Scope, Session, now, session_event


class SwapService:
    def __init__(self, store: Store, settings: Settings, reader: SessionReader, slots: Slots) -> None:
        self._store = store
        self._settings = settings
        self._reader = reader
        self._slots = slots
        self._swapping: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()

    # ── the verb ──

    async def swap(
        self, scope: Scope, *, used_tokens: int, context_window: int, force: bool = False, by: Caller = EMBEDDED
    ) -> Swap:
        """Hand over the context that stands by, where the one in use has reached the threshold, or with `force`.
        Atomic; asked again with nothing new it is the same answer."""
        started = time.perf_counter()
        if not self._settings.for_agent(scope.agent_id).enabled:
            # What is said meanwhile is not in the log: a context made of the log would lack it.
            session = await self._store.session(scope)
            reason = "enabled is false: nothing is recorded, so no context can be made"
            answer = _kept(reason, session.generation if session else 0, used_tokens, started)
            details = {"swapped": False, "generation": answer.generation, "reason": reason}
            await self._store.record(scope.agent_id, session_event("swap", by, scope, details))
            return answer
        self._slots.note_window(scope, context_window)
        async with self._swapping.setdefault(scope, asyncio.Lock()):
            session = await self._store.session(scope)
            why = self._why(scope, used_tokens, context_window, force)
            handed = await self._slots.handed(scope, session) if why else None  # large: not read where nothing is due
            if why and handed and session and _is_repeat(handed, session, used_tokens, context_window):
                answer = _swapped(handed, why, started)
            else:
                answer = await self._swap(scope, session, used_tokens, context_window, force, by, started)
                if answer.swapped:
                    return answer  # recorded with the swap itself
        details = {"swapped": answer.swapped, "generation": answer.generation, "reason": answer.reason}
        await self._store.record(scope.agent_id, session_event("swap", by, scope, details))
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
        why = self._why(scope, used_tokens, context_window, force)
        if why is None:
            due_at = int(context_window * compaction.threshold)
            reason = f"{used_tokens:,} of {context_window:,} tokens are in use; it is due at {due_at:,}"
            return _kept(reason, generation, used_tokens, started)
        ready = await self._slots.slot_b(scope, session, max(1, int(context_window * compaction.target_size)))
        if not ready.context.messages:
            reason = f"a window of {context_window:,} tokens has no room for a single message"
            return _kept(reason, generation, used_tokens, started)
        if ready.tokens >= used_tokens and not force:
            reason = f"the new context would have {ready.tokens:,} tokens, no fewer than the {used_tokens:,} in use"
            return _kept(reason, generation, used_tokens, started)
        handed = handed_of(
            ready.context,
            ready.memory,
            "swap",
            generation + 1,
            ready.ledger,
            used_tokens=used_tokens,
            context_window=context_window,
            tokens_after=ready.tokens,
        )
        details = {
            **what_was_shown(ready.context),
            "swapped": True,
            "generation": handed.generation,
            "reason": why,
            "usedTokens": used_tokens,
            "contextWindow": context_window,
        }
        await self._store.hand_over(scope, handed, session_event("swap", by, scope, details))
        self._slots.taken(scope)
        return _swapped(handed, why, started)

    def _why(self, scope: Scope, used_tokens: int, context_window: int, force: bool) -> str | None:
        """Why it is due; None where it is not."""
        threshold = self._settings.for_agent(scope.agent_id).memory.compaction.threshold
        if used_tokens >= int(context_window * threshold):
            return f"{used_tokens:,} of {context_window:,} tokens were in use"
        return "forced" if force else None

    # ── a context for a session that starts ──

    async def started(self, scope: Scope, session: Session, max_chars: int, by: Caller) -> CompressedContext:
        """What the agent goes on with, kept so that it can be shown again."""
        async with self._swapping.setdefault(scope, asyncio.Lock()):
            session = await self._store.session(scope) or session
            built = await self._reader.built(scope, session, max_chars)
            handed = handed_of(
                built.context,
                built.memory,
                "start",
                session.generation,
                Ledger(),
                used_tokens=0,
                context_window=0,
                tokens_after=await asyncio.to_thread(tokens_of, built.context.messages),
            )
            await self._store.hand_over(scope, handed, None)
        event = session_event("hooks/session-start", by, scope, what_was_shown(built.context))
        await self._store.mark(scope, Mark(kind="start", at=now()), event)
        return built.context


def what_was_shown(context: CompressedContext) -> dict[str, Any]:
    """Enough to prove later what exactly was handed out, without keeping the text twice."""
    return {
        "maxChars": context.max_chars,
        "chars": context.chars,
        "generation": context.generation,
        "lastSeq": context.covers.last_seq,
        "sha256": sha256(context.text.encode("utf-8", "surrogatepass")).hexdigest(),
    }


def text_digest(memory: str, messages: Sequence[Message]) -> str:
    """The same, of a context's memory section and messages."""
    texts = [memory, *map(shown, messages[1:])] if memory else list(map(shown, messages))
    return sha256(SEPARATOR.join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def handed_of(
    context: CompressedContext,
    memory: str,
    kind: HandedKind,
    generation: int,
    ledger: Ledger,
    *,
    used_tokens: int,
    context_window: int,
    tokens_after: int,
) -> HandedContext:
    return HandedContext(
        kind=kind,
        generation=generation,
        at=now(),
        last_seq=context.covers.last_seq,
        used_tokens=used_tokens,
        context_window=context_window,
        tokens_after=tokens_after,
        max_chars=context.max_chars,
        memory=memory,
        messages=context.messages,
        parts=context.parts,
        ledger=ledger,
    )


def _is_repeat(handed: HandedContext, session: Session, used_tokens: int, context_window: int) -> bool:
    return (
        handed.kind == "swap"
        and handed.last_seq == session.last_seq
        and (handed.used_tokens, handed.context_window) == (used_tokens, context_window)
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
