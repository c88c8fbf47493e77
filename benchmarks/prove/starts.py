"""Starting where something is wrong with the data folder: it starts, or one line says why not and what to do."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.acceptance.daemon import Daemon
from tests.processes import Offbook

from benchmarks.prove import damage
from benchmarks.provider import environ_of, kill, wait_for_ping
from benchmarks.trials.small_disk import MountRefused

STARTS: dict[str, Callable[[Path], None]] = {
    "the data folder is read-only": lambda home: None,
    "the database is gone": lambda home: (home / "offbook.db").unlink(),
    "the database is empty": lambda home: os.truncate(home / "offbook.db", 0),
    "half of the database is gone": lambda home: os.truncate(
        home / "offbook.db", (home / "offbook.db").stat().st_size // 2
    ),
    "the database is noise": lambda home: _write(home / "offbook.db", random.Random(1).randbytes(100_000)),
    "the settings are not TOML": lambda home: _write(home / "config.toml", b"[server\nport ="),
    "a setting does not exist": lambda home: _write(home / "config.toml", b"[server]\nprot = 1\n"),
    "the folder can be written by others": lambda home: home.chmod(0o777),
    "the token file is a link": lambda home: _link(home / "token"),
}


class Start(NamedTuple):
    harm: str
    told: str
    wrong: list[str]


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _link(path: Path) -> None:
    path.rename(path.with_suffix(".elsewhere"))
    path.symlink_to(path.with_suffix(".elsewhere"))


def started(home: Path, harm: str) -> Start:
    STARTS[harm](home)
    log = home.with_name("start.log")
    with ExitStack() as stack:
        if harm.endswith("read-only"):
            try:
                stack.enter_context(damage.read_only(home))
            except MountRefused as refused:
                return Start(harm, f"not run: {refused}", [])
        with log.open("wb") as output:
            process = Offbook("serve", env=environ_of(home), stdout=output, stderr=output)
        daemon = Daemon(home, 0, process, log)
        try:
            wait_for_ping(daemon)
            kill(daemon)
            return Start(harm, "it starts", [])
        except RuntimeError:
            return _told(harm, process, log.read_text(), home)


def _told(harm: str, process: subprocess.Popen[bytes], log: str, home: Path) -> Start:
    """Its last line, without where the trial lay."""
    told = next((line for line in reversed(log.splitlines()) if line.startswith("offbook: ")), "")
    wrong = [] if told and "Traceback" not in log else [f"at the start, {harm}: {log[-1_000:]}"]
    return Start(harm, f"ends with {process.returncode}, `{told.replace(str(home), '~/.offbook')}`", wrong)
