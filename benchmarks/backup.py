"""What an online backup costs those who write meanwhile."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from benchmarks.bare_sqlite import BareSqlite
from benchmarks.paced import PacedWriter, Samples
from benchmarks.provider import OFFBOOK, environ_of, running_in
from benchmarks.results import Bar, Findings
from benchmarks.run import Run
from benchmarks.samples import percentile
from benchmarks.stores import AGENT, store_with
from benchmarks.texts import KILOBYTE, text

TITLE = "`onMessage` while `offbook backup` copies, packs and checks a long history, against without"

PACE_PER_SECOND = 200
CONTENT = text("backup", KILOBYTE)
LONGEST_SECONDS = 900


def measure(run: Run) -> Findings:
    messages = run.choose(100_000, 1_000_000)
    home = store_with(run, messages)
    quiet, busy = Samples([], []), Samples([], [])
    took: list[float] = []
    bare = BareSqlite(run.folder / "beside-backup")
    with running_in(home) as daemon:
        writer = PacedWriter(daemon.socket, bare, agent_id=AGENT, content=CONTENT, per_second=PACE_PER_SECOND)
        writer.write_for(1)
        for number in range(run.choose(1, 2)):
            run.say(f"backup {number + 1}")
            quiet.add(writer.write_for(run.choose(4, 20)))
            samples, seconds = _while_backup(writer, home, run.folder / f"backup-{number}.tar.gz")
            busy.add(samples)
            took.append(seconds)
            quiet.add(writer.write_for(run.choose(4, 20)))
    bare.close()
    return _findings(messages, quiet, busy, took)


def _while_backup(writer: PacedWriter, home: Path, destination: Path) -> tuple[Samples, float]:
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


def _findings(messages: int, quiet: Samples, busy: Samples, took: list[float]) -> Findings:
    without, during = percentile(quiet.provider, 99), percentile(busy.provider, 99)
    bare_without, bare_during = percentile(quiet.bare, 99), percentile(busy.bare, 99)
    return Findings(
        bars=[
            Bar(
                f"p99 of onMessage during a backup of {messages:,} messages / without",
                "none",
                f"{during:.2f} / {without:.2f} ms = {during / without:.1f}",
                None,
            ),
            Bar(
                "the same of bare SQLite beside it, in a file of its own",
                "none",
                f"{bare_during:.2f} / {bare_without:.2f} ms = {bare_during / bare_without:.1f}",
                None,
            ),
        ],
        rows=[
            {
                "who": who,
                "when": when,
                "p50 ms": percentile(samples, 50),
                "p95 ms": percentile(samples, 95),
                "p99 ms": percentile(samples, 99),
                "p99.9 ms": percentile(samples, 99.9),
                "most ms": max(samples),
                "samples": len(samples),
            }
            for who, when, samples in (
                ("onMessage", "without", quiet.provider),
                ("onMessage", "during", busy.provider),
                ("bare SQLite", "without", quiet.bare),
                ("bare SQLite", "during", busy.bare),
            )
        ],
        notes=[
            f"{PACE_PER_SECOND} messages of 1 KB a second from one client, and as many rows of bare SQLite. A backup "
            f"took {' and '.join(f'{seconds:.0f}' for seconds in took)} s.",
            "The backup is a process of its own: on two cores it competes with the daemon and with the client, and "
            "what it writes competes with every sync of the disk.",
        ],
    )
