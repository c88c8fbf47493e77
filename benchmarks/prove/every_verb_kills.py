"""`kill -9` while every verb is under way: writers, forgets, backups and all other verbs beside each other.

Afterwards nothing that was acknowledged is lost, doubled or altered, what a forget acknowledged is in no file, the
chains verify, and a backup that was acknowledged can be restored.
"""

from __future__ import annotations

import asyncio
import random
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.acceptance.daemon import Daemon
from tests.processes import Offbook, run_offbook

from benchmarks.exchange import Answer, Connection, request
from benchmarks.prove.campaign import Tried
from benchmarks.prove.planted import ENVIRON, Fields, Planted, plant, samples
from benchmarks.provider import Spawn, environ_of, kill, spawn, wait_for_ping_beside
from benchmarks.trials.kills import STARTS_KILLED
from benchmarks.trials.reckoning import all_faults, logged_ids, reckon
from benchmarks.trials.writers import ANSWER_SECONDS, Load, writers_in
from offbook.api.verbs import VERBS
from offbook.model.types import Scope

AGENT = "alice"
WRITERS = 4
WORKERS = 4
"""Of those who ask for any verb, one at a time each."""
LONGEST_WAIT_SECONDS = 1.5
LONGEST_DELAY_SECONDS = 0.02
AIM_SECONDS = 20.0
"""A verb that is never seen under way by then, for another one takes long, is killed at all the same."""
RETRY_SECONDS = 0.02
FIRST = (
    "forget",
    "import",
    "reindex",
    "swap",
    "hooks/pre-compaction",
    "maintain",
    "hooks/session-end",
    "lessons/judge",
)
AIMED = (*FIRST, *(verb for verb in VERBS if verb not in FIRST))
BACKUPS_KEPT = 3


class Asker:
    """One connection that is opened again whenever the provider went away."""

    def __init__(self, socket: Path) -> None:
        self.in_flight: str | None = None
        self.lost_answers = 0
        self._socket = socket
        self._connection: Connection | None = None

    async def ask(self, verb: str, fields: Fields) -> Answer | None:
        """None where no answer came: whether the request arrived is then not known."""
        try:
            if self._connection is None:
                self._connection = await Connection.open(self._socket)
            self.in_flight = verb
            return await asyncio.wait_for(self._connection.exchange(request(verb, fields)), ANSWER_SECONDS * 4)
        except OSError:
            self.lost_answers += self.in_flight is not None
            self._connection = None
            await asyncio.sleep(RETRY_SECONDS)
            return None
        finally:
            self.in_flight = None

    async def acknowledged(self, verb: str, fields: Fields) -> Any:
        """Asked again until it is answered."""
        while True:
            answer = await self.ask(verb, fields)
            if answer is not None and answer.status == 200:
                return answer.json()
            if answer is not None and not answer.json().get("retryable"):
                raise AssertionError(f"{verb} was refused for good: {answer.body[:500]!r}")
            await asyncio.sleep(RETRY_SECONDS)


