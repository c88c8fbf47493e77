"""Backups that are made by themselves, in the data folder: when one is due, and which of the old ones go.

Pure functions decide over names and times. A clock that jumps makes at worst one backup too many: what is named after
a moment yet to come is neither taken for a recent one nor kept before those of this day.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

import msgspec

from offbook.model.errors import InvalidInput, OffbookError
from offbook.model.home import Home
from offbook.model.plain_names import is_digits
from offbook.model.private_files import make_private, sync_folder, write_private
from offbook.model.status import BackupStatus
from offbook.model.types import Sparse, Value, now
from offbook.projections import base
from offbook.transfer.backup.archive import (
    BackupDamaged,
    Manifest,
    Progress,
    disk_errors,
    read_manifest,
    silent,
)
from offbook.transfer.backup.making import default_name, remove_abandoned, write_backup

LISTINGS_KEPT = 64


class ListedBackup(Sparse, frozen=True):
    """One of them, as it says of itself; `trouble` where it cannot be read."""

    file: str
    bytes: int
    made_at: datetime
    agents: list[str]
    messages: int
    messages_by_agent: dict[str, int]
    trouble: str | None = None


class Rotated(Sparse, frozen=True):
    file: str
    bytes: int
    manifest: Manifest
    removed: list[str]


# ── what is decided ───────────────────────────────────────────────────────────────────────────


def name_at(at: datetime) -> str:
    """In UTC: local time comes twice in an autumn night."""
    return default_name(at.astimezone(UTC))


def time_of(name: str) -> datetime | None:
    """When a backup of this name was made; None where it is not one of those that come and go by themselves."""
    made_at = name.removeprefix("offbook-").removesuffix(".tar.gz")
    if name != f"offbook-{made_at}.tar.gz" or [len(part) for part in made_at.split("-") if is_digits(part)] != [8, 6]:
        return None
    try:
        return datetime.strptime(made_at, "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def is_due(names: Iterable[str], at: datetime, every: timedelta) -> bool:
    made = [when for name in names if (when := time_of(name)) is not None and when <= at]
    return not made or at - max(made) >= every


def to_remove(names: Iterable[str], at: datetime, keep: int) -> list[str]:
    """All but the newest `keep`, the oldest first. Whatever has another name is not touched."""
    ours = [(when <= at, when, name) for name in names if (when := time_of(name)) is not None]
    return [name for _, _, name in sorted(ours)[: max(0, len(ours) - max(1, keep))]]


# ── what is done ──────────────────────────────────────────────────────────────────────────────


async def keep_backing_up(home: Home, every: timedelta | None, keep: int) -> base.Progress:
    """The task of maintenance: one where it is time for one, and those go that are too many then."""
    if every is None or not home.database.exists() or not is_due(_names(home), now(), every):
        return base.Progress()
    rotated = await rotate(home, keep)
    return base.Progress(did={"backups": 1} | ({"removed": len(rotated.removed)} if rotated.removed else {}))


async def rotate(home: Home, keep: int, *, progress: Progress = silent) -> Rotated:
    """Make one now. Old ones go only after the new one is written, and read back."""
    if not home.database.exists():
        raise InvalidInput(f"there is nothing to back up: {home.database} does not exist")
    with disk_errors(home.backups):
        make_private(home.backups)
        remove_abandoned(home.backups)
    at = now()
    while (destination := home.backups / name_at(at)).exists():
        at += timedelta(seconds=1)
    manifest = await write_backup(home, destination, progress=progress)
    going = [name for name in to_remove(_names(home), at, keep) if name != destination.name]
    with disk_errors(home.backups):
        for name in going:
            (home.backups / name).unlink(missing_ok=True)
        sync_folder(home.backups)
    return Rotated(file=str(destination), bytes=destination.stat().st_size, manifest=manifest, removed=going)


def listed(home: Home) -> list[ListedBackup]:
    """Those in the data folder, oldest first. Of each only the beginning is read."""
    found = (_listed(home.backups / name) for name in _ours(_names(home)))
    return [one for one in found if one is not None]


def _listed(path: Path) -> ListedBackup | None:
    """None where it has gone meanwhile: a newer one takes the place of an old one at any time."""
    size, named_at = 0, time_of(path.name)
    assert named_at is not None
    try:
        is_now = path.stat()
        size = is_now.st_size
        return _as_listed(path, size, is_now.st_mtime_ns)
    except FileNotFoundError:
        return None
    except (OffbookError, OSError) as error:
        trouble = error.detail if isinstance(error, OffbookError) else str(BackupDamaged(f"{path}: {error}").detail)
        return ListedBackup(
            file=str(path), bytes=size, made_at=named_at, agents=[], messages=0, messages_by_agent={}, trouble=trouble
        )


@lru_cache(LISTINGS_KEPT)
def _as_listed(path: Path, size: int, _changed_ns: int) -> ListedBackup:
    """Read once: `status` asks often, and the list of what a large one holds takes a while."""
    manifest = read_manifest(path)
    return ListedBackup(
        file=str(path),
        bytes=size,
        made_at=manifest.created_at,
        agents=[agent.agent_id for agent in manifest.agents],
        messages=manifest.messages,
        messages_by_agent={agent.agent_id: agent.messages for agent in manifest.agents},
    )


def backups_of(home: Home, agent_id: str) -> tuple[list[BackupStatus], int]:
    """Those that hold the agent's memory, the newest first, and how many cannot be read. Files elsewhere are not looked
    at: they may lie on a disk that does not answer."""
    here = listed(home)
    found = [
        BackupStatus(file=Path(one.file).name, made_at=one.made_at, in_data_folder=True, messages=messages)
        for one in here
        if (messages := one.messages_by_agent.get(agent_id)) is not None
    ]
    paths = {one.file for one in here}
    found += [
        BackupStatus(file=Path(one.path).name, made_at=one.made_at, in_data_folder=False)
        for one in _noted(home)
        if one.path not in paths and agent_id in one.agents
    ]
    return sorted(found, key=lambda one: one.made_at, reverse=True), sum(one.trouble is not None for one in here)


def _ours(names: Sequence[str]) -> list[str]:
    return sorted(name for name in names if time_of(name) is not None)


def _names(home: Home) -> list[str]:
    """Files only: a link or a folder of that name is somebody else's."""
    try:
        return [path.name for path in home.backups.iterdir() if path.is_file() and not path.is_symlink()]
    except FileNotFoundError:
        return []


