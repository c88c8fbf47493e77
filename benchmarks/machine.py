"""Where the figures were taken: without it they mean nothing."""

from __future__ import annotations

import os
import platform
import time
from datetime import UTC, datetime
from pathlib import Path

import apsw
import msgspec

from offbook.model.version import VERSION


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    offbook: str
    cores: int
    processor: str
    memory_gb: float
    system: str
    python: str
    sqlite: str
    file_system: str
    load_before: float
    """Runnable processes per minute before the run; above the number of cores, others were at work too."""
    python_loop_ms: float
    """A million turns of an empty loop: the same processor can be half as fast an hour later, on shared hosts."""
    date: str


def machine(folder: Path) -> Machine:
    return Machine(
        offbook=VERSION,
        cores=os.cpu_count() or 0,
        processor=_first("/proc/cpuinfo", "model name") or platform.machine(),
        memory_gb=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        sqlite=apsw.sqlite_lib_version(),
        file_system=file_system_of(folder),
        load_before=round(os.getloadavg()[0], 1),
        python_loop_ms=round(min(_loop_ms() for _ in range(9)), 1),
        date=datetime.now(UTC).date().isoformat(),
    )


def _loop_ms() -> float:
    started = time.perf_counter()
    for _ in range(1_000_000):
        pass
    return (time.perf_counter() - started) * 1_000


def file_system_of(folder: Path) -> str:
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    holding = [(place, kind) for place, kind in mounts if folder.resolve().is_relative_to(place)]
    return max(holding, key=lambda mount: len(mount[0]), default=("", "unknown"))[1]


def _first(path: str, name: str) -> str | None:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), None)
