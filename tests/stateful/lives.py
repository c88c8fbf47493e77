"""A memory that lives in a process of its own and is killed there: what its host had of it by then is all it knows.

The processes are forked from one that has imported everything and runs no thread, so that a life costs little.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from offbook.api.background import Background
from offbook.api.embedded import open_parts
from offbook.api.memory import Memory
from offbook.model.home import Home
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding
from offbook.models import embedder
from offbook.models.relation import RelationModel
from tests.unit.projections.doubles import WordsEmbedder, WordsJudge
from tests.unit.small_memory import SMALL, assistant, user

WORD = "zanzibar"
TEXTS = (
    "Please look at src/module_{n}.py: the error is E{n}, and Alice wants it by noon.",
    "My uncle Otto lives in Bern, number {n}.",
    "Actually my uncle Otto lives in Zug now, number {n}.",
    "I prefer tea over coffee, always, since day {n}.",
    "My aunt lives in zanzibar, number {n}.",
)
SETTINGS = msgspec.structs.replace(
    Settings(),
    **{**SMALL, "embedding": Embedding(model="words", threads=1, dimensions=64)},
)
Step = tuple[str, int]
"""What is done ("say", "end", "forget"), and which text or session."""

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([__name__, "offbook.search.index.agent_index", "offbook.search.index.vectors"])


def open_words_embedder(_embedding: Embedding, _folder: Path) -> WordsEmbedder:
    """Stands in for `open_embedder`: a new one each time, as a memory closes its own."""
    return WordsEmbedder("words")


def judge_by_words(_model: RelationModel, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Stands in for `RelationModel.replaces`, which takes its time."""
    return WordsJudge().replaces(pairs)


def killed(home: Path, steps: Sequence[Step], *, first: int, after_ms: int) -> None:
    """Takes the steps and is killed so many milliseconds into the last of them, or after it where that was quicker."""
    here, there = _processes.Pipe()
    process = _processes.Process(target=_live, args=(home, list(steps), first, there), daemon=True)
    process.start()
    there.close()
    try:
        for _ in range(len(steps)):  # that it has begun, and each step but the last
            assert here.poll(120), "the life does not go on"
            here.recv()
        time.sleep(after_ms / 1_000)
    finally:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        here.close()


def killed_forgetting(home: Path, before: str) -> None:
    """Forgets the word, and is killed before what is named there has forgotten it."""
    process = _processes.Process(target=_forget, args=(home, before), daemon=True)
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL, f"it came to its end: {before} was not reached"


async def step(memory: Memory, kind: str, number: int, spoken: int) -> None:
    if kind == "say":
        texts = [TEXTS[(number + more) % len(TEXTS)].format(n=1_000 + spoken + more) for more in range(4)]
        said = [one for text in texts for one in (user(text), assistant(f"I looked into number {spoken}: it is done."))]
        await memory.on_message(memory.scope(f"chat{spoken % 2}"), said)
    elif kind == "end":
        await memory.session_end(memory.scope(f"chat{number}"))
    else:
        receipt = await memory.forget("main", matching=WORD)
        assert receipt.residue == []


def _live(home: Path, steps: list[Step], first: int, told: Connection) -> None:
    embedder.open_embedder = open_words_embedder  # type: ignore[assignment]
    RelationModel.replaces = judge_by_words  # type: ignore[method-assign]

    async def life() -> None:
        async with open_parts(Home(home), SETTINGS) as (memory, _):
            told.send("begun")
            for number, (kind, what) in enumerate(steps, first):
                await step(memory, kind, what, number)
                told.send(number)
            await asyncio.Event().wait()

    asyncio.run(life())


def _forget(home: Path, before: str) -> None:
    embedder.open_embedder = open_words_embedder  # type: ignore[assignment]
    RelationModel.replaces = judge_by_words  # type: ignore[method-assign]

    async def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    async def life() -> None:
        async with open_parts(Home(home), SETTINGS) as (memory, store):
            background: Background = memory._background
            parts = [*background.projections, *background.forgetting.copies]
            await _erased_first(background)
            if before == "the proof":
                store.purge = die  # type: ignore[method-assign]
            else:
                (part,) = [one for one in parts if one.name == before]
                whole = part.forget

                async def forget(erased: object) -> object:
                    return await whole(erased) if erased.is_dry_run else await die()  # type: ignore[attr-defined]

                part.forget = forget  # type: ignore[method-assign]
            await memory.forget("main", matching=WORD)

    asyncio.run(life())


async def _erased_first(background: Background) -> None:
    """What was left to do by the life before is done, so that the kill meets this forget."""
    while background.runner.backlog():
        await asyncio.sleep(0.01)
