"""A client's file: read, shown as a diff, replaced in one step with a backup beside it."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from offbook.client.config_files.file import ConfigFile, replace_file, thin_out
from offbook.client.config_files.masking import masked_pairs, masked_text
from offbook.contrib.mcp_clients.clients import FOLDERS, Notation
from offbook.model.errors import InvalidInput, OffbookError
from offbook.model.private_files import write_private

LARGEST_BYTES = 32 * 1024 * 1024
"""No configuration is larger."""


@dataclass(frozen=True)
class Planned:
    """A file as it is and as it is to be; None: it is not there. `path` is the file itself, no link to it."""

    path: Path
    notation: Notation
    before: str | None
    after: str | None
    spent: tuple[Path, ...] | None = None
    """Backups that hold nothing more once it is written, where it then is as it was before us: nothing of what is
    there now is anybody's but ours, and there is none of it either. None: it is not known to be."""

    @property
    def is_changed(self) -> bool:
        return self.before != self.after

    def diff(self, redacted: Callable[[str], str], *, context: int = 2) -> list[str]:
        """For people to see: without line ends and without secrets. What others have there is named as they like, so
        `redacted` takes out of a line what is a secret by its spelling."""
        old, new = self._shown(self.before, redacted), self._shown(self.after, redacted)
        name = self.path.name
        return list(difflib.unified_diff(old, new, f"{name} (now)", f"{name} (then)", lineterm="", n=context))

    def _shown(self, text: str | None, redacted: Callable[[str], str]) -> list[str]:
        if not text or not text.strip():
            return []
        masked = masked_text(text) if self.notation == "json" else masked_pairs(text)
        return [redacted(line) for line in masked.splitlines()]


def read_text(path: Path) -> str | None:
    """None where there is no such file. Raises InvalidInput, OSError."""
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise InvalidInput(f"{path} is larger than {LARGEST_BYTES:,} bytes: it is no configuration")
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8: {error}; mend it first, or name another file with --config") from None


def hindrance(path: Path) -> str | None:
    """Why a file is not to be written, in words for who can change it."""
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    if path.exists() and (not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK)):
        return f"{path} is write-protected: change it where it is made, or `chmod u+w` it first"
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        return f"{folder} cannot be written to: run this as the user that owns it"
    return None


def write(planned: Planned, at: datetime) -> Path | None:
    """Returns the backup, None where there was nothing to keep. Raises OffbookError, OSError."""
    path = planned.path
    if planned.before is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            raise OffbookError(f"{path} was made by someone else just now: nothing is written there, run it again")
        write_private(path, planned.after or "")
        return None
    # Also where the file goes: nothing is taken away that somebody has changed just now.
    backup = replace_file(ConfigFile(path, planned.before, {}), planned.after or planned.before, at)
    if planned.spent is not None:
        for each in (backup, *planned.spent):
            each.unlink(missing_ok=True)
    if planned.after is None:
        path.unlink()
        _remove_empty(path.parent)
    else:
        thin_out(path, set())
    return None if planned.spent is not None else backup


def _remove_empty(folder: Path) -> None:
    """A file that was not there before us came with its folder, and that with the one above it."""
    with suppress(OSError):  # it is not empty
        while folder.name in FOLDERS:
            folder.rmdir()
            folder = folder.parent
