"""A client and its provider in one, that misbehave on demand. What stands for the past names every message in it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from offbook.context.replayable import leading_orphans
from offbook.context.validity import made_valid
from offbook.model.errors import ProviderRefused, ProviderUnavailable
from offbook.model.summary import Ledger, Swap
from offbook.model.types import CompressedContext, Message, Span, now

MEMORY = "memory of "
REFUSAL = {"type": "urn:offbook:problem:forbidden", "title": "Not for this token.", "status": 403}


def memory_of(ids: Sequence[str | None]) -> Message:
    """Ids that follow one another are written as a run: `m:3..7`."""
    runs: list[tuple[str, int, int]] = []
    for one in map(str, ids):
        name, _, number = one.partition(":")
        if runs and number and runs[-1][0] == name and runs[-1][2] + 1 == int(number):
            runs[-1] = (name, runs[-1][1], int(number))
        else:
            runs.append((name, int(number or 0), int(number or 0)))
    return Message(role="user", content=MEMORY + " ".join(f"{name}:{first}..{last}" for name, first, last in runs))


def ids_in(messages: Sequence[Message]) -> list[str | None]:
    """Every message that a context stands for, in the order in which it does."""
    found: list[str | None] = []
    for message in messages:
        if not isinstance(message.content, str) or not message.content.startswith(MEMORY):
            found.append(message.id)
            continue
        for run in message.content.removeprefix(MEMORY).split():
            name, _, numbers = run.partition(":")
            first, _, last = numbers.partition("..")
            found += [f"{name}:{number}" if number else name for number in range(int(first), int(last) + 1)]
    return found


class FakeMemory:
    def __init__(self, *, shown: int = 4) -> None:
        self.recorded: list[Message] = []
        self.waiting: deque[Message] = deque()
        self.stored: list[Message] = []
        self.shown = shown
        self.is_away = False
        self.arriving: int | None = None
        """How many messages arrive when asked to settle; None for all."""
        self.gate = asyncio.Event()
        self.gate.set()
        self.faults: deque[Callable[[Swap], Any]] = deque()
        """What happens to the next answers."""
        self.refused_ids: set[str] = set()
        self.invalid_ids: set[str] = set()
        """Which never come into the outbox."""
        self.refused = 0
        self.dropped = 0
        self.invalid = 0
        self.generation = 0
        self.threshold = 0.0
        self.asked: list[str] = []
        self.told: list[tuple[str, Any]] = []
        self.forced: list[bool] = []

    # ── the outbox ──

    def record(self, session_id: str, message: Message, *, agent_id: str | None = None) -> None:
        self.recorded.append(message)
        if message.id in self.invalid_ids:
            self.invalid += 1
        elif message not in [*self.waiting, *self.stored]:
            self.waiting.append(message)

    def outbox_status(self) -> dict[str, Any]:
        lost = {"rejected": self.refused, "dropped": self.dropped, "invalid": self.invalid}
        return {"waiting": len(self.waiting), **lost}

    async def settle(self, timeout_seconds: float = 5.0) -> bool:
        await asyncio.sleep(0)
        if self.is_away:
            return False
        self.deliver(self.arriving)
        return not self.waiting and not self.refused

    def deliver(self, most: int | None = None) -> None:
        for _ in range(len(self.waiting) if most is None else min(most, len(self.waiting))):
            message = self.waiting.popleft()
            if message.id in self.refused_ids:
                self.refused += 1
            else:
                self.stored.append(message)

    # ── the provider ──

    async def _answering(self, verb: str) -> None:
        self.asked.append(verb)
        await asyncio.sleep(0)
        if self.is_away:
            raise ProviderUnavailable("nobody answers")
        await self.gate.wait()

    def context(self) -> list[Message]:
        tail = self.stored[-self.shown :]
        tail = tail[leading_orphans(tail) :]
        older = self.stored[: len(self.stored) - len(tail)]
        return [*([memory_of([message.id for message in older])] if older else []), *made_valid(tail)]

    async def swap(
        self,
        session_id: str,
        used_tokens: int,
        context_window: int,
        *,
        token_ratio: float | None = None,
        force: bool = False,
        agent_id: str | None = None,
    ) -> Swap:
        self.forced.append(force)
        await self._answering("swap")
        messages = self.context()
        is_due = force or used_tokens >= self.threshold * context_window
        self.generation += is_due
        answer = Swap(
            swapped=is_due and bool(messages),
            reason="due" if is_due else "not due",
            generation=self.generation,
            messages=messages if is_due else [],
            tokens_before=used_tokens,
            tokens_after=1,
            ledger=Ledger(),
            took_ms=0.1,
        )
        return self.faults.popleft()(answer) if self.faults else answer

    async def session_start(
        self, session_id: str, max_chars: int | None = None, *, agent_id: str | None = None
    ) -> CompressedContext | None:
        await self._answering("session-start")
        if not self.stored:
            return None
        return CompressedContext(
            session_id=session_id,
            agent_id="main",
            generation=self.generation,
            text="",
            messages=self.context(),
            chars=1,
            max_chars=max_chars or 1,
            covers=Span(first_seq=1, last_seq=len(self.stored)),
            parts=[],
            built_at=now(),
        )

    async def log(
        self,
        session_id: str,
        after_seq: int = 0,
        limit: int = 100,
        *,
        newest: bool = False,
        agent_id: str | None = None,
    ) -> dict[str, Any]:
        await self._answering("log")
        lines = [{"seq": seq, "message": msgspec.to_builtins(one)} for seq, one in enumerate(self.stored, 1)]
        rest = lines[after_seq:]
        return {"messages": rest[-limit:] if newest else rest[:limit], "lastSeq": len(lines)}

    async def pre_compaction(self, session_id: str, messages: Any = None, *, agent_id: str | None = None) -> int:
        await self._answering("pre-compaction")
        self.told.append(("pre", messages))
        return 0

    async def post_compaction(self, session_id: str, new_context: Any = None, *, agent_id: str | None = None) -> None:
        await self._answering("post-compaction")
        self.told.append(("post", new_context))


# ── ways for an answer to be wrong ──


def with_messages(change: Callable[[list[Message]], list[Message]]) -> Callable[[Swap], Swap]:
    return lambda answer: msgspec.structs.replace(answer, messages=change(list(answer.messages)))


def without_newest(messages: list[Message]) -> list[Message]:
    """Without what was said last, which need not stand last: a result that came late stands behind its call."""
    newest = max(messages, key=lambda message: int((message.id or "").partition(":")[2] or 0), default=None)
    return [message for message in messages if message is not newest]


def refusing(answer: Swap) -> Swap:
    raise ProviderRefused(REFUSAL)


def breaking(answer: Swap) -> Swap:
    raise TypeError("not what it seems")


ORPHAN = Message(role="tool", content="42", tool_call_id="never-called")
CALLING = Message(
    role="assistant", content=[{"type": "tool-call", "id": "open-for-ever", "name": "look", "arguments": {}}]
)
WRONG_ANSWERS: dict[str, Callable[[Swap], Swap]] = {
    "empty": with_messages(lambda messages: []),
    "a result without its call": with_messages(lambda messages: [ORPHAN, *messages]),
    "a call without its result": with_messages(lambda messages: [CALLING, *messages]),
    "without the newest": with_messages(without_newest),
    "without anything of ours": with_messages(lambda messages: [memory_of([])]),
    "larger": with_messages(lambda messages: [Message(role="user", content="word " * 5_000), *messages]),
    "saying nothing": with_messages(lambda messages: [Message(role="user", content=" "), *messages]),
}