# ── Which backups there are, as far as is known: in the data folder, and where others were written ──

KNOWN = "known.json"
MOST_KNOWN = 1_000
"""The newest: a backup every hour for six weeks."""


class KnownBackup(Value, frozen=True):
    path: str
    made_at: datetime
    agents: list[str]
    is_there: bool = True
    """Whether the file can be seen now: it may lie on a disk that is not attached, or be gone."""
    trouble: str | None = None
    """Why it cannot be read; whose memory it holds is not known then."""


def known_backups(home: Home) -> list[KnownBackup]:
    """Oldest first."""
    here = [
        KnownBackup(path=one.file, made_at=one.made_at, agents=one.agents, trouble=one.trouble) for one in listed(home)
    ]
    paths = {one.path for one in here}
    elsewhere = [
        msgspec.structs.replace(one, is_there=Path(one.path).is_file()) for one in _noted(home) if one.path not in paths
    ]
    return sorted([*here, *elsewhere], key=lambda one: (one.made_at, one.path))


def note_backup(home: Home, path: Path, manifest: Manifest) -> None:
    """Best effort: a backup that was made is made, whether or not this can be written."""
    if path.parent == home.backups and time_of(path.name) is not None:
        return  # it is found by its name
    # A name that is not UTF-8 cannot be said in JSON; it is named as well as can be.
    name = str(path.absolute()).encode("utf-8", "backslashreplace").decode()
    one = KnownBackup(path=name, made_at=manifest.created_at, agents=[agent.agent_id for agent in manifest.agents])
    with suppress(OSError):
        known = [each for each in _noted(home) if each.path != name] + [one]
        make_private(home.backups)
        text = msgspec.json.format(msgspec.json.encode(known[-MOST_KNOWN:])).decode()
        write_private(home.backups / KNOWN, text + "\n")


def _noted(home: Home) -> list[KnownBackup]:
    try:
        return msgspec.json.decode((home.backups / KNOWN).read_bytes(), type=list[KnownBackup])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return []
