"""Forgotten is gone: facts planted in a thousand messages, in what came of them, and in every file (PEERS 31).

`benchmarks/forgetting.py` does the same with 500 facts in 10,000 messages, and in more."""

from __future__ import annotations

import asyncio
import random
import secrets
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from offbook.api.embedded import open_parts
from offbook.api.memory import Memory
from offbook.log.blobs import BlobFiles
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.home import Home
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding
from offbook.model.types import Message, Scope
from offbook.models.relation import RelationModel
from offbook.transfer.backup import write_backup
from tests.unit.projections.doubles import WordsJudge

pytestmark = pytest.mark.slow

MESSAGES, FACTS, SESSIONS = 1_000, 60, 8
WORDS = [
    "kitchen",
    "garden",
    "river",
    "mountain",
    "planet",
    "engine",
    "server",
    "budget",
    "report",
    "meeting",
    "coffee",
    "train",
    "ticket",
    "flight",
    "dentist",
    "invoice",
    "kernel",
    "parser",
    "window",
    "holiday",
    "library",
    "station",
    "summer",
    "bicycle",
    "harbour",
    "concert",
    "painting",
    "contract",
]
LARGE_CHARS = 70_000


def history(facts: list[str]) -> dict[str, list[Message]]:
    """Each fact in a message of its own words; some of them are decisions and preferences that become lessons, some large
    enough to lie outside the log."""
    chance = random.Random(5)
    places = dict(zip(sorted(chance.sample(range(MESSAGES), len(facts))), facts, strict=True))
    sessions: dict[str, list[Message]] = {f"chat-{number}": [] for number in range(SESSIONS)}
    for at in range(MESSAGES):
        text = f"{' '.join(chance.choices(WORDS, k=20))}, number {at}."
        if at in places:
            text += ("", " I prefer", " We decided to use", " From now on always use")[
                at % 4
            ] + f" the label {places[at]}."
            text += " padding" * (LARGE_CHARS // 8) if at % 19 == 0 else ""
        role = "user" if at % 2 == 0 else "assistant"
        sessions[f"chat-{at * SESSIONS // MESSAGES}"].append(Message(role=role, content=text, id=f"m{at}"))
    return sessions


async def settled(memory: Memory) -> None:
    while (await memory.ping()).backlog:
        await asyncio.sleep(0.1)
    await memory.maintain("main")


async def others(store: SqliteStore, facts: list[str]) -> AsyncIterator[tuple[str, int, str]]:
    for session in await store.sessions("main", limit=1_000):
        scope, after = Scope(agent_id="main", session_id=session.session_id), 0
        while page := await store.messages(scope, after_seq=after, limit=500):
            for logged in page:
                text = str(logged.message.content)
                if not any(fact in text for fact in facts) and text != "[forgotten]":
                    yield session.session_id, logged.seq, text
            after = page[-1].seq


def holding(folder: Path, facts: list[str]) -> set[str]:
    """Names of the files that have any of them, also where a file or a row is compressed."""
    found = set()
    wanted = [fact.encode() for fact in facts]
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".gz":
                data = zlib.decompress(data, wbits=31)
            if any(fact in data for fact in wanted):
                found.add(path.relative_to(folder).as_posix())
    return found


async def test_nothing_is_left_of_what_was_forgotten_and_all_of_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The model of relations takes a tenth of a second for each message: what is forgotten are links, however they came.
    monkeypatch.setattr(RelationModel, "replaces", lambda _self, pairs: WordsJudge().replaces(pairs))
    home = Home(tmp_path)
    facts = [secrets.token_hex(9) for _ in range(FACTS)]
    settings = Settings(embedding=Embedding(model="none"))
    async with open_parts(home, settings) as (memory, store):
        for session_id, messages in history(facts).items():
            scope = memory.scope(session_id)
            for first in range(0, len(messages), 250):
                await memory.on_message(scope, messages[first : first + 250])
            await memory.session_end(scope)
        await settled(memory)
        for number in range(SESSIONS):
            scope = memory.scope(f"chat-{number}")
            await memory.prepare_turn(scope, "what is the label?", seconds=20)
            await memory.swap(scope, used_tokens=190_000, context_window=200_000)
        home.backups.mkdir()
        await write_backup(home, home.backups / "offbook-20261115-120000.tar.gz")
        before = [one async for one in others(store, facts)]
        planted = holding(tmp_path, facts)
        assert {name.partition("/")[0] for name in planted} >= {"offbook.db", "backups", "summaries", "wiki", "blobs"}

        told = await memory.forget("main", matching="the label", reason="a test", dry_run=True)
        assert holding(tmp_path, facts) >= planted
        receipt = await memory.forget("main", matching="the label", reason="a test")

        assert told.reached.messages == receipt.reached.messages == FACTS
        assert receipt.reached.lessons > 0
        assert receipt.reached.backups == 1
        assert receipt.residue == []
        check = await memory.verify_forgotten(receipt, matching="the label")
        assert check.is_genuine
        assert check.residue == []
        for fact in facts[:20]:
            entries = (await memory.recall(memory.scope("chat-1"), fact, limit=20)).entries
            assert not any(fact in entry.text for entry in entries)
        assert [one async for one in others(store, facts)] == before
        await settled(memory)
        assert [fault async for fault in verify(store, "main", blobs=BlobFiles(home.blobs))] == []
    assert holding(tmp_path, facts) == set()
