"""What Offbook runs on, and what it was told."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping

from offbook.api.doctor.finding import Finding
from offbook.model.errors import OffbookError
from offbook.model.home import Home
from offbook.model.settings import Settings, load

OLDEST_PYTHON = (3, 11)
WAL_RESET_BUG = ((3, 7, 0), (3, 51, 2))
"""In these a checkpoint beside a write can lose committed rows (sqlite.org/wal.html)."""
LEAST_FREE_BYTES = 1_000_000_000
LEAST_FREE_SHARE = 0.05


def check_python(version: tuple[int, ...]) -> Finding:
    name = ".".join(map(str, version))
    if version[:2] < OLDEST_PYTHON:
        return Finding(check="python", level="fail", what=name, mend="install Python 3.11 or newer")
    return Finding(check="python", level="ok", what=f"{name} on {platform.system()}")


def check_sqlite(version: str) -> Finding:
    oldest, newest = WAL_RESET_BUG
    if oldest <= tuple(map(int, version.split("."))) <= newest:
        return Finding(
            check="sqlite",
            level="fail",
            what=f"{version} can lose committed rows (WAL-reset bug)",
            mend="pip install --upgrade apsw-sqlite3mc",
        )
    return Finding(check="sqlite", level="ok", what=version)


def check_space(home: Home) -> Finding:
    usage = shutil.disk_usage(home.folder)
    what = f"{usage.free / 1e9:,.1f} GB free of {usage.total / 1e9:,.1f} GB"
    if usage.free < LEAST_FREE_BYTES or usage.free < LEAST_FREE_SHARE * usage.total:
        mend = "free some space, or move the data folder and set OFFBOOK_HOME"
        return Finding(check="disk", level="warn", what=what, mend=mend)
    return Finding(check="disk", level="ok", what=what)


def check_settings(home: Home, environ: Mapping[str, str]) -> tuple[Settings | None, Finding]:
    try:
        loaded = load(home.folder, environ=environ)
    except OffbookError as error:
        mend = f"mend {home.config} or the variable named; `offbook config` shows every setting"
        return None, Finding(check="settings", level="fail", what=error.detail, mend=mend)
    changed = len(loaded.origins)
    what = f"{changed} changed from the default" if changed else "all as by default"
    return loaded.settings, Finding(check="settings", level="ok", what=what)
