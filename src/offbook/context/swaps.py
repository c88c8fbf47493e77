"""Slot A is what an agent runs on, slot B stands by (`slots`); a swap hands B over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from hashlib import sha256
from math import ceil
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from offbook.context.context_cache import ContextCache
from offbook.context.reader import SessionReader
from offbook.context.session_notes import SwapSize
from offbook.context.slots import Slots, tokens_of
from offbook.context.tail import SEPARATOR, shown
from offbook.log.store import Store
from offbook.model.settings import Settings
from offbook.model.summary import HandedContext, HandedKind, Ledger, Swap
from offbook.model.types import EMBEDDED, Caller, CompressedContext, Mark, Message, Scope, Session, now, session_event
from offbook.models.tokens import CHARS_PER_TOKEN

LEAST_FREED = 0.25
"""Of the window: a swap that frees less costs the prompt cache more than it is worth."""


class Question(NamedTuple):
    """What a host asks with. Tokens are those of the model's provider."""

    used_tokens: int
    context_window: int
    force: bool
    target_tokens: int | None
    token_ratio: float
    generation: int | None
    has_size: bool
    """It says more than how large its window is."""

    @property
    def least_freed(self) -> int:
        return 1 if self.force else max(1, int(self.context_window * LEAST_FREED))


class SwapService:
    def __init__(
        self, store: Store, settings: Settings, reader: SessionReader, cache: ContextCache, slots: Slots
    ) -> None:
        self._store = store
        self._settings = settings
        self._reader = reader
        self._cache = cache
        self._slots = slots
        self._swapping: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()

    # ── the verb ──

    async def swap(
        self,
        scope: Scope,
        *,
        used_tokens: int,
        context_window: int,
        force: bool = False,
        target_tokens: int | None = None,
        token_ratio: float | None = None,
        generation: int | None = None,
        by: Caller = EMBEDDED,
    ) -> Swap:
        """Hand over the context that stands by, where the one in use has reached the threshold, or the host asks for
        one of `target_tokens`, or with `force`; and where that makes it smaller by enough. Atomic; asked again with
        nothing new it is the same answer, and so it is for a host that is still on an earlier `generation`."""
        started = time.perf_counter()
        has_size = target_tokens is not None or token_ratio is not None
        question = Question(used_tokens, context_window, force, target_tokens, token_ratio or 1.0, generation, has_size)
        if not self._settings.for_agent(scope.agent_id).enabled:
            # What is said meanwhile is not in the log: a context made of the log would lack it.
            session = await self._store.session(scope)
            reason = "enabled is false: nothing is recorded, so no context can be made"
            answer = _kept(reason, session.generation if session else 0, used_tokens, started)
            details = {"swapped": False, "generation": answer.generation, "reason": reason}
            await self._store.record(scope.agent_id, session_event("swap", by, scope, details))
            return answer
        if not question.has_size:
            self._slots.note_window(scope, context_window)
        async with self._swapping.setdefault(scope, asyncio.Lock()):
            session = await self._store.session(scope)
            why = self._why(scope, question)
            handed = await self._slots.handed(scope, session) if why else None  # large: not read where nothing is due
            if why and handed and session and await self._is_repeat(scope, session, handed, question):
                answer = _swapped(handed, why, started)
            else:
                answer = await self._swap(scope, session, question, by, started)
        if question.has_size:
            await self._slots.note_size(scope, self._size(scope, question))
        if not answer.swapped or answer.generation == (session.generation if session else 0):
            details = {"swapped": answer.swapped, "generation": answer.generation, "reason": answer.reason}
            await self._store.record(scope.agent_id, session_event("swap", by, scope, details))
        return answer  # a swap that is new is recorded with itself

    async def _swap(
        self, scope: Scope, session: Session | None, question: Question, by: Caller, started: float
    ) -> Swap:
        used_tokens, context_window = question.used_tokens, question.context_window
        compaction = self._settings.for_agent(scope.agent_id).memory.compaction
        generation = session.generation if session else 0
        if session is None or not session.last_seq:
            return _kept(f"nothing is known of the session {scope.session_id!r}", generation, used_tokens, started)
        why = self._why(scope, question)
        if why is None:
            due_at = int(context_window * compaction.threshold)
            reason = f"{used_tokens:,} of {context_window:,} tokens are in use; it is due at {due_at:,}"
            return _kept(reason, generation, used_tokens, started)
        made_of = self._store.versions.of(scope.agent_id, "erased")
        ready = await self._slots.slot_b(scope, session, self._size(scope, question).estimated_target)
        if not ready.context.messages:
            reason = f"a window of {context_window:,} tokens has no room for a single message"
            return _kept(reason, generation, used_tokens, started)
        tokens_after = ceil(ready.tokens * question.token_ratio)
        if used_tokens - tokens_after < question.least_freed:
            reason = f"the new context would have {tokens_after:,} tokens, and {used_tokens:,} are in use"
            if not question.force:
                reason += f"; a swap is worth it where it frees {question.least_freed:,}, a quarter of the window"
            return _kept(reason, generation, used_tokens, started)
        handed = handed_of(
            ready.context,
            ready.composed.memory,
            "swap",
            generation + 1,
            ready.ledger,
            used_tokens=used_tokens,
            context_window=context_window,
            tokens_after=tokens_after,
        )
        details = {
            **what_was_shown(ready.context),
            "swapped": True,
            "generation": handed.generation,
            "reason": why,
            "usedTokens": used_tokens,
            "contextWindow": context_window,
        }
        await self._store.hand_over(scope, handed, session_event("swap", by, scope, details), made_of=made_of)
        self._slots.taken(scope)
        return _swapped(handed, why, started)

    def _why(self, scope: Scope, question: Question) -> str | None:
        """Why it is due; None where it is not."""
        threshold = self._settings.for_agent(scope.agent_id).memory.compaction.threshold
        is_reached = question.used_tokens >= int(question.context_window * threshold)
        if is_reached or (question.target_tokens is not None and not question.force):
            return f"{question.used_tokens:,} of {question.context_window:,} tokens were in use"
        return "forced" if question.force else None

    def _size(self, scope: Scope, question: Question) -> SwapSize:
        """What the host asks for, or the settings say. One that decides when it is due asks again at about as much;
        what somebody forced may have come early."""
        compaction = self._settings.for_agent(scope.agent_id).memory.compaction
        window = question.context_window
        if question.target_tokens is None:
            due_tokens, target_tokens = int(window * compaction.threshold), int(window * compaction.target_size)
        else:
            due_tokens, target_tokens = max(question.used_tokens, window // 2), question.target_tokens
        return SwapSize(due_tokens, target_tokens, question.token_ratio)

    async def _is_repeat(self, scope: Scope, session: Session, handed: HandedContext, question: Question) -> bool:
        """Whether what was handed over last is still the answer: with nothing new; or because the host has not taken
        it, and with what has come since it is still small enough."""
        if handed.kind != "swap":
            return False
        if question.generation is not None and question.generation < handed.generation == session.generation:
            since = await self._reader.chars_after(scope, handed.last_seq) / CHARS_PER_TOKEN * question.token_ratio
            return question.used_tokens - handed.tokens_after - since >= question.least_freed
        asked = (question.used_tokens, question.context_window)
        return handed.last_seq == session.last_seq and (handed.used_tokens, handed.context_window) == asked

    # ── a context for a session that starts ──

    async def started(self, scope: Scope, session: Session, max_chars: int, by: Caller) -> CompressedContext:
        """What the agent goes on with, kept so that it can be shown again."""
        async with self._swapping.setdefault(scope, asyncio.Lock()):
            session = await self._store.session(scope) or session
            made_of = self._store.versions.of(scope.agent_id, "erased")
            composed = await self._cache.composed(scope, session, max_chars)
            handed = handed_of(
                composed.context,
                composed.memory,
                "start",
                session.generation,
                Ledger(),
                used_tokens=0,
                context_window=0,
                tokens_after=await asyncio.to_thread(tokens_of, composed.context.messages),
            )
            await self._store.hand_over(scope, handed, None, made_of=made_of)
        event = session_event("hooks/session-start", by, scope, what_was_shown(composed.context))
        await self._store.mark(scope, Mark(kind="start", at=now()), event)
        return composed.context


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
