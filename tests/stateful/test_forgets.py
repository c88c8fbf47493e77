"""Forgets beside everything that a memory does: a receipt says that nothing is left, and nothing comes back after it.

`PROVE_FORGETS=500` makes it a campaign."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from benchmarks.machine import machine
from benchmarks.prove.campaign import Campaign, Tried, keep

from offbook.api.embedded import open_parts
from offbook.api.memory import Memory
from offbook.log.sqlite.store import SqliteStore
from offbook.log.verification import verify
from offbook.model.errors import NotFound, StoreBusy
from offbook.model.home import Home
from offbook.models import embedder
from offbook.models.relation import RelationModel
from tests.places import REPOSITORY
from tests.stateful.lives import SETTINGS, judge_by_words, open_words_embedder
from tests.unit.small_memory import assistant, caught_up, exchange, user

FORGETS = int(os.environ.get("PROVE_FORGETS", "5"))
SEED = 7
FORGETS_EACH = 25
"""In one memory: it grows meanwhile, and what it takes to forget with it."""
SESSIONS = 4


@pytest.fixture(autouse=True)
def _by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "open_embedder", open_words_embedder)
    monkeypatch.setattr(RelationModel, "replaces", judge_by_words)


class Beside:
    """What goes on meanwhile, each thing over and over."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._chance = random.Random(3)
        self._number = 0

    def _scope(self) -> object:
        return self._memory.scope(f"chat{self._chance.randrange(SESSIONS)}")

    async def talk(self) -> None:
        self._number += 1
        await self._memory.on_message(self._scope(), exchange(self._number))
        await asyncio.sleep(0.05)  # as people do: else there is nothing but talk

    async def first_turn(self) -> None:
        """In a session of its own, so that its section is made."""
        self._number += 1
        await self._memory.prepare_turn(self._memory.scope(f"turn{self._number}"), "What do I like, and who is who?")

    async def swap(self) -> None:
        await self._memory.swap(self._scope(), used_tokens=100_000, context_window=100_000, force=True)

    async def start(self) -> None:
        await self._memory.session_start(self._scope(), max_chars=20_000)

    async def recall(self) -> None:
        await self._memory.recall(self._scope(), "Where does my aunt live?")

    async def judge(self) -> None:
        lessons = (await self._memory.lessons("main")).lessons
        if lessons:
            verdict = self._chance.choice(("accept", "reject"))
            await self._memory.judge_lesson("main", self._chance.choice(lessons).id, verdict)
        await asyncio.sleep(0.01)

    async def maintain(self) -> None:
        await self._memory.compress("main")
        await self._memory.maintain("main")


@asynccontextmanager
async def going_on(memory: Memory) -> AsyncIterator[None]:
    beside = Beside(memory)

    async def over_and_over(work: Callable[[], Awaitable[None]]) -> None:
        while True:
            # What was read before something was forgotten is refused, and asked for again.
            with suppress(StoreBusy, NotFound):
                await work()
            await asyncio.sleep(0.02)  # the background and the forget have a turn, however busy the machine is

    kinds = (beside.talk, beside.first_turn, beside.swap, beside.start, beside.recall, beside.judge, beside.maintain)
    tasks = [asyncio.create_task(over_and_over(work)) for work in kinds]
    try:
        yield
        for task in tasks:
            assert not task.done(), task.exception()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def plant(memory: Memory, word: str, chance: random.Random) -> None:
    """As what becomes a lesson, a subject, a line of a summary, a correction."""
    said = [
        user(f"My aunt Greta moved to {word}, please remember that."),
        assistant(f"I noted that Greta lives in {word} now."),
        user(f"I prefer {word} over coffee, always. We decided to use {word} from now on."),
    ]
    for message in said:
        await memory.on_message(memory.scope(f"chat{chance.randrange(SESSIONS)}"), [message])
        await asyncio.sleep(chance.random() * 0.2)


async def left_of(words: list[str], store: SqliteStore, folder: Path) -> list[str]:
    found = [one.name async for one in store.kept_texts("main") if any(word in one.text for word in words)]
    found += await store.found_in_files([word.encode() for word in words])
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in store.own_files:
            data = path.read_bytes()
            found += [f"{path}: {word}" for word in words if word.encode() in data]
    return found


@pytest.mark.timeout(0 if "PROVE_FORGETS" in os.environ else 600)
async def test_whatever_goes_on_beside_it_what_is_forgotten_is_gone_and_stays_so(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    started = time.monotonic()
    for first in range(0, FORGETS, FORGETS_EACH):
        await forgotten_in(tmp_path / str(first), min(FORGETS_EACH, FORGETS - first), chance)
    if "PROVE_FORGETS" in os.environ:
        keep(campaign(time.monotonic() - started))


def campaign(seconds: float) -> Campaign:
    """For the page about what was tried: reached only where every receipt was clean and nothing was left."""
    return Campaign(
        name="forgets",
        title="Forgets beside everything that a memory does",
        command=f"PROVE_FORGETS={FORGETS} python -m pytest tests/stateful/test_forgets.py --timeout=0",
        took_seconds=round(seconds, 1),
        machine=machine(REPOSITORY),
        tried=Tried(
            size=f"{FORGETS:,} forgets",
            seed=SEED,
            figures={"receipts that say that nothing is left": FORGETS, "words found in any row or file afterwards": 0},
            wrong=[],
            legend=[
                "Beside talk, turns, swaps, recall, verdicts on lessons, compression and maintenance, all the time."
            ],
        ),
    )


async def forgotten_in(folder: Path, forgets: int, chance: random.Random) -> None:
    words: list[str] = []
    async with open_parts(Home(folder), SETTINGS) as (memory, store):
        async with going_on(memory):
            for number in range(forgets):
                word = f"qx{number:04}{chance.randrange(16**6):06x}"
                await plant(memory, word, chance)
                receipt = await memory.forget("main", matching=word)
                assert receipt.reached.messages == 3
                assert receipt.residue == [], f"{number}: {receipt.residue}"
                assert receipt.signature
                words.append(word)
        await memory.maintain("main")
        await caught_up(memory)
        assert await left_of(words, store, folder) == []
        assert [fault async for fault in verify(store, "main")] == []
