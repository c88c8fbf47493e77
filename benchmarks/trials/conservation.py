"""Is every message conserved? Histories in one memory after another, and those that a daemon is killed under.

`python -m benchmarks.trials.conservation SEED …` repeats those that were at fault.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import structlog
import uvloop

from benchmarks.provider import Spawn, kill, spawn, wait_for_ping_beside, working_folder
from benchmarks.trials.asked import Inside, Remote, settle
from benchmarks.trials.histories import history_of
from benchmarks.trials.lives import Life, Tally, reckon_summaries, some_at_once
from offbook.api.embedded import open_memory
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding, StoreSettings

BATCH = 100
"""Histories that share a data folder and settings."""
EXTERNALISED_CHARS = 4_000
KILLED_SEEDS = 1_000_000
"""Those of histories that are killed: apart, so that the others are the same with and without them."""
LONGEST_LIFE_SECONDS = 0.2


def settings_of(batch: int) -> Settings:
    """So small that a short history has summaries of every level."""
    chance = random.Random(f"settings {batch}")
    return Settings(
        chunk_tokens=chance.choice((20, 60, 120, 240)),
        summary_target_tokens=chance.choice((10, 40)),
        pruning_boundary_tokens=chance.choice((0, 30, 120)),
        merge_threshold=chance.choice((2, 2, 3)),
        max_levels=chance.choice((1, 3, 3, 4)),
        embedding=Embedding(model="none"),
        store=StoreSettings(externalise_chars=EXTERNALISED_CHARS),
    )


def as_environ(settings: Settings) -> dict[str, str]:
    return {
        "OFFBOOK_CHUNK_TOKENS": str(settings.chunk_tokens),
        "OFFBOOK_SUMMARY_TARGET_TOKENS": str(settings.summary_target_tokens),
        "OFFBOOK_PRUNING_BOUNDARY_TOKENS": str(settings.pruning_boundary_tokens),
        "OFFBOOK_MERGE_THRESHOLD": str(settings.merge_threshold),
        "OFFBOOK_MAX_LEVELS": str(settings.max_levels),
        "OFFBOOK_EMBEDDING_MODEL": settings.embedding.model,
        "OFFBOOK_STORE_EXTERNALISE_CHARS": str(settings.store.externalise_chars),
    }


# ── in this process ───────────────────────────────────────────────────────────────────────────


async def in_process(home: Path, seeds: Sequence[int]) -> Tally:
    """Histories of one batch, in one memory, which is then opened again."""
    tally = Tally()
    settings = settings_of(seeds[0] // BATCH)
    with _troubles_told(tally, seeds):
        async with open_memory(home, settings=settings, environ={}) as memory:
            provider = Inside(memory)
            lives = [Life(provider, history_of(seed), tally) for seed in seeds]
            await some_at_once([life.live for life in lives])
            await settle(provider)
            await some_at_once([life.reckon for life in lives])
            await reckon_summaries(provider, lives, tally)
        async with open_memory(home, settings=settings, environ={}) as memory:
            provider = Inside(memory)
            await some_at_once([partial(life.again, provider) for life in lives])
    return tally


@contextmanager
def _troubles_told(tally: Tally, seeds: Sequence[int]) -> Iterator[None]:
    """What the background could not do is a fault too."""

    def note(_logger: Any, method: str, event: dict[str, Any]) -> Any:
        is_trouble = method in ("warning", "error", "exception", "critical")
        if is_trouble and event["action"] != "embedding.open":  # there is none, as was asked for
            tally.faults.append(f"seeds {seeds[0]} to {seeds[-1]}: logged {event}")
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[structlog.processors.format_exc_info, note])
    try:
        yield
    finally:
        structlog.configure(**before)


# ── a daemon that is killed ───────────────────────────────────────────────────────────────────


async def killed(home: Path, seeds: Sequence[int], kills: int, spawn: Spawn = spawn) -> Tally:
    """Histories of one batch that a daemon lives through, killed again and again while they happen."""
    tally = Tally()
    chance = random.Random(f"kills {seeds[0]}")
    environ = as_environ(settings_of(seeds[0] // BATCH))
    daemon = spawn(home, **environ)
    provider = Remote(daemon.socket)
    try:
        await wait_for_ping_beside(daemon)
        lives = [Life(provider, history_of(seed), tally) for seed in seeds]
        living = [asyncio.create_task(life.live()) for life in lives]
        hit: set[int] = set()
        for _ in range(kills):
            await asyncio.sleep(chance.uniform(0, LONGEST_LIFE_SECONDS))
            unfinished = {number for number, task in enumerate(living) if not task.done()}
            await asyncio.to_thread(kill, daemon)
            hit |= unfinished
            tally.counts["kills"] += 1
            tally.counts["kills while something was said"] += bool(unfinished)
            daemon = spawn(home, **environ)
            await wait_for_ping_beside(daemon)
        await asyncio.gather(*living)
        await settle(provider)
        await some_at_once([life.reckon for life in lives])
        await reckon_summaries(provider, lives, tally)
        tally.counts["histories hit by a kill"] += len(hit)
        tally.counts["answers lost"] += provider.lost_answers
    finally:
        provider.close()
        if daemon.process.poll() is None:
            await asyncio.to_thread(kill, daemon)
    return tally


def killed_seeds(count: int, first: int = KILLED_SEEDS) -> list[int]:
    """Of histories whose messages have ids: without, nobody could tell a retry from saying it twice."""
    seeds: list[int] = []
    while len(seeds) < count:
        if history_of(first).has_ids:
            seeds.append(first)
        first += 1
    return seeds


def main(arguments: Sequence[str]) -> int:
    count = 0
    for seed in map(int, arguments):
        with working_folder() as folder:
            work = killed(folder / "home", [seed], 3) if seed >= KILLED_SEEDS else in_process(folder / "home", [seed])
            tally = uvloop.run(work)
        print(*tally.faults, dict(tally.counts), sep="\n")
        count += len(tally.faults)
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
