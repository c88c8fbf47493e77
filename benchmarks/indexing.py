"""What indexing and embedding a long history in the background costs those who write meanwhile."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import apsw
from tests.acceptance.daemon import Daemon

from benchmarks.bare_sqlite import BareSqlite
from benchmarks.exchange import BlockingConnection, request
from benchmarks.large_memory import AGENT, log_of
from benchmarks.provider import cpu_seconds, end, kill, running_in, start
from benchmarks.results import Bar, Cell, Findings
from benchmarks.run import Run
from benchmarks.samples import percentile
from benchmarks.texts import text

TITLE = "`onMessage` while a long history is indexed and embedded in the background, against with nothing else"

PACE_PER_SECOND = 50
CONTENT = text("indexing", 200)
MOST_TIMES = 2.0
MOST_CORES = 1.0
"""The setting `embedding.threads` as it is by default."""
SLACK_CORES = 0.1
OFF = {"OFFBOOK_EMBEDDING_MODEL": "none"}
LONGEST_WAIT_SECONDS = 600.0
RESUMED_SECONDS = 20.0


class Window(NamedTuple):
    milliseconds: list[float]
    bare: list[float]
    """Of a row of bare SQLite right after each message: what the machine and the disk do to anybody."""
    cores: float


class Writer:
    """A message every 20 milliseconds, whatever else goes on."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._bare = BareSqlite(daemon.home.with_name(f"{daemon.home.name}-{time.monotonic_ns()}.bare"))
        self._connection = BlockingConnection(daemon.socket)
        self._numbers = count(int(time.time()))

    def write_for(self, seconds: float) -> Window:
        taken: list[float] = []
        bare: list[float] = []
        began, cpu = time.perf_counter(), cpu_seconds(self._daemon)
        due = began
        while due - began < seconds:
            message = {"id": f"paced-{next(self._numbers)}", "role": "user", "content": CONTENT}
            sent = request("onMessage", {"sessionId": "paced", "agentId": "writer", "message": message})
            due = max(due + 1 / PACE_PER_SECOND, time.perf_counter())
            time.sleep(max(0.0, due - time.perf_counter()))
            started = time.perf_counter()
            answer = self._connection.exchange(sent)
            taken.append((time.perf_counter() - started) * 1_000)
            bare.extend(micros / 1_000 for micros in self._bare.insert(1, CONTENT))
            assert answer.status == 200, answer
        return Window(taken, bare, (cpu_seconds(self._daemon) - cpu) / (time.perf_counter() - began))

    def index(self) -> dict[str, Any]:
        return self._connection.ask("status", agentId=AGENT).json()["index"]

    def wait_until(self, what: Callable[[dict[str, Any]], bool], seconds: float = LONGEST_WAIT_SECONDS) -> bool:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if what(self.index()):
                return True
            time.sleep(0.25)
        return False

    def close(self) -> None:
        self._connection.close()
        self._bare.close()


class Resumed(NamedTuple):
    before: int
    after: int
    later: int
    lowest_said: int
    """By `status`, once it knew of any."""


def measure(run: Run) -> Findings:
    messages = run.choose(3_000, 100_000)
    seconds = run.choose(8, 60)
    home = run.folder / "indexing"
    shutil.copytree(log_of(run, messages), home)
    quiet: list[Window] = []
    with _writing(run.folder / "indexing-quiet", OFF) as writer:
        writer.write_for(1)
        run.say("nothing else")
        quiet.append(writer.write_for(seconds / 2))
    with _writing(run.folder / "indexing-own", {}) as writer:
        writer.wait_until(lambda index: bool(index.get("model")), 30)
        run.say("its own messages embedded, no backlog")
        writer.write_for(2)
        own = writer.write_for(seconds / 2)
    run.say(f"{messages:,} messages not indexed yet")
    busy, told, resumed = _while_indexing(home, seconds)
    with _writing(run.folder / "indexing-quiet", OFF) as writer:
        writer.write_for(1)
        run.say("nothing else, again")
        quiet.append(writer.write_for(seconds / 2))
    nothing = Window(
        [sample for window in quiet for sample in window.milliseconds],
        [sample for window in quiet for sample in window.bare],
        sum(window.cores for window in quiet) / len(quiet),
    )
    return _findings(messages, seconds, nothing, own, busy, told, resumed)


