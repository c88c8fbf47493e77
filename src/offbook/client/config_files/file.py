"""A configuration file as it was read, and how it is replaced: in one step, with a backup beside it."""

from __future__ import annotations

import difflib
import errno
import os
import tempfile
from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from typing import Any

from offbook.client.config_files.masking import masked_text
from offbook.model.errors import OffbookError
from offbook.model.private_files import sync_folder

BACKUP_INFIX = ".offbook-backup-"
BACKUPS_KEPT = 10


@dataclass(frozen=True)
class ConfigFile:
    """The file as it was read. `path` is the file itself, no link to it."""

    path: Path
    text: str
    config: dict[str, Any]


def diff(file: ConfigFile, new_text: str, *, context: int = 2) -> list[str]:
    """A unified diff for people to see, without line ends and without secrets."""
    name = file.path.name
    old, new = masked_text(file.text).splitlines(), masked_text(new_text).splitlines()
    return list(difflib.unified_diff(old, new, f"{name} (now)", f"{name} (then)", lineterm="", n=context))


def hindrance(path: Path) -> str | None:
    """Why the file is not to be replaced. That its folder lets us is not enough: somebody took its write bits away."""
    if not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK):
        return f"{path} is write-protected: change it where it is made, or `chmod u+w` it first, as who owns it"
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return f"{path.parent} cannot be written to: run this as the user that the gateway runs as"
    return None


def replace_file(file: ConfigFile, new_text: str, at: datetime) -> Path:
    """Write it in one step, with the mode and the owner it had. Returns the backup, which is there only if it was."""
    if (why := hindrance(file.path)) is not None:
        raise OffbookError(f"{why}; nothing is written")
    backup = file.path.with_name(f"{file.path.name}{BACKUP_INFIX}{at.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}")
    _written(file.path, backup, file.text)
    try:
        if file.path.read_bytes() != file.text.encode():
            raise OffbookError(f"{file.path} was changed by someone else just now: nothing is written, run it again")
        _written(file.path, file.path, new_text)
    except BaseException as error:
        backup.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in (errno.EBUSY, errno.EXDEV):
            raise OffbookError(
                f"{file.path} is a mount of its own, as containers have it, and cannot be replaced from in here: run "
                "this where the file really is, or mount the folder instead of the file; nothing is written"
            ) from None
        raise
    return backup


def thin_out(path: Path, needed: Set[Path]) -> None:
    """Keep the newest backups, and those that are needed to give back what somebody had before."""
    for backup in backups_of(path)[BACKUPS_KEPT:]:
        if backup not in needed:
            with suppress(OSError):  # another day, then
                backup.unlink()


def backups_of(path: Path) -> list[Path]:
    """The newest first."""
    return sorted(path.parent.glob(f"{escape(path.name + BACKUP_INFIX)}*"), reverse=True)


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
    sync_folder(path.parent)
