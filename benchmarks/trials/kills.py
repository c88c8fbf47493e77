"""`kill -9` under load, again and again, sometimes while it is still starting."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
from tests.acceptance.daemon import Daemon

from benchmarks.provider import Spawn, kill, spawn, wait_for_ping_beside
from benchmarks.trials.reckoning import Reckoning, reckon
from benchmarks.trials.requests import KINDS, Kind
from benchmarks.trials.writers import Load, writers_in

LONGEST_WAIT_SECONDS = 0.4
LONGEST_DELAY_SECONDS = 0.012
"""After the wanted kind of request is seen under way: an answer takes about as long."""
STARTS_KILLED = 0.25


class KillReport(msgspec.Struct, frozen=True):
    kills: int
    kills_while_starting: int
    hit: dict[str, int]
    """Kills that found at least one request of that kind unanswered."""
    lost_answers: int
    retries_of_stored: int
    """Requests sent again that turned out to be stored: killed between the commit and the answer."""
    exit_code: int
    unfinished_files: int
    """Of large parts, left by kills between writing and naming them. Harmless, but nobody removes them."""
    reckoning: Reckoning


class KillTrial:
    def __init__(self, home: Path, *, kills: int, writers: int, seed: int, spawn: Spawn = spawn) -> None:
        self._home = home
        self._kills = kills
        self._spawn = spawn
        self._chance = random.Random(seed)
        self._load = Load(writers_in(home / "offbook.sock", writers, seed=seed))
        self._hit = Counter[str]()
        self._while_starting = 0

    async def run(self, progress: Callable[[int], None] = lambda kills: None) -> KillReport:
        daemon = self._spawn(self._home)
        try:
            await wait_for_ping_beside(daemon)
            self._load.begin()
            for number in range(self._kills):
                await self._kill(daemon, KINDS[number % len(KINDS)])
                daemon = await self._started_again()
                progress(number + 1)
            await self._load.finish()
            exit_code = await asyncio.to_thread(daemon.stop)
        finally:
            await self._load.abandon()
            if daemon.process.poll() is None:
                kill(daemon)
        return await self._report(exit_code)

    async def _kill(self, daemon: Daemon, kind: Kind) -> None:
        """At a random moment, or soon after a request of the kind was sent."""
        for writer in self._load.writers:
            writer.planner.kinds = (kind, kind, *KINDS)
        for longest_delay in (LONGEST_WAIT_SECONDS, LONGEST_DELAY_SECONDS):
            await asyncio.sleep(self._chance.uniform(0, longest_delay))
            # Answered meanwhile, the next of them is met as it is sent.
            while not any(writer.in_flight and writer.in_flight.kind == kind for writer in self._load.writers):
                self._load.check()
                await asyncio.sleep(0)
        daemon.process.kill()
        self._hit.update({writer.in_flight.kind for writer in self._load.writers if writer.in_flight})
        await asyncio.to_thread(daemon.process.wait)

    async def _started_again(self) -> Daemon:
        daemon = self._spawn(self._home)
        if self._chance.random() < STARTS_KILLED:
            await asyncio.sleep(self._chance.uniform(0.1, 0.6))
            await asyncio.to_thread(kill, daemon)
            self._while_starting += 1
            daemon = self._spawn(self._home)
        await wait_for_ping_beside(daemon)
        return daemon

    async def _report(self, exit_code: int) -> KillReport:
        acknowledged = self._load.acknowledged
        return KillReport(
            kills=self._kills,
            kills_while_starting=self._while_starting,
            hit=dict(self._hit),
            lost_answers=self._load.lost_answers,
            retries_of_stored=sum(each.duplicates > 0 for each in acknowledged),
            exit_code=exit_code,
            unfinished_files=sum(1 for _ in (self._home / "blobs").rglob("*.tmp")),
            reckoning=await reckon(self._home, acknowledged, self._load.sent),
        )
