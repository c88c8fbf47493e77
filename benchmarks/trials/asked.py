"""The verbs that a trial of contexts asks for: of a memory in this process, or of a daemon that may be killed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from benchmarks.exchange import Connection, request
from offbook.api.memory import Memory
from offbook.api.verbs import VERBS
from offbook.model.summary import Expansion, Replay, SummaryPage, Swap
from offbook.model.types import CompressedContext, LogLine, Message, Receipt, Scope

LONGEST_AWAY_SECONDS = 60.0
RETRY_SECONDS = 0.02
SETTLED_SECONDS = 120.0
LOG_PAGE = 500
SUMMARIES_PAGE = 100


class Provider(Protocol):
    async def say(self, scope: Scope, messages: Sequence[Message]) -> Receipt: ...
    async def save(self, scope: Scope, messages: Sequence[Message]) -> int: ...
    async def context(self, scope: Scope, max_chars: int) -> CompressedContext: ...
    async def swap(self, scope: Scope, used_tokens: int, context_window: int) -> Swap: ...
    async def expand(self, agent_id: str, summary_id: str, after: str | None, limit: int) -> Expansion: ...
    async def summaries(self, agent_id: str, before: str | None) -> SummaryPage: ...
    async def replay(self, scope: Scope, at: datetime) -> Replay: ...
    async def start(self, scope: Scope, max_chars: int) -> CompressedContext | None: ...
    async def end(self, scope: Scope) -> None: ...
    async def log(self, scope: Scope, after_seq: int) -> list[LogLine]: ...
    async def backlog(self) -> int: ...


async def whole_log(provider: Provider, scope: Scope) -> list[LogLine]:
    lines: list[LogLine] = []
    while page := await provider.log(scope, lines[-1].seq if lines else 0):
        lines += page
    return lines


async def settle(provider: Provider) -> None:
    """Until nothing is left to do in the background."""
    until = time.monotonic() + SETTLED_SECONDS
    while await provider.backlog():
        if time.monotonic() > until:
            raise TimeoutError(f"still something to do in the background after {SETTLED_SECONDS:g} s")
        await asyncio.sleep(RETRY_SECONDS)


class Inside:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def say(self, scope: Scope, messages: Sequence[Message]) -> Receipt:
        return await self._memory.on_message(scope, messages)

    async def save(self, scope: Scope, messages: Sequence[Message]) -> int:
        return await self._memory.pre_compaction(scope, messages)

    async def context(self, scope: Scope, max_chars: int) -> CompressedContext:
        return await self._memory.get_compressed_context(scope, max_chars)

    async def swap(self, scope: Scope, used_tokens: int, context_window: int) -> Swap:
        return await self._memory.swap(scope, used_tokens=used_tokens, context_window=context_window)

    async def expand(self, agent_id: str, summary_id: str, after: str | None, limit: int) -> Expansion:
        return await self._memory.expand(agent_id, summary_id=summary_id, after=after, limit=limit)

    async def summaries(self, agent_id: str, before: str | None) -> SummaryPage:
        return await self._memory.summaries(agent_id, before=before, limit=SUMMARIES_PAGE)

    async def replay(self, scope: Scope, at: datetime) -> Replay:
        return await self._memory.replay(scope, at)

    async def start(self, scope: Scope, max_chars: int) -> CompressedContext | None:
        return await self._memory.session_start(scope, max_chars=max_chars)

    async def end(self, scope: Scope) -> None:
        await self._memory.session_end(scope, reason="idle")

    async def log(self, scope: Scope, after_seq: int) -> list[LogLine]:
        return (await self._memory.log(scope, after_seq=after_seq, limit=LOG_PAGE)).messages

    async def backlog(self) -> int:
        return (await self._memory.ping()).backlog


class Remote:
    """Asks again what was not answered, until somebody answers."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._idle: list[Connection] = []
        self.lost_answers = 0

    async def say(self, scope: Scope, messages: Sequence[Message]) -> Receipt:
        return await self._ask("onMessage", scope, messages=messages)

    async def save(self, scope: Scope, messages: Sequence[Message]) -> int:
        return (await self._ask("hooks/pre-compaction", scope, messages=messages)).saved

    async def context(self, scope: Scope, max_chars: int) -> CompressedContext:
        return await self._ask("getCompressedContext", scope, maxChars=max_chars)

    async def swap(self, scope: Scope, used_tokens: int, context_window: int) -> Swap:
        return await self._ask("swap", scope, usedTokens=used_tokens, contextWindow=context_window)

    async def expand(self, agent_id: str, summary_id: str, after: str | None, limit: int) -> Expansion:
        return await self._ask("expand", agentId=agent_id, summaryId=summary_id, after=after, limit=limit)

    async def summaries(self, agent_id: str, before: str | None) -> SummaryPage:
        return await self._ask("summaries", agentId=agent_id, before=before, limit=SUMMARIES_PAGE)

    async def replay(self, scope: Scope, at: datetime) -> Replay:
        return await self._ask("replay", scope, at=at)

    async def start(self, scope: Scope, max_chars: int) -> CompressedContext | None:
        return await self._ask("hooks/session-start", scope, maxChars=max_chars)

    async def end(self, scope: Scope) -> None:
        await self._ask("hooks/session-end", scope, reason="idle")

    async def log(self, scope: Scope, after_seq: int) -> list[LogLine]:
        return (await self._ask("log", scope, afterSeq=after_seq, limit=LOG_PAGE)).messages

    async def backlog(self) -> int:
        return (await self._ask("ping")).backlog

    def close(self) -> None:
        for connection in self._idle:
            connection.close()

    async def _ask(self, verb: str, scope: Scope | None = None, **fields: Any) -> Any:
        owner = {} if scope is None else {"agentId": scope.agent_id, "sessionId": scope.session_id}
        sent = request(verb, {**owner, **fields})
        until = time.monotonic() + LONGEST_AWAY_SECONDS
        while True:
            try:
                connection = self._idle.pop() if self._idle else await Connection.open(self._socket)
                answer = await connection.exchange(sent)
            except OSError:
                self.lost_answers += 1
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self._idle.append(connection)
            if answer.status != 200:
                raise RuntimeError(f"{verb} was answered with {answer.status}: {answer.body[:300]!r}")
            return msgspec.json.decode(answer.body, type=VERBS[verb].answer)
