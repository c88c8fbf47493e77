"""Ways to harm a data folder, as disks, people and other programs do."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw
from tests.acceptance.daemon import Daemon

from benchmarks.trials.small_disk import MountRefused


def copy_of(home: Path, to: Path) -> Path:
    shutil.copytree(home, to, ignore=shutil.ignore_patterns("*.sock"), dirs_exist_ok=True)
    to.chmod(0o700)
    return to


def overwrite_page(database: Path, table: str) -> None:
    """The middle one of those that hold the table's rows, with noise: what a disk gives back after it lost a sector."""
    opened = apsw.Connection(str(database))
    try:
        leaves = list(opened.execute("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (table,)))
        (size,) = next(iter(opened.execute("PRAGMA page_size")))
    finally:
        opened.close()
    page = leaves[len(leaves) // 2][0]
    with database.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(random.Random(page).randbytes(size))


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def delete_files(folder: Path) -> None:
    for path in files_in(folder):
        with suppress(FileNotFoundError):
            path.unlink()


def scramble_files(folder: Path) -> None:
    """The second half of each, whoever has it open."""
    for path in files_in(folder):
        with suppress(FileNotFoundError), path.open("r+b") as file:
            size = path.stat().st_size
            file.seek(size // 2)
            file.write(random.Random(size).randbytes(size - size // 2))


def kill_workers(daemon: Daemon) -> int:
    """The processes that it started; how many there were."""
    killed = 0
    for children in Path(f"/proc/{daemon.process.pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGKILL)
                killed += 1
    return killed


def fill(folder: Path) -> None:
    """To the last byte."""
    with (folder / "ballast").open("wb", buffering=0) as ballast:
        for size in (1_000_000, 4_096, 1):
            with suppress(OSError):
                while ballast.write(bytes(size)):
                    pass


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Raises MountRefused. For root, too, which modes do not stop."""
    try:
        _run("mount", "--bind", str(folder), str(folder))
        _run("mount", "-o", "remount,ro,bind", str(folder))
    except (OSError, subprocess.CalledProcessError) as error:
        raise MountRefused(f"a folder cannot be mounted read-only here: {error}") from None
    try:
        yield
    finally:
        _run("umount", "-l", str(folder))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=20)
