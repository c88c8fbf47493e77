"""Where the figures were taken: without it they mean nothing."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

import apsw
import msgspec

from offbook.version import VERSION


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
        date=datetime.now(UTC).date().isoformat(),
    )


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
