"""A store cut after a moment, against what it held then: for whatever was done to it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from offbook.log.audit_chain import fingerprint
from offbook.log.sqlite.point_in_time import cut_after
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.content import text_of
from offbook.model.types import COMMAND, AuditDraft, Entry, Mark, Message, Scope, SessionGaps, now
from tests.unit.transfer.backup.test_point_in_time import rows_of

agents = st.sampled_from(["main", "bea"])
sessions = st.sampled_from(["chat", "notes 🐘"])
kinds = st.sampled_from(["start", "end", "post-compaction"])
SAY, COMMANDED, MARK, PIN, RECALL, LOOK = "say", "command", "mark", "pin", "recall", "look"
steps = st.one_of(
    st.tuples(st.just(SAY), agents, sessions, st.integers(min_value=1, max_value=3)),
    st.tuples(st.just(COMMANDED), agents, sessions, st.just(1)),
    st.tuples(st.just(MARK), agents, sessions, kinds),
    st.tuples(st.just(PIN), agents, sessions, st.integers(min_value=0, max_value=9)),
    st.tuples(st.just(RECALL), agents, sessions, st.integers(min_value=0, max_value=9)),
    st.tuples(st.just(LOOK), agents, sessions, st.none()),
)
counter = iter(range(10**9))


def entry(noise: str | None = None) -> Entry:
    message = Message(role="user", content=f"message {next(counter)} 大象")
    return Entry(message=message, chars=len(text_of(message.content)), noise=noise, fingerprint=fingerprint(message))


async def take(store: SqliteStore, step: tuple[str, str, str, Any]) -> None:
    what, agent, session, detail = step
    scope = Scope(agent_id=agent, session_id=session)
    event = AuditDraft(verb=f"hooks/{what}", actor="test", session_id=session)
    if what in (SAY, COMMANDED):
        noise = COMMAND if what == COMMANDED else None
        gaps = SessionGaps(interrupted=timedelta(microseconds=1), new=timedelta(hours=1))
        await store.append(scope, [entry(noise) for _ in range(detail)], event, gaps=gaps)
    elif what == MARK:
        await store.mark(scope, Mark(kind=detail, at=now(), reason="why"), event)
    elif what == LOOK:
        await store.record(agent, AuditDraft(verb="status", actor="test"))
    else:
        placed = (await store.arrivals(agent, after_event=0, limit=1_000)).messages
        places = [each.place for each in placed[detail : detail + 1]]
        if what == PIN:
            await store.pin(agent, places, pinned=True, event=AuditDraft(verb="pin", actor="test"))
        else:
            await store.recalled(agent, places, AuditDraft(verb="recall", actor="test"))


async def lived(path: Path, taken: list[tuple[str, str, str, Any]]) -> list[tuple[datetime, dict[str, list[Any]]]]:
    store = SqliteStore(path)
    diary = [(now(), rows_of(path))]
    for step in taken:
        time.sleep(0.001)
        await take(store, step)
        diary.append((now(), rows_of(path)))
    await store.close()
    return diary


async def faults_of(path: Path) -> list[Any]:
    store = SqliteStore(path)
    try:
        found: list[Any] = [fault async for fault in store.faults()]
        for agent in await store.agents():
            found += [fault async for fault in verify(store, agent)]
        return found
    finally:
        await store.close()


def copies(path: Path, folder: Path, count: int) -> Iterator[Path]:
    for number in range(count):
        yield Path(shutil.copy(path, folder / f"{number}.db"))


SOME_OF_EVERYTHING: list[tuple[str, str, str, Any]] = [
    (SAY, "main", "chat", 2),
    (PIN, "main", "chat", 0),
    (MARK, "main", "chat", "end"),
    (SAY, "bea", "notes 🐘", 1),
    (COMMANDED, "main", "chat", 1),
    (RECALL, "main", "chat", 0),
    (MARK, "bea", "notes 🐘", "post-compaction"),
    (MARK, "main", "chat", "start"),
    (LOOK, "main", "chat", None),
    (SAY, "main", "chat", 1),
]


@settings(max_examples=8)
@example(SOME_OF_EVERYTHING)
@given(st.lists(steps, min_size=1, max_size=12))
def test_whatever_was_done_it_is_as_it_was(taken: list[tuple[str, str, str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "offbook.db")
        diary = asyncio.run(lived(path, taken))
        for (at, then), copy in zip(diary, copies(path, Path(folder), len(diary)), strict=True):
            cut_after(copy, at)
            assert rows_of(copy) == then
            assert asyncio.run(faults_of(copy)) == []
