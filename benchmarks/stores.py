"""Stores with a history, made through the store's own append."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import uvloop

from benchmarks.run import Run
from benchmarks.texts import text
from offbook.ingest.entries import prepare
from offbook.log.sqlite.store import SqliteStore
from offbook.model.home import Home
from offbook.model.types import AuditDraft, Entry, Message, Scope, SessionGaps

AGENT = "main"
SESSIONS = 20
MAIN_SESSION = Scope(agent_id=AGENT, session_id="session-0")
MAIN_SHARE = 0.6
"""One session holds most of the history: the worst case for whatever reads a session."""
AT_ONCE = 500
"""In one transaction, each with an audit event of its own, as hosts send them."""
TEXTS = [text(str(number), 100 + number) for number in range(100)]


def store_with(run: Run, messages: int) -> Path:
    """The data folder of a store with so many short messages; made once in a run."""
    home = run.folder / f"history-{messages}"
    if not home.exists():
        Home(home).prepare()
        uvloop.run(_fill(run, home, messages))
    return home


async def _fill(run: Run, home: Path, messages: int) -> None:
    chance = random.Random(messages)
    store = SqliteStore(Home(home).database)
    try:
        for first in range(0, messages, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, messages))
            await asyncio.gather(*(_append(store, number, chance) for number in numbers))
            run.progress(f"making a history of {messages:,} messages", numbers.stop, messages)
    finally:
        await store.close()


async def _append(store: SqliteStore, number: int, chance: random.Random) -> None:
    session = 0 if chance.random() < MAIN_SHARE else chance.randrange(1, SESSIONS)
    scope = Scope(agent_id=AGENT, session_id=f"session-{session}")
    event = AuditDraft(verb="onMessage", actor="local", session_id=scope.session_id)
    await store.append(scope, [_entry(number)], event, gaps=SessionGaps())


def _entry(number: int) -> Entry:
    message = Message(
        id=f"message-{number}", role="user" if number % 2 else "assistant", content=TEXTS[number % len(TEXTS)]
    )
    return prepare(message, frame_key=b"", externalise_over=65_536, redacts=False).entry
