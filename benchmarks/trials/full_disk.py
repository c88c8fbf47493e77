"""The disk fills while messages arrive; room comes back without a restart; and once more with a kill in between."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

import msgspec
from tests.acceptance.daemon import Daemon

from benchmarks.exchange import Connection, request
from benchmarks.provider import Spawn, kill, spawn, wait_for_ping_beside
from benchmarks.trials.reckoning import Reckoning, reckon
from benchmarks.trials.requests import Kind
from benchmarks.trials.small_disk import SmallDisk
from benchmarks.trials.writers import Load, writers_in

DISK_BYTES = 40_000_000
BALLAST_BYTES = 10_000_000
WRITERS = 6
FILLING_SECONDS = 60.0
FULL_SECONDS = 1.0
"""How long the writers go on against the full disk."""
SMALL: tuple[Kind, ...] = ("single", "batch")
EVERY: tuple[Kind, ...] = ("single", "batch", "large")


class FullDiskReport(msgspec.Struct, frozen=True):
    refusals: int
    problems: dict[str, int]
    """By type, status and whether it says that trying again helps."""
    reads_while_full: dict[str, int]
    """By verb and status."""
    resumed_seconds: float
    """From the room being there to every waiting writer having its acknowledgement."""
    start_while_full: str
    exit_code: int
    reckoning: Reckoning
    faults: list[str]


class FullDiskTrial:
    def __init__(self, disk: SmallDisk, *, seed: int, spawn: Spawn = spawn) -> None:
        self._disk = disk
        self._home = disk.folder
        self._seed = seed
        self._spawn = spawn
        self._loads: list[Load] = []
        self._reads = Counter[str]()
        self._faults: list[str] = []
        self._resumed_seconds = 0.0
        self._start_while_full = ""

    async def run(self) -> FullDiskReport:
        for name in ("ballast-1", "ballast-2"):
            self._disk.load_ballast(name, BALLAST_BYTES)
        daemon = self._spawn(self._home)
        try:
            await wait_for_ping_beside(daemon)
            await self._fill(daemon, EVERY)
            await self._resume_without_restart(daemon)
            await self._fill(daemon, SMALL)
            kill(daemon)
            daemon = await self._start_again()
            await self._loads[-1].finish()
            exit_code = await asyncio.to_thread(daemon.stop)
        finally:
            for load in self._loads:
                await load.abandon()
            if daemon.process.poll() is None:
                kill(daemon)
        return await self._report(exit_code)

    async def _fill(self, daemon: Daemon, kinds: tuple[Kind, ...]) -> None:
        """Write until the disk is full, and some more."""
        load = Load(writers_in(daemon.socket, WRITERS, seed=self._seed + len(self._loads), name=len(self._loads)))
        self._loads.append(load)
        for writer in load.writers:
            writer.planner.kinds = kinds
        load.begin()
        deadline = time.monotonic() + FILLING_SECONDS
        while not load.refusals:
            load.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"the disk is not full after {FILLING_SECONDS:g} s: {self._disk.free_bytes} free")
            await asyncio.sleep(0.01)
        full_until = time.monotonic() + FULL_SECONDS
        while time.monotonic() < full_until:
            await self._read(daemon)
            load.check()
        if daemon.process.poll() is not None:
            self._faults.append(f"the daemon ended with {daemon.process.returncode} when the disk was full")

    async def _read(self, daemon: Daemon) -> None:
        """Their audit events are held until there is room: they are answered all the same."""
        scope = self._loads[-1].writers[0].planner.scope
        owner = {"agentId": scope.agent_id, "sessionId": scope.session_id}
        asked: dict[str, dict[str, Any]] = {
            "ping": {},
            "getCompressedContext": {**owner, "maxChars": 4_000},
            "recall": {**owner, "query": "anything that was said"},
            "prepareTurn": {**owner, "prompt": "What did we say?"},
            "log": owner,
            "status": {"agentId": scope.agent_id},
        }
        connection = await Connection.open(daemon.socket)
        for verb, fields in asked.items():
            answer = await asyncio.wait_for(connection.exchange(request(verb, fields)), 10)
            self._reads[f"{verb} {answer.status}"] += 1
            if answer.status != 200:
                self._faults.append(f"{verb} on a full disk: {answer.status} {answer.body[:200]!r}")
        connection.close()

    async def _resume_without_restart(self, daemon: Daemon) -> None:
        self._disk.drop_ballast("ballast-1")
        started = time.monotonic()
        await self._loads[-1].finish()
        self._resumed_seconds = time.monotonic() - started
        if daemon.process.poll() is not None:
            self._faults.append("the daemon did not live through it")

    async def _start_again(self) -> Daemon:
        """First on the full disk, where it may start or say why not; then with room."""
        daemon = self._spawn(self._home)
        try:
            await wait_for_ping_beside(daemon)
            self._start_while_full = "it starts"
            kill(daemon)
        except RuntimeError:
            told = daemon.log.read_text().splitlines()
            self._start_while_full = f"it ends with {daemon.process.returncode}: {told[-1] if told else ''}"
        self._disk.drop_ballast("ballast-2")
        daemon = self._spawn(self._home)
        await wait_for_ping_beside(daemon)
        return daemon

    async def _report(self, exit_code: int) -> FullDiskReport:
        refusals = [refusal for load in self._loads for refusal in load.refusals]
        return FullDiskReport(
            refusals=len(refusals),
            problems=dict(Counter(f"{p['type']} {p['status']} retryable={p['retryable']}" for p in refusals)),
            reads_while_full=dict(self._reads),
            resumed_seconds=round(self._resumed_seconds, 3),
            start_while_full=self._start_while_full,
            exit_code=exit_code,
            reckoning=await reckon(
                self._home,
                [each for load in self._loads for each in load.acknowledged],
                [each for load in self._loads for each in load.sent],
            ),
            faults=self._faults,
        )
