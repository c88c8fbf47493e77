"""Hours of mixed load: a good client is served beside a hostile one, and nothing grows.

Memory, threads, open files and the good client's p99 are sampled; flat is what is within a tenth in the last quarter of
what it was in the second. How late this process itself is woken is measured beside p99: others use the machine, too.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.acceptance.daemon import Daemon, running

from benchmarks.exchange import request
from benchmarks.prove.campaign import Tried
from benchmarks.prove.every_verb_kills import Asker
from benchmarks.prove.planted import ENVIRON, Planted, plant, samples
from benchmarks.results import Cell
from benchmarks.samples import percentile
from benchmarks.trials.reckoning import all_faults
from offbook.api.verbs import VERBS

AGENT, GOOD = "alice", "good"
SAMPLE_SECONDS = 5.0
GOOD_PAUSE_SECONDS = 0.05
OTHERS_PAUSE_SECONDS = 0.2
WRITERS = 3
SLOW_CONNECTIONS = 20
HOSTILE_BYTES = 4_000_000
HOSTILE_PAUSE_SECONDS = 10.0
FLAT = 1.10
NAP_SECONDS = 0.02
REFUSED_KINDLY = {200, 404, 503, 507}
SEED = 1


class Sample(NamedTuple):
    at_seconds: float
    resident_mb: float
    threads: int
    files: int


class Load:
    def __init__(self, daemon: Daemon, planted: Planted, seconds: float) -> None:
        self._daemon = daemon
        self._planted = planted
        self._chance = random.Random(SEED)
        self._seconds = seconds
        self._numbers = count()
        self.started = time.monotonic()
        self.latencies: list[tuple[float, float]] = []
        """Of the good client: when, and milliseconds."""
        self.late: list[tuple[float, float]] = []
        """When, and by how many milliseconds a nap took longer than it should: how busy the machine is."""
        self.samples: list[Sample] = []
        self.done = Counter[str]()
        self.wrong: list[str] = []

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    async def run(self) -> None:
        works = [
            self._good,
            self._every_verb,
            self._forgets,
            self._wrong_tokens,
            self._large_bodies,
            self._sample,
            self._nap,
            *[self._writer] * WRITERS,
            *[self._slow_connection] * SLOW_CONNECTIONS,
        ]
        await asyncio.gather(*(self._until_the_end(work) for work in works))

    async def _until_the_end(self, work: Callable[[], Awaitable[None]]) -> None:
        while self.elapsed < self._seconds:
            await work()

    # ── the good client ──

    async def _good(self) -> None:
        asker = Asker(self._daemon.socket)
        while self.elapsed < self._seconds:
            number = next(self._numbers)
            scope = {"agentId": GOOD, "sessionId": f"chat-{number // 200}"}
            verb, fields = "recall", {**scope, "query": "What did we say of the garden?"}
            if number % 4:
                said = {
                    "role": "user",
                    "content": f"Number {number} is about the garden and the river.",
                    "id": str(number),
                }
                verb, fields = "onMessage", {**scope, "message": said}
            begun = time.perf_counter()
            answer = await asker.ask(verb, fields)
            self.latencies.append((self.elapsed, (time.perf_counter() - begun) * 1_000))
            if answer is None or answer.status != 200:
                self.wrong.append(f"the good client was refused: {verb} {answer and answer.body[:200]!r}")
            await asyncio.sleep(GOOD_PAUSE_SECONDS)

    # ── the others ──

    async def _writer(self) -> None:
        asker = Asker(self._daemon.socket)
        name = f"writer-{next(self._numbers)}"
        while self.elapsed < self._seconds:
            said = {"role": "user", "content": f"{name} says {next(self._numbers)}. " * 10}
            await self._asked(asker, "onMessage", {"agentId": name, "sessionId": "chat", "message": said})

    async def _every_verb(self) -> None:
        asker = Asker(self._daemon.socket)
        for verb in VERBS:
            if verb not in ("forget", "reindex") and self.elapsed < self._seconds:
                await self._asked(asker, verb, samples(self._planted)[verb])
        await self._asked(asker, "reindex", {"agentId": AGENT})

    async def _forgets(self) -> None:
        asker = Asker(self._daemon.socket)
        word = f"qe{next(self._numbers)}x{self._chance.randrange(16**6):06x}"
        said = {"role": "user", "content": f"My aunt lives in {word}."}
        await self._asked(asker, "onMessage", {"agentId": "writer-forgets", "sessionId": "s", "message": said})
        await asyncio.sleep(min(5.0, self._seconds / 10))
        await self._asked(asker, "forget", {"agentId": "writer-forgets", "matching": word, "reason": "a trial"})

    async def _asked(self, asker: Asker, verb: str, fields: dict[str, object]) -> None:
        answer = await asker.ask(verb, fields)
        if answer is None or answer.status not in REFUSED_KINDLY:
            self.wrong.append(f"{verb}: {answer and (answer.status, answer.body[:200])!r}")
        self.done["other requests"] += 1
        await asyncio.sleep(OTHERS_PAUSE_SECONDS)

    # ── the hostile one ──

    async def _wrong_tokens(self) -> None:
        answer = await self._raw(
            request("recall", {"sessionId": "s", "query": "x"}, headers="authorization: Bearer no\r\n")
        )
        self.done["wrong tokens"] += 1
        if b" 401 " not in answer[:20]:
            self.wrong.append(f"a wrong token: {answer[:200]!r}")
        await asyncio.sleep(0.05)

    async def _large_bodies(self) -> None:
        """Valid, and the worst to look through."""
        content = "password=a1b2c3d4 " * (HOSTILE_BYTES // 18)
        body = {"agentId": "hostile", "sessionId": "s", "message": {"role": "user", "content": content}}
        token = f"authorization: Bearer {self._daemon.token}\r\n"
        answer = await self._raw(request("onMessage", body, headers=token))
        self.done["large bodies"] += 1
        if not any(b" %d " % status in answer[:20] for status in (200, 413, 503)):
            self.wrong.append(f"a large body: {answer[:200]!r}")
        await asyncio.sleep(min(HOSTILE_PAUSE_SECONDS, self._seconds / 4))

    async def _slow_connection(self) -> None:
        """A head that never ends, a byte at a time."""
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", self._daemon.port)
            self.done["slow connections"] += 1
            try:
                while self.elapsed < self._seconds and not reader.at_eof():
                    writer.write(b"P")
                    await writer.drain()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(reader.read(1_000), 1.0)
            finally:
                writer.close()

    async def _raw(self, content: bytes) -> bytes:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", self._daemon.port)
            try:
                writer.write(content)
                return await asyncio.wait_for(reader.read(1_000), 120)
            finally:
                writer.close()
        return b"no answer"

    # ── what is measured ──

    async def _sample(self) -> None:
        await asyncio.sleep(min(SAMPLE_SECONDS, self._seconds / 12))
        self.samples.append(sampled(self._daemon, self.elapsed))

    async def _nap(self) -> None:
        begun = time.perf_counter()
        await asyncio.sleep(NAP_SECONDS)
        self.late.append((self.elapsed, (time.perf_counter() - begun - NAP_SECONDS) * 1_000))


def sampled(daemon: Daemon, at_seconds: float) -> Sample:
    """Of the daemon and of its workers."""
    pids = [str(daemon.process.pid)]
    for children in Path(f"/proc/{daemon.process.pid}/task").glob("*/children"):
        with suppress(OSError):
            pids += children.read_text().split()
    resident_mb, threads, files = 0.0, 0, 0
    for pid in pids:
        with suppress(OSError):
            told = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            resident_mb += int(told["VmRSS"].split()[0]) / 1_000
            threads += int(told["Threads"])
            files += sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    return Sample(at_seconds, resident_mb, threads, files)


class Quarters(NamedTuple):
    """A figure in the second and in the last quarter of the time."""

    second: float
    last: float

    def is_flat(self, pace: float = 1.0) -> bool:
        return self.last <= self.second * FLAT * max(1.0, pace)

    def in_words(self, unit: str, pace: float = 1.0) -> str:
        return f"{self.second:.4g} → {self.last:.4g} {unit}, {'flat' if self.is_flat(pace) else 'NOT FLAT'}"


def quarters(values: list[tuple[float, float]], seconds: float, told: Callable[[list[float]], float]) -> Quarters:
    second = [value for at, value in values if seconds / 4 <= at < seconds / 2]
    last = [value for at, value in values if at >= seconds * 3 / 4]
    return Quarters(told(second) if second else 0.0, told(last) if last else 0.0)


def tried(folder: Path, minutes: float, seconds: float | None = None) -> Tried:
    minutes = min(minutes, seconds / 60) if seconds else minutes
    home = folder / "home"
    with running(ENVIRON, home=home) as daemon:
        planted = plant(daemon, AGENT, "eq")
        load = Load(daemon, planted, minutes * 60)
        asyncio.run(load.run())
        if daemon.stop() != 0:
            load.wrong.append("the daemon did not end well")
    load.wrong += asyncio.run(all_faults(home))
    return _tried(load, minutes)


def _tried(load: Load, minutes: float) -> Tried:
    seconds = minutes * 60

    def of(name: str) -> Quarters:
        return quarters([(one.at_seconds, float(getattr(one, name))) for one in load.samples], seconds, median)

    pace = quarters(load.late, seconds, lambda values: percentile(values, 99))
    slowed = pace.last / pace.second if pace.second else 1.0
    p99 = quarters(load.latencies, seconds, lambda values: percentile(values, 99))
    measured = {
        "resident memory": (of("resident_mb"), "MB"),
        "threads": (of("threads"), ""),
        "open files": (of("files"), ""),
    }
    figures: dict[str, Cell] = {name: one.in_words(unit) for name, (one, unit) in measured.items()}
    figures |= {
        "p99 of the good client": p99.in_words("ms", slowed),
        "p99 of how late a nap of the client ended": f"{pace.second:.3g} → {pace.last:.3g} ms",
        "requests of the good client, all answered": len(load.latencies),
        **load.done,
    }
    grown = [f"{name} grew: {one.in_words(unit)}" for name, (one, unit) in measured.items() if not one.is_flat()]
    grown += [] if p99.is_flat(slowed) else [f"p99 of the good client grew: {p99.in_words('ms', slowed)}"]
    return Tried(
        size=f"{minutes:g} minutes of mixed load",
        seed=SEED,
        figures=figures,
        wrong=[*load.wrong, *grown],
        legend=["The second quarter of the time → the last one; flat is no more than a tenth above it."],
    )
