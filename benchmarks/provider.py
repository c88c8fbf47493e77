"""A real `offbook serve` that can be started, ended and killed again and again on one data folder."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from tests.acceptance.daemon import READY_SECONDS, Daemon
from tests.processes import OFFBOOK, Offbook

from benchmarks.exchange import BlockingConnection, request

POLL_SECONDS = 0.001
"""How exactly the moment of readiness is known."""
PING = request("ping")


def environ_of(home: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OFFBOOK_")}
    return {**inherited, "OFFBOOK_HOME": str(home), "OFFBOOK_PORT": "0"}


def spawn(home: Path, *, is_forked: bool = False, **settings: str) -> Daemon:
    """Begins to start it, with these variables besides; the log grows over all starts of one folder. Forked, it has its
    modules loaded already: for tests, which measure nothing."""
    log = home.with_name(home.name + ".log")
    with log.open("ab") as output:
        options: dict[str, Any] = {"env": environ_of(home) | settings, "stdout": output, "stderr": output}
        process = Offbook("serve", **options) if is_forked else subprocess.Popen([OFFBOOK, "serve"], **options)
    return Daemon(home, 0, process, log)


class Spawn(Protocol):
    """`spawn`, with what else is given to it."""

    def __call__(self, home: Path, **settings: str) -> Daemon: ...


def start(home: Path, *, is_forked: bool = False, **settings: str) -> Daemon:
    daemon = spawn(home, is_forked=is_forked, **settings)
    wait_for_ping(daemon)
    return daemon


def wait_for_ping(daemon: Daemon) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not answers(daemon):
        _fail_if_over(daemon, deadline)
        time.sleep(POLL_SECONDS)


async def wait_for_ping_beside(daemon: Daemon) -> None:
    """The same for a program whose other tasks go on meanwhile."""
    deadline = time.monotonic() + READY_SECONDS
    while not answers(daemon):
        _fail_if_over(daemon, deadline)
        await asyncio.sleep(0.01)


def answers(daemon: Daemon) -> bool:
    try:
        connection = BlockingConnection(daemon.socket, timeout_seconds=5)
    except OSError:
        return False
    try:
        return connection.exchange(PING).status == 200
    except OSError:
        return False
    finally:
        connection.close()


def kill(daemon: Daemon) -> None:
    """As the kernel would for want of memory: no chance to tidy up."""
    daemon.process.kill()
    daemon.process.wait()


def end(daemon: Daemon) -> None:
    """However it is, it is gone afterwards."""
    try:
        daemon.stop()
    except subprocess.TimeoutExpired:
        kill(daemon)


@contextmanager
def running_in(home: Path, **settings: str) -> Iterator[Daemon]:
    daemon = start(home, **settings)
    try:
        yield daemon
    finally:
        end(daemon)


@contextmanager
def working_folder(parent: Path | None = None) -> Iterator[Path]:
    """A short path: that of a Unix socket may have 107 bytes only."""
    folder = Path(tempfile.mkdtemp(prefix="ob", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def cpu_seconds(daemon: Daemon) -> float:
    """All its threads and those of its worker, to the nanosecond: the clock that clock_getcpuclockid(3) names for a
    process. A worker that has ended is not counted any more."""
    spent = time.clock_gettime((~daemon.process.pid << 3) | 2)
    for children in Path(f"/proc/{daemon.process.pid}/task").glob("*/children"):
        with suppress(OSError):
            spent += sum(time.clock_gettime((~int(child) << 3) | 2) for child in children.read_text().split())
    return spent


def drop_from_page_cache(folder: Path) -> None:
    """The next reader of these files finds them on disk only. Others' files stay cached."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file, suppress(OSError):
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _fail_if_over(daemon: Daemon, deadline: float) -> None:
    if daemon.process.poll() is not None:
        raise RuntimeError(f"offbook serve ended with {daemon.process.returncode}: {daemon.log.read_text()[-2000:]}")
    if time.monotonic() > deadline:
        end(daemon)
        raise TimeoutError(f"offbook serve was not ready in {READY_SECONDS:g} s: {daemon.log.read_text()[-2000:]}")
