"""A configuration file as it was read, and how it is replaced: in one step, with a backup beside it."""

from __future__ import annotations

import difflib
import errno
import os
import re
import tempfile
from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from typing import Any

from offbook.client.config_files.editing import Node, parse, written
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


# ── What of a configuration may be shown ──
# Secrets stand beside what we change, and a report is pasted into an issue.


MASK = "***"
_SECRET = ("token", "key", "secret", "passw", "passphrase", "credential", "authorization", "cookie")
_SECRET_WORDS = frozenset(("pat", "pass", "pwd"))
"""Only as a word of their own: a path is none."""
_PLACE = ("File", "Path", "_file", "-file", "_path", "-path", "_FILE", "-FILE", "_PATH", "-PATH")
"""Where a secret lies is none."""
_USER = re.compile(r"(?<=://)[^/@\s\"']+(?=@)")
_PAIR = re.compile(
    r"(?<![\w$.-])(?P<before>(?P<quote>[\"']?)(?P<name>[\w$.-]{1,80})(?P=quote)\s*[:=]\s*)"
    r"(?P<value>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[^\s,{}\[\]\"']{8,})"
)
"""A name and its value where no reader sees them: in a comment, or under a name that stands there twice."""

_GAP = r"(?>(?:\s|(?:#|//)[^\n]*+\n|/\*(?>(?:[^*]|\*(?!/)){0,500})\*/)*)"
_FLAG = re.compile(
    r"(?P<quote>[\"'])(?P<name>--?[\w.-]{1,80}+)"
    rf"(?:=(?P<within>(?>(?:\\.|(?!(?P=quote))[^\\\n])+))|(?P=quote){_GAP},{_GAP}"
    r"(?P<next>(?![\"']--)(?:\"(?>(?:\\.|[^\"\\\n])*)\"|'(?>(?:\\.|[^'\\\n])*)')))"
)
"""An option of a command, as an item of a list, and its value: in the same item, or the next one."""
_HEADER_FLAGS = ("-H", "--header", "--headers")


def masked(value: Any, *names: str | int, is_secret: bool = False) -> Any:
    """The value that stands under these names, with every text under the name of a secret masked."""
    for name in names:
        is_secret = _is_secret(name, is_secret)
    if isinstance(value, dict):
        return {name: masked(inner, name, is_secret=is_secret) for name, inner in value.items()}
    if isinstance(value, list):
        return [masked(inner, is_secret=is_secret) for inner in value]
    if not isinstance(value, str):
        return value
    return MASK if is_secret else _USER.sub(MASK, value)


def masked_text(text: str) -> str:
    """A file as it may be shown; its layout stays."""
    for start, end in sorted(_secrets(parse(text), is_secret=False), reverse=True):
        text = text[:start] + written(MASK) + text[end:]
    return masked_pairs(text)


def masked_pairs(text: str) -> str:
    """The same for a text in whatever notation: by what looks like a name and its value."""
    return _USER.sub(MASK, _PAIR.sub(_masked_pair, _FLAG.sub(_masked_flag, text)))


def _secrets(node: Node, *, is_secret: bool) -> list[tuple[int, int]]:
    if isinstance(node.value, str):
        return [(node.start, node.end)] if is_secret else []
    return [
        place
        for name, part in node.parts.items()
        for place in _secrets(part.node, is_secret=_is_secret(name, is_secret))
    ]


def _masked_pair(match: re.Match[str]) -> str:
    return match["before"] + written(MASK) if _is_secret(match["name"], False) else match[0]


def _masked_flag(match: re.Match[str]) -> str:
    if not _is_secret(match["name"], False) and match["name"] not in _HEADER_FLAGS:
        return match[0]
    if match["within"] is not None:
        return match[0].removesuffix(match["within"]) + MASK
    return match[0].removesuffix(match["next"]) + written(MASK)


def _is_secret(name: str | int, is_within: bool) -> bool:
    if isinstance(name, int):
        return is_within
    lowered = name.lower()
    words = lowered.replace("-", "_").split("_")
    is_telling = any(part in lowered for part in _SECRET) or not _SECRET_WORDS.isdisjoint(words)
    return not f"_{name}".endswith(_PLACE) and (is_within or is_telling)