@contextmanager
def _writing(home: Path, settings: dict[str, str]) -> Iterator[Writer]:
    with running_in(home, **settings) as daemon:
        writer = Writer(daemon)
        yield writer
        writer.close()


def _while_indexing(home: Path, seconds: float) -> tuple[dict[str, Window], dict[str, int], Resumed]:
    """First while the words are indexed, then while the vectors are made; then killed and started again."""
    daemon = start(home)
    try:
        writer = Writer(daemon)
        began = time.monotonic()
        windows = {"while it is indexed and embedded": writer.write_for(seconds)}
        index = writer.index()
        told = {
            "entries indexed in the window": index["entries"],
            "of them embedded": index["embedded"],
            "seconds": round(time.monotonic() - began),
        }
        before = _vectors_in(home)
        kill(daemon)
        writer.close()
        after = _vectors_in(home)
        daemon = start(home)
        writer = Writer(daemon)
        writer.wait_until(lambda index: bool(index.get("model")) and index["embedded"] > 0, RESUMED_SECONDS)
        lowest = writer.index()["embedded"]
        writer.wait_until(lambda index: index["embedded"] > before or index["waiting"] == 0, RESUMED_SECONDS)
        later = _vectors_in(home)
        writer.close()
    finally:
        end(daemon)
    return windows, told, Resumed(before, after, later, lowest)


def _vectors_in(home: Path) -> int:
    """As the store counts them, read beside whoever owns it."""
    connection = apsw.Connection(str(home / "offbook.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return connection.execute("SELECT coalesce(sum(vectors), 0) FROM vector_sets").get
    finally:
        connection.close()


def _findings(
    messages: int,
    seconds: float,
    nothing: Window,
    own: Window,
    busy: dict[str, Window],
    told: dict[str, int],
    resumed: Resumed,
) -> Findings:
    windows = {"nothing else, no model": nothing, "nothing else, its own messages embedded": own, **busy}
    quiet_p99 = percentile(nothing.milliseconds, 99)
    busy_p99 = max(percentile(window.milliseconds, 99) for window in busy.values())
    cores = max(window.cores for window in busy.values()) - nothing.cores
    ratio = busy_p99 / quiet_p99
    bare_quiet = percentile(nothing.bare, 99)
    bare_busy = max(percentile(window.bare, 99) for window in busy.values())
    is_kept = resumed.after >= resumed.before and resumed.later > resumed.after
    rows: list[dict[str, Cell]] = [
        {
            "when": when,
            "p50 ms": percentile(window.milliseconds, 50),
            "p95 ms": percentile(window.milliseconds, 95),
            "p99 ms": percentile(window.milliseconds, 99),
            "most ms": max(window.milliseconds),
            "× p99": percentile(window.milliseconds, 99) / quiet_p99,
            "bare SQLite p99 ms": percentile(window.bare, 99),
            "cores": window.cores,
            "samples": len(window.milliseconds),
        }
        for when, window in windows.items()
    ]
    return Findings(
        bars=[
            Bar(
                f"p99 of onMessage while {messages:,} messages are indexed and embedded / with nothing else",
                f"≤ {MOST_TIMES:g}",
                f"{busy_p99:.2f} / {quiet_p99:.2f} ms = {ratio:.1f}",
                ratio <= MOST_TIMES,
            ),
            Bar(
                "the same of bare SQLite beside it, in a file of its own",
                "none",
                f"{bare_busy:.2f} / {bare_quiet:.2f} ms = {bare_busy / bare_quiet:.1f}",
                None,
            ),
            Bar(
                "cores used in the background (embedding.threads 1)",
                f"≤ {MOST_CORES:g}",
                f"{cores:.2f}",
                cores <= MOST_CORES + SLACK_CORES,
            ),
            Bar(
                "vectors in the store before and after kill -9, and later",
                "never fewer, then more",
                f"{resumed.before:,}, {resumed.after:,}, {resumed.later:,}",
                is_kept,
            ),
        ],
        rows=rows,
        notes=[
            f"{PACE_PER_SECOND} messages of 200 characters a second from one client to an agent of its own; windows of "
            f"{seconds:g} s, since embedding them all takes many minutes. In the window: {told}.",
            "Cores are CPU seconds of the daemon, all its threads, over wall seconds.",
            f"After the restart `status` first said that {resumed.lowest_said:,} messages are embedded.",
        ],
    )