class Beside:
    """What goes on beside the writers, and what it was promised."""

    def __init__(self, home: Path, planted: Planted, seed: int) -> None:
        self.askers = [Asker(home / "offbook.sock") for _ in range(WORKERS + 2)]
        self.aim = "forget"
        self.answered = Counter[str]()
        self.forgotten: list[str] = []
        self.backups: list[Path] = []
        self.wrong: list[str] = []
        self._home = home
        self._planted = planted
        self._chance = random.Random(seed)
        self._is_over = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        self._tasks = [
            asyncio.create_task(self._forget_over_and_over(self.askers[0])),
            asyncio.create_task(self._back_up_over_and_over()),
            asyncio.create_task(self._ask_aimed(self.askers[1])),
            *(asyncio.create_task(self._ask_any(asker)) for asker in self.askers[2:]),
        ]

    async def finish(self) -> None:
        self._is_over.set()
        await asyncio.wait_for(asyncio.gather(*self._tasks), 300)

    async def abandon(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def check(self) -> None:
        for task in self._tasks:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    def under_way(self) -> set[str]:
        return {asker.in_flight for asker in self.askers if asker.in_flight}

    async def _forget_over_and_over(self, asker: Asker) -> None:
        """Each time something else that was said and acknowledged; the forget is asked for until it is acknowledged."""
        number = 0
        while not self._is_over.is_set():
            number += 1
            word = f"qk{number:04}{self._chance.randrange(16**8):08x}"
            said = {"role": "user", "content": f"My aunt moved to {word}, remember that.", "id": f"planted-{number}"}
            scope = {"agentId": "agent-0", "sessionId": "planted"}
            await asker.acknowledged("onMessage", {**scope, "message": said})
            await asyncio.sleep(self._chance.uniform(0, 0.3))
            asked = {"agentId": "agent-0", "matching": word, "reason": "a trial"}
            receipt = (await asker.acknowledged("forget", asked))["receipt"]
            self.answered["forget"] += 1
            self.forgotten.append(word)
            if receipt["residue"]:
                self.wrong.append(f"a forget left {receipt['residue']}")

    async def _back_up_over_and_over(self) -> None:
        """By the command, which is killed now and then, too; the newest are kept."""
        folder = self._home.with_name("backups")
        folder.mkdir(exist_ok=True)
        number = 0
        while not self._is_over.is_set():
            number += 1
            path = folder / f"{number}.tar.gz"
            if await asyncio.to_thread(self._backed_up, path, self._chance.random() < STARTS_KILLED):
                self.backups.append(path)
                for old in self.backups[:-BACKUPS_KEPT]:
                    old.unlink(missing_ok=True)
                self.backups = self.backups[-BACKUPS_KEPT:]
            await asyncio.sleep(self._chance.uniform(0.5, 2))

    def _backed_up(self, path: Path, is_killed: bool) -> bool:
        log = self._home.with_name("backup.log")
        with log.open("ab") as output:
            process = Offbook("backup", path, env=environ_of(self._home), stdout=output, stderr=output)
        if is_killed:
            with suppress(Exception):
                process.wait(self._chance.uniform(0, 0.5))
            process.kill()
        return process.wait(120) == 0

    async def _ask_aimed(self, asker: Asker) -> None:
        while not self._is_over.is_set():
            await self._ask(asker, self.aim)

    async def _ask_any(self, asker: Asker) -> None:
        while not self._is_over.is_set():
            await self._ask(asker, self._chance.choice(AIMED))
            await asyncio.sleep(self._chance.uniform(0, 0.05))

    async def _ask(self, asker: Asker, verb: str) -> None:
        answer = await asker.ask(verb, samples(self._planted)[verb])
        if answer is None:
            return
        self.answered[verb] += answer.status == 200
        is_right = answer.status == 200 or answer.json().get("retryable") or verb in ("jobs/complete", "jobs/fail")
        if not is_right:
            self.wrong.append(f"{verb}: {answer.status} {answer.body[:300]!r}")


class EveryVerbKills:
    def __init__(
        self, folder: Path, *, kills: int, seed: int, spawn: Spawn = spawn, seconds: float | None = None
    ) -> None:
        """`seconds`: after which no more kills follow, however many were wanted."""
        self._home = folder / "home"
        self._wanted = kills
        self._kills = 0
        self._seconds = seconds
        self._seed = seed
        self._spawn = spawn
        self._chance = random.Random(seed)
        self._load = Load(writers_in(self._home / "offbook.sock", WRITERS, seed=seed))
        self.hit = Counter[str]()
        self.while_starting = 0

    async def run(self) -> Tried:
        daemon = await self._started()
        self._planted = await asyncio.to_thread(plant, daemon, AGENT, "kq")
        beside = Beside(self._home, self._planted, self._seed)
        try:
            self._load.begin()
            beside.begin()
            started = time.monotonic()
            while self._kills < self._wanted and not (self._seconds and time.monotonic() - started > self._seconds):
                await self._kill(daemon, beside, AIMED[self._kills % len(AIMED)])
                self._kills += 1
                daemon = await self._started_again()
            await self._load.finish(seconds=300)
            await beside.finish()
            exit_code = await asyncio.to_thread(daemon.stop)
        finally:
            await self._load.abandon()
            await beside.abandon()
            if daemon.process.poll() is None:
                kill(daemon)
        wrong = [*beside.wrong, *([f"it ended with {exit_code}"] if exit_code else []), *await self._faults(beside)]
        return self._tried(beside, wrong)

    async def _started(self) -> Daemon:
        daemon = self._spawn(self._home, **ENVIRON)
        await wait_for_ping_beside(daemon)
        return daemon

    async def _kill(self, daemon: Daemon, beside: Beside, verb: str) -> None:
        """While the verb is under way, at a random moment of it; as long as others take, without."""
        beside.aim = verb
        await asyncio.sleep(self._chance.uniform(0, LONGEST_WAIT_SECONDS))
        with suppress(TimeoutError):
            async with asyncio.timeout(AIM_SECONDS):
                while verb not in beside.under_way():
                    beside.check()
                    self._load.check()
                    await asyncio.sleep(0)
        await asyncio.sleep(self._chance.uniform(0, LONGEST_DELAY_SECONDS))
        daemon.process.kill()
        self.hit.update(beside.under_way())
        self.hit["onMessage of a writer"] += any(writer.in_flight for writer in self._load.writers)
        await asyncio.to_thread(daemon.process.wait)

    async def _started_again(self) -> Daemon:
        if self._chance.random() < STARTS_KILLED:
            daemon = self._spawn(self._home, **ENVIRON)
            await asyncio.sleep(self._chance.uniform(0.1, 0.6))
            await asyncio.to_thread(kill, daemon)
            self.while_starting += 1
        return await self._started()

    async def _faults(self, beside: Beside) -> list[str]:
        self._reckoning = await reckon(self._home, self._load.acknowledged, self._load.sent)
        faults = list(self._reckoning.faults)
        faults += [f"{word} was forgotten and is in {name}" for word, name in left_in(self._home, beside.forgotten)]
        talk = await logged_ids(self._home, Scope(agent_id=AGENT, session_id=self._planted.session_id))
        if talk[: self._planted.last_seq] != [f"{AGENT}-{number}" for number in range(1, self._planted.last_seq + 1)]:
            faults.append(f"what was planted is not there as it was: {talk[:60]}")
        for number, path in enumerate(beside.backups):
            faults += await asyncio.to_thread(self._restored, path, number)
        return faults

    def _restored(self, path: Path, number: int) -> list[str]:
        to = self._home.with_name(f"restored-{number}")
        done = run_offbook("restore", path, env=environ_of(to))
        if done.returncode:
            return [f"{path.name} cannot be restored: {done.stderr[-500:]!r}"]
        return [f"{path.name} restored: {fault}" for fault in asyncio.run(all_faults(to))]

    def _tried(self, beside: Beside, wrong: list[str]) -> Tried:
        verbs = {verb: hits for verb, hits in self.hit.items() if verb in AIMED}
        return Tried(
            size=f"{self._kills:,} kills",
            seed=self._seed,
            figures={
                "kills": self._kills,
                "kills while it was starting, besides": self.while_starting,
                "verbs met under way by a kill": f"{len(verbs)} of {len(AIMED)}",
                "answers that a kill took away": self._load.lost_answers
                + sum(one.lost_answers for one in beside.askers),
                "messages that writers had acknowledged": self._reckoning.acknowledged,
                "forgets acknowledged, looked for in every file": len(beside.forgotten),
                "other verbs answered": sum(beside.answered.values()),
                "backups restored": len(beside.backups),
                "lost, doubled, altered, left or broken": len(wrong),
            },
            wrong=wrong,
            matrix=[
                {"verb": verb, "under way at a kill": self.hit[verb], "answered": beside.answered[verb]}
                for verb in sorted(AIMED)
            ],
        )


def left_in(folder: Path, words: list[str]) -> Iterator[tuple[str, str]]:
    """Which of the words are in which files, also in those that are packed."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            data = zlib.decompress(data, wbits=31) if path.suffix == ".gz" else data
            yield from ((word, path.name) for word in words if word.encode() in data)


def tried(folder: Path, kills: int, seconds: float | None = None, *, seed: int = 1, spawn: Spawn = spawn) -> Tried:
    return asyncio.run(EveryVerbKills(folder, kills=kills, seed=seed, spawn=spawn, seconds=seconds).run())
