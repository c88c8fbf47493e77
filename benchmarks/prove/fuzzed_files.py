"""Damaged files of every kind that is read: each is read after all, or refused with an error that says what to do.

Never another exception, a hang or memory without bound; and whatever becomes of an index, what was said is still there.
"""

from __future__ import annotations

import asyncio
import gzip
import random
import resource
import shutil
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from tests.unit.contrib.importers.continuity_state import database, day_file, said
from tests.unit.contrib.importers.foreign_files import one_of_each
from tests.unit.contrib.importers.reading_files import read
from tests.unit.contrib.importers.summaries_state import entry, summaries
from tests.unit.small_memory import small_memory, talked

from benchmarks.prove.campaign import Tried
from benchmarks.prove.mutations import harmed
from offbook.client.outbox import Outbox
from offbook.model.errors import OffbookError
from offbook.model.home import BoundToken, Home
from offbook.model.record import Record
from offbook.model.settings import load
from offbook.transfer.backup import restore, write_backup
from offbook.transfer.record_files import read_records, sources, write_agent, write_index

SEED = 1
CASE_SECONDS = 30
MOST_GROWTH_BYTES = 1_000_000_000
"""Of the process within one case; the samples have a few kilobytes."""
OUTBOX_BYTES = 10_000_000
EXCHANGES = 6
SETTINGS = """defaultAgent = "main"
[server]
port = 8780
[session]
interruptedGap = "1h30m"
[agents.researcher.redaction]
enabled = false
"""


class Kind(NamedTuple):
    sample: Path
    """A file, or a folder of which one file is harmed."""
    read: Callable[[Path], None]
    share: int = 10


class Hangs(BaseException):
    """Nobody catches it on the way."""


def kinds(folder: Path) -> dict[str, Kind]:
    """Every kind of file that we read, with a small one of it."""
    found = {f"import {name}": Kind(path, _reader(name)) for name, path in _imports(folder).items()}
    asyncio.run(talked(folder / "memory", EXCHANGES))
    asyncio.run(write_backup(Home(folder / "memory"), folder / "backup.tar.gz"))
    _export(folder / "export", folder / "memory")
    (folder / "home").mkdir(mode=0o700)
    (folder / "home" / "config.toml").write_text(SETTINGS)
    tokens = Home(folder / "tokens")
    tokens.prepare()
    tokens.write_bound_tokens([BoundToken(name="a", digest="0" * 64, agents=["main"], created_at="2026-01-01")])
    _fill_outbox(folder / "outbox")
    return found | {
        "export": Kind(folder / "export", _read_export),
        "settings": Kind(folder / "home", lambda home: _ignore(load(home, environ={}))),
        "tokens": Kind(folder / "tokens", lambda home: _ignore(Home(home).read_bound_tokens())),
        "outbox": Kind(folder / "outbox", _read_outbox),
        "backup": Kind(folder / "backup.tar.gz", _restore, share=3),
        "index": Kind(folder / "memory", _recall, share=2),
    }


def _ignore(_: object) -> None:
    pass


def _imports(folder: Path) -> dict[str, Path]:
    made = {name: path for name, (path, _) in one_of_each(folder / "imports").items()}
    talk = [said("10:00:00", "user", "Hello"), said("10:00:05", "agent", "Hi there")]
    day_file(folder / "archive", talk)
    told = entry("L1", 1, ["e1", "e2"])
    return made | {
        "archive": folder / "archive",
        "continuity-db": database(folder / "continuity", {"2026-05-10": talk}),
        "summaries": summaries(folder / "summaries", (told, "They said hello.")),
    }


def _reader(form: str) -> Callable[[Path], None]:
    return lambda path: _ignore(read(form, path))


def _export(root: Path, home: Path) -> None:
    async def records() -> list[Record]:
        async with small_memory(home) as memory:
            return list((await memory.export("main", limit=1_000)).records)

    root.mkdir(mode=0o700)
    write_index(root, [write_agent(root, "main", asyncio.run(records()))])


def _read_export(root: Path) -> None:
    for source in sources(root):
        for _ in read_records(source):
            pass


def _fill_outbox(folder: Path) -> None:
    outbox = Outbox(folder, max_bytes=OUTBOX_BYTES)
    for number in range(20):
        outbox.append(b'{"sessionId":"s","message":{"role":"user","content":"number %d"}}' % number, "main")
    outbox.close()


def _read_outbox(folder: Path) -> None:
    outbox = Outbox(folder, max_bytes=OUTBOX_BYTES)
    try:
        while queued := outbox.peek(10, 100_000):
            outbox.advance(queued[-1].ordinal)
        outbox.append(b'{"after":"it"}', "main")
    finally:
        outbox.close()


