"""The host's configuration file: where it is, what it says, and how it is replaced."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from offbook.errors import InvalidInput, NotFound, OffbookError
from offbook.hosts.openclaw.json5 import parse

BACKUP_INFIX = ".offbook-backup-"
_UNSET = ("", "undefined", "null")
"""What the host takes for no value at all in its variables."""


@dataclass(frozen=True)
class ConfigFile:
    """The file as it was read. `path` is the file itself, no link to it."""

    path: Path
    text: str
    config: dict[str, Any]


def state_folder(environ: Mapping[str, str]) -> Path:
    """Where the host keeps sessions: OPENCLAW_STATE_DIR, else `.openclaw` in its home, which OPENCLAW_HOME may move."""
    return _path(environ, "OPENCLAW_STATE_DIR") or (_path(environ, "OPENCLAW_HOME") or Path.home()) / ".openclaw"


def config_path(environ: Mapping[str, str]) -> Path:
    """OPENCLAW_CONFIG_PATH, else openclaw.json in the state folder."""
    return _path(environ, "OPENCLAW_CONFIG_PATH") or state_folder(environ) / "openclaw.json"


def _path(environ: Mapping[str, str], name: str) -> Path | None:
    value = environ.get(name, "").strip()
    return None if value in _UNSET else Path(value).expanduser().absolute()


def read(path: Path) -> ConfigFile:
    """Raises NotFound or InvalidInput; an OSError where it cannot be opened."""
    real = path.resolve()
    try:
        text = real.read_bytes().decode()
    except FileNotFoundError:
        raise NotFound(
            f"there is no {path}: name it with --config, or set OpenClaw up first (`openclaw onboard`)"
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8: {error}") from None
    config = parse(text).value
    if not isinstance(config, dict):
        raise InvalidInput(f"{path} holds no object")
    return ConfigFile(real, text, config)


def diff(file: ConfigFile, new_text: str) -> list[str]:
    """A unified diff, without line ends."""
    name = file.path.name
    return list(
        difflib.unified_diff(
            file.text.splitlines(), new_text.splitlines(), f"{name} (now)", f"{name} (then)", lineterm="", n=2
        )
    )


def replace(file: ConfigFile, new_text: str, at: datetime) -> Path:
    """Write it in one step, with the mode and the owner it had. Returns the backup that is made before."""
    backup = file.path.with_name(f"{file.path.name}{BACKUP_INFIX}{at.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}")
    _written(file.path, backup, file.text)
    if file.path.read_bytes() != file.text.encode():
        raise OffbookError(f"{file.path} was changed by someone else just now: nothing is written, run it again")
    _written(file.path, file.path, new_text)
    return backup


def backups(path: Path) -> Iterator[dict[str, Any]]:
    """What the file said before our changes to it, the newest first."""
    for backup in sorted(path.parent.glob(f"{path.name}{BACKUP_INFIX}*"), reverse=True):
        with suppress(OSError, OffbookError):
            yield read(backup).config


def _written(like: Path, path: Path, text: str) -> None:
    status = like.stat()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), status.st_mode & 0o777)
            with suppress(PermissionError):  # only root can give a file away; whoever owns it keeps owning it
                os.fchown(file.fileno(), status.st_uid, status.st_gid)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
