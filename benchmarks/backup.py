"""What an online backup costs those who write meanwhile."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from benchmarks.exchange import BlockingConnection, request
from benchmarks.provider import OFFBOOK, environ_of, running_in
from benchmarks.results import Bar, Findings
from benchmarks.run import Run
from benchmarks.samples import flat, percentile
from benchmarks.stores import AGENT, store_with
from benchmarks.texts import KILOBYTE, text

TITLE = "`onMessage` while `offbook backup` copies, packs and checks a long history, against without"

PACE_PER_SECOND = 200
CONTENT = text("backup", KILOBYTE)
LONGEST_SECONDS = 900


class PacedWriter:
    """One message every five milliseconds, so that both sides see the same load."""

    def __init__(self, socket: Path) -> None:
        self._connection = BlockingConnection(socket)
        self._numbers = count()

    def write_while(self, is_wanted: Callable[[], bool]) -> list[float]:
        """Milliseconds of each answer since it was due: a stall counts for all that would have come during it."""
        taken: list[float] = []
        due = time.perf_counter()
        while is_wanted():
            message = {"id": f"paced-{next(self._numbers)}", "role": "user", "content": CONTENT}
            sent = request("onMessage", {"sessionId": "paced", "agentId": AGENT, "message": message})
            due += 1 / PACE_PER_SECOND
            time.sleep(max(0.0, due - time.perf_counter()))
            answer = self._connection.exchange(sent)
            taken.append((time.perf_counter() - due) * 1_000)
            assert answer.status == 200, answer
        return taken

    def write_for(self, seconds: float) -> list[float]:
        until = time.monotonic() + seconds
        return self.write_while(lambda: time.monotonic() < until)


def measure(run: Run) -> Findings:
    messages = run.choose(100_000, 1_000_000)
    home = store_with(run, messages)
    quiet: list[list[float]] = []
    busy: list[list[float]] = []
    took: list[float] = []
    wal_bytes: list[int] = []
    with running_in(home) as daemon:
        writer = PacedWriter(daemon.socket)
        writer.write_for(1)
        for number in range(run.choose(1, 2)):
            run.say(f"backup {number + 1}")
            quiet.append(writer.write_for(run.choose(4, 20)))
            samples, seconds = _while_backup(writer, home, run.folder / f"backup-{number}.tar.gz")
            busy.append(samples)
            took.append(seconds)
            wal_bytes.append((home / "offbook.db-wal").stat().st_size)
            quiet.append(writer.write_for(run.choose(4, 20)))
    return _findings(messages, flat(quiet), flat(busy), took, max(wal_bytes))


def _while_backup(writer: PacedWriter, home: Path, destination: Path) -> tuple[list[float], float]:
    started = time.monotonic()
    process = subprocess.Popen(
        [OFFBOOK, "backup", str(destination)], env=environ_of(home), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        samples = writer.write_while(lambda: process.poll() is None and time.monotonic() - started < LONGEST_SECONDS)
        seconds = time.monotonic() - started
        assert process.wait(1) == 0, process.stderr.read() if process.stderr else b""
        return samples, seconds
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        destination.unlink(missing_ok=True)


def _findings(messages: int, quiet: list[float], busy: list[float], took: list[float], wal_bytes: int) -> Findings:
    ratio = percentile(busy, 99) / percentile(quiet, 99)
    return Findings(
        bars=[
            Bar(
                f"p99 of onMessage during a backup of {messages:,} messages / without",
                "none",
                f"{percentile(busy, 99):.2f} / {percentile(quiet, 99):.2f} ms = {ratio:.1f}",
                None,
            )
        ],
        rows=[
            {
                "when": when,
                "p50 ms": percentile(samples, 50),
                "p95 ms": percentile(samples, 95),
                "p99 ms": percentile(samples, 99),
                "p99.9 ms": percentile(samples, 99.9),
                "most ms": max(samples),
                "samples": len(samples),
            }
            for when, samples in (("without", quiet), ("during", busy))
        ],
        notes=[
            f"{PACE_PER_SECOND} messages of 1 KB a second from one client. A backup took "
            f"{' and '.join(f'{seconds:.0f}' for seconds in took)} s; the WAL had {wal_bytes / 1e6:.0f} MB at its end.",
            "The backup is a process of its own, niced by nobody: on two cores it competes with the daemon and with "
            "the client.",
        ],
    )