def _restore(archive: Path) -> None:
    asyncio.run(restore(archive, Home(archive.with_name("restored"))))


def _recall(home: Path) -> None:
    async def asked() -> None:
        async with small_memory(home) as memory:
            scope = memory.scope("chat")
            await memory.recall(scope, "Where does my aunt live?")
            there = len((await memory.log(scope, limit=1_000)).messages)
            if there != EXCHANGES * 2:
                raise AssertionError(f"of {EXCHANGES * 2} messages {there} are there")

    asyncio.run(asked())


# ── one case ──────────────────────────────────────────────────────────────────────────────────


def harm_file(copy: Path, kind: str, chance: random.Random) -> None:
    files = [copy] if copy.is_file() else sorted(path for path in copy.rglob("*") if path.is_file())
    if kind == "index":
        files = [path for path in files if "index" in path.parts]
    path = chance.choice(files)
    data = path.read_bytes()
    if path.suffix == ".gz" and chance.random() < 0.5:
        path.write_bytes(gzip.compress(harmed(gzip.decompress(data), chance), compresslevel=1))
    else:
        path.write_bytes(harmed(data, chance))


class FuzzedFiles:
    def __init__(self, folder: Path, *, seed: int = SEED) -> None:
        self._folder = folder
        self._seed = seed
        self._kinds = kinds(folder / "samples")
        self._names = [name for name, kind in self._kinds.items() for _ in range(kind.share)]
        self.read = Counter[str]()
        self.refused = Counter[str]()
        self.wrong: dict[str, str] = {}
        """By what happened where, the first case of each."""

    def run(self, files: int, seconds: float | None = None) -> int:
        """How many there were: as many as wanted, or as there is time for."""
        started = time.monotonic()
        for number in range(files):
            if seconds and time.monotonic() - started > seconds:
                return number
            self.one(number)
        return files

    def one(self, number: int) -> None:
        """The same number harms the same file the same way."""
        chance = random.Random(f"{self._seed} {number}")
        name = self._names[number % len(self._names)]
        kind = self._kinds[name]
        copy = self._folder / "case" / kind.sample.name
        copy.parent.mkdir(mode=0o700)
        try:
            (shutil.copytree if kind.sample.is_dir() else shutil.copy2)(kind.sample, copy)
            harm_file(copy, name, chance)
            self._read(name, kind, copy, number)
        finally:
            shutil.rmtree(copy.parent, ignore_errors=True)

    def _read(self, name: str, kind: Kind, copy: Path, number: int) -> None:
        before = _most_resident()
        try:
            with within(CASE_SECONDS):
                kind.read(copy)
            self.read[name] += 1
        except OffbookError as error:
            self.refused[name] += 1
            if not error.detail.strip():
                self._note(f"{name}: {type(error).__name__} without a word", number)
        except Hangs:
            self._note(f"{name}: no end in {CASE_SECONDS} s", number)
        except Exception as error:  # noqa: BLE001  which is what is looked for
            where = traceback.extract_tb(error.__traceback__)[-1]
            self._note(
                f"{name}: {type(error).__name__} in {Path(where.filename).name}:{where.lineno}: {error!s:.200}", number
            )
        if _most_resident() - before > MOST_GROWTH_BYTES:
            self._note(f"{name}: more than {MOST_GROWTH_BYTES // 1_000_000} MB of memory", number)

    def _note(self, what: str, number: int) -> None:
        self.wrong.setdefault(what.partition(": ")[0] + what.partition(": ")[2][:80], f"{what} (case {number})")


def _most_resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024


@contextmanager
def within(seconds: int) -> Iterator[None]:
    def stop(_: int, frame: FrameType | None) -> None:
        raise Hangs

    previous: Any = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        with suppress(TypeError):
            signal.signal(signal.SIGALRM, previous)


def tried(folder: Path, files: int, seconds: float | None = None, *, seed: int = SEED) -> Tried:
    trial = FuzzedFiles(folder, seed=seed)
    files = trial.run(files, seconds)
    return Tried(
        size=f"{files:,} damaged files",
        seed=seed,
        figures={
            "read after all": trial.read.total(),
            "refused with what to do": trial.refused.total(),
            "anything else": len(trial.wrong),
        },
        wrong=list(trial.wrong.values()),
        matrix=[
            {"kind of file": name, "read after all": trial.read[name], "refused": trial.refused[name]}
            for name in dict.fromkeys(trial._names)
        ],
    )
