"""One session of any length with all its summaries, made at once: messages and summaries really in the store.

The daemon would cut, digest and write some 8,000 summaries of a million messages one after the other. Here that is done
by the same functions in several processes, and what is left (the index, the working state) by a daemon.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import shutil
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.exchange import BlockingConnection
from benchmarks.large_memory import Language
from benchmarks.provider import running_in
from benchmarks.run import Run
from offbook.context.cover import Cutter, MessageSpan, due, next_merge
from offbook.context.pending_messages import PendingMessages, said_text
from offbook.context.summary_drafts import EXTRACTIVE_VERSION, chunk_draft, merge_draft
from offbook.ingest.entries import prepare
from offbook.log.blobs import BlobFiles
from offbook.log.sqlite.store import SqliteStore
from offbook.model.home import Home
from offbook.model.settings import Settings
from offbook.model.summary import Summary, SummaryDraft
from offbook.model.types import AuditDraft, Entry, Message, Scope, SessionGaps
from offbook.models.tokens import estimate_tokens

AGENT = "main"
SCOPE = Scope(agent_id=AGENT, session_id="long")
ENVIRON = {
    "OFFBOOK_EMBEDDING_MODEL": "none",
    # The session goes on, however long ago it was made.
    "OFFBOOK_SESSION_NEW_SESSION_GAP": "3650d",
}
TOOL_SHARE = 0.15
"""Of exchanges: the assistant looks something up before it answers."""
FACT_SHARE = 0.2
"""Of messages: something to look up by its name, with a number and a date."""
SAID_AT_ONCE = 4_000
REQUEST_MESSAGES = 4
"""In one append, with one audit event."""
LONGEST_CATCH_UP_SECONDS = 3_600.0
SHAPE = sha256(repr([SummaryDraft.__struct_fields__, SummaryDraft.__annotations__]).encode()).hexdigest()[:8]
"""Of a summary as it is kept: one of another version could not be read."""


def conversation(seed: int) -> Iterator[Message]:
    """Without end: questions and answers of some 200 characters, now and then with a tool."""
    language = Language(seed)
    at = datetime(2024, 1, 1, tzinfo=UTC)
    number = 0
    texts: list[str] = []
    while True:
        if len(texts) < 4:
            texts += [text.text for text in language.texts(SAID_AT_ONCE)]
        number += 1
        at += timedelta(seconds=20)
        yield Message(id=f"{number}-user", role="user", content=_with_fact(texts.pop(), number), ts=at)
        if number % round(1 / TOOL_SHARE) == 0:
            call = {
                "type": "toolCall",
                "id": f"call-{number}",
                "name": "search",
                "arguments": {"query": texts[-1][:40]},
            }
            yield Message(id=f"{number}-call", role="assistant", content=[call], ts=at)
            found = texts.pop()
            yield Message(id=f"{number}-tool", role="tool", content=found, tool_call_id=f"call-{number}", ts=at)
        yield Message(id=f"{number}-answer", role="assistant", content=texts.pop(), ts=at)


def _with_fact(text: str, number: int) -> str:
    if number % round(1 / FACT_SHARE):
        return text
    return f"{text} Ticket OPS-{number} costs €{number % 997}.50 and is due on {number % 28 + 1} May 2031."


def long_session(run: Run, messages: int) -> Path:
    """The data folder of one agent with one session of so many messages, with nothing left to do. Kept between runs."""
    home = run.cache / f"session-{messages}-{EXTRACTIVE_VERSION}-{SHAPE}"
    whole = home / "whole"
    if not whole.exists():
        shutil.rmtree(home, ignore_errors=True)
        Home(home).prepare()
        uvloop.run(_make(run, home, messages))
        catch_up(run, home)
        whole.touch()
    return home


def catch_up(run: Run, home: Path) -> None:
    """Has a daemon do what is left."""
    until = time.monotonic() + LONGEST_CATCH_UP_SECONDS
    with running_in(home, **ENVIRON) as daemon:
        connection = BlockingConnection(daemon.socket)
        while left := connection.ask("ping").json()["backlog"]:
            if time.monotonic() > until:
                raise RuntimeError(f"the provider still has {left} to do")
            time.sleep(0.5)
        status = connection.ask("status", agentId=AGENT).json()
        connection.close()
    run.say(f"{status['counts']['messages']:,} messages, summaries {status['summaries']['counts']}")


async def _make(run: Run, home: Path, messages: int) -> None:
    settings = Settings()
    store = SqliteStore(Home(home).database)
    # Anew, not forked: the store has threads.
    pool = ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn"))
    try:
        await _fill(run, store, Summaries(store, pool, home, settings), messages, settings)
    finally:
        pool.shutdown(cancel_futures=True)
        await store.close()


async def _fill(run: Run, store: SqliteStore, summaries: Summaries, messages: int, settings: Settings) -> None:
    cutter = Cutter(settings.chunk_tokens)
    finished: list[MessageSpan] = []
    said = islice(conversation(messages), messages)
    seq = 0
    while page := list(islice(said, SAID_AT_ONCE)):
        requests = [page[at : at + REQUEST_MESSAGES] for at in range(0, len(page), REQUEST_MESSAGES)]
        await asyncio.gather(*(_append(store, request) for request in requests))
        for message in page:
            seq += 1
            message_span = cutter.take(seq, message, estimate_tokens(said_text(message)))
            if message_span is not None:
                finished.append(message_span)
        rest = cutter.rest.tokens if cutter.rest else 0
        ready = due(finished, rest, settings.pruning_boundary_tokens)
        for message_span in finished[:ready]:
            await summaries.begin(message_span)
        del finished[:ready]
        run.progress(f"making a session of {messages:,} messages", seq, messages)
    await summaries.finish()


async def _append(store: SqliteStore, messages: list[Message]) -> None:
    event = AuditDraft(verb="onMessage", actor="local", session_id=SCOPE.session_id)
    await store.append(SCOPE, [_entry(message) for message in messages], event, gaps=SessionGaps())


def _entry(message: Message) -> Entry:
    return prepare(message, frame_key=b"", externalise_over=65_536, redacts=False).entry


# ── summaries ─────────────────────────────────────────────────────────────────────────────────


class Summaries:
    """Made in other processes, kept in order, merged as the worker merges."""

    def __init__(self, store: SqliteStore, pool: ProcessPoolExecutor, home: Path, settings: Settings) -> None:
        self._store = store
        self._pool = pool
        self._home = home
        self._settings = settings
        self._under_way: deque[Future[SummaryDraft]] = deque()

    async def begin(self, message_span: MessageSpan) -> None:
        self._under_way.append(self._pool.submit(_draft, self._home, message_span))
        while len(self._under_way) > 4 * (os.cpu_count() or 1):
            await self._keep_next()

    async def finish(self) -> None:
        while self._under_way:
            await self._keep_next()

    async def _keep_next(self) -> None:
        await self._keep(await asyncio.wrap_future(self._under_way.popleft()))
        level = 1
        while level < self._settings.max_levels and (sources := await self._to_merge(level)):
            await self._keep(merge_draft(sources, self._settings.summary_target_tokens))
            level += 1

    async def _to_merge(self, level: int) -> list[Summary]:
        threshold = self._settings.merge_threshold
        unmerged = await self._store.unmerged(AGENT, level=level, session_id=SCOPE.session_id, limit=threshold)
        return next_merge(unmerged, threshold)

    async def _keep(self, draft: SummaryDraft) -> None:
        event = AuditDraft(
            verb="compress", actor="offbook", session_id=SCOPE.session_id, details={"level": draft.level}
        )
        await self._store.add_summary(AGENT, draft, event)


_reading: dict[Path, Any] = {}
"""In each process: the loop and the reader of the store, opened once."""


def _draft(home: Path, message_span: MessageSpan) -> SummaryDraft:
    if home not in _reading:
        loop = asyncio.new_event_loop()
        store = SqliteStore(Home(home).database, readers=1)
        _reading[home] = loop, PendingMessages(store, BlobFiles(Home(home).blobs), Settings())
    loop, pending_messages = _reading[home]
    read = loop.run_until_complete(pending_messages.read(SCOPE, message_span.first_seq, message_span.last_seq))
    return chunk_draft(read.source(SCOPE), Settings().summary_target_tokens)
