"""Which files of a client change, and into what; and those files, written in one step."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from offbook.client.config_files.editing import MISSING, value_at
from offbook.client.config_files.file import ConfigFile, backups_of, masked_pairs, masked_text, replace_file, thin_out
from offbook.client.endpoint import Endpoint
from offbook.contrib.mcp_clients.clients import FOLDERS, NAME, Client, Notation, Server
from offbook.contrib.mcp_clients.configs import (
    Draft,
    add_hooks,
    add_server,
    our_hooks,
    read_toml,
    remove_hooks,
    remove_server,
    with_server,
    without_server,
)
from offbook.model.errors import InvalidInput, OffbookError
from offbook.model.private_files import write_private

TRUST = "Codex asks before it runs a new hook: start codex, look at them with /hooks, and trust them"
BOTH_KINDS = "hooks stand in config.toml as well: Codex loads both, and says so when it starts"
HOOKS_OFF = "config.toml turns hooks off (features.hooks): capture begins when it is turned on"
FAR = "{} is another machine and wants a token; none is written: start the client with OFFBOOK_TOKEN set"
OPEN_SESSION = "a running Claude Code may write its own file back: end it first, or look with --dry-run afterwards"


@dataclass
class Plan:
    files: list[Planned] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Worth knowing."""

    @property
    def changed(self) -> list[Planned]:
        return [file for file in self.files if file.is_changed]


def connected(name: str, client: Client, config: Path, hooks: Path | None, server: Server, *, capture: bool) -> Plan:
    """`hooks`: the file they stand in, None for a client that has none. Raises InvalidInput, OffbookError, OSError."""
    server = server.taking_over(_entry_in(config, client))
    entry = server.entry(names_type=client.names_type)
    plan = Plan()

    def with_hooks(text: str) -> str:
        draft = Draft(text)
        if capture:
            add_hooks(draft, client.events, name, server.hook(name))
        else:
            remove_hooks(draft, name)
        return draft.text if draft.is_changed else text

    plan.files.append(_planned(config, client.notation, partial(_with_entry, client=client, entry=entry)))
    if hooks is not None:
        plan.files.append(_planned(hooks, "json", with_hooks, may_make=capture))
    if name == "codex" and capture:
        _note_of_codex(plan)
    if name == "claude-code" and plan.files[0].is_changed and plan.files[0].before is not None:
        plan.notes.append(OPEN_SESSION)
    if server.url is not None and _is_far(server.url):
        plan.notes.append(FAR.format(server.url))
    return plan


def disconnected(name: str, client: Client, config: Path, hooks: Path | None) -> Plan:
    """Raises InvalidInput, OffbookError, OSError."""

    def without_entry(text: str) -> str:
        if client.notation == "toml":
            return without_server(text, client.servers[0])
        draft = Draft(text)
        remove_server(draft, client.servers)
        return draft.text if draft.is_changed else text

    def without_hooks(text: str) -> str:
        draft = Draft(text)
        remove_hooks(draft, name)
        return draft.text if draft.is_changed else text

    def again_with_hooks(text: str, present: str) -> str:
        draft = Draft(text)
        events, command = our_hooks(Draft(present).config, name)
        add_hooks(draft, events, name, command)
        return draft.text if draft.is_changed else text

    def again_with_entry(text: str, present: str) -> str:
        return _with_entry(text, client=client, entry=_entry_of(present, client))

    plan = Plan([_undone(config, client.notation, without_entry, again_with_entry)])
    if hooks is not None:
        plan.files.append(_undone(hooks, "json", without_hooks, again_with_hooks))
    return plan


def _with_entry(text: str, *, client: Client, entry: dict[str, Any]) -> str:
    if client.notation == "toml":
        return with_server(text, client.servers[0], entry)
    draft = Draft(text)
    add_server(draft, client.servers, entry)
    return draft.text if draft.is_changed else text


def _entry_in(config: Path, client: Client) -> Any:
    """What stands under our name, None where nothing does; that a file is broken is told by who changes it."""
    with suppress(InvalidInput):
        return _entry_of(read_text(config.resolve()) or "", client)
    return None


def _entry_of(text: str, client: Client) -> Any:
    config = read_toml(text) if client.notation == "toml" else Draft(text).config
    entry = value_at(config, (*client.servers, NAME))
    return None if entry is MISSING else entry


def _is_far(url: str) -> bool:
    with suppress(InvalidInput):  # a client may fill in a variable of its own
        endpoint = Endpoint.parse(url)
        return endpoint.scheme != "unix" and not endpoint.is_loopback
    return False


def _planned(path: Path, notation: Notation, change: Callable[[str], str], *, may_make: bool = True) -> Planned:
    real = path.resolve()
    before = read_text(real)
    if before is None and not may_make:
        return Planned(real, notation, None, None)
    try:
        after = change(before or "")
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error.detail}") from None
    planned = Planned(real, notation, before, before if after == (before or "") else after)
    if planned.is_changed and (why := hindrance(real)) is not None:
        raise OffbookError(f"{why}; nothing is written")
    return planned


def _undone(path: Path, notation: Notation, without: Callable[[str], str], again: Callable[[str, str], str]) -> Planned:
    """As it was before us to the byte, where nobody has changed it since: where connecting what was there (`again`)
    gives what is there."""
    planned = _planned(path, notation, without, may_make=False)
    present = planned.before
    if not planned.is_changed or present is None:
        return planned
    kept: dict[Path, str] = {}
    for backup in backups_of(planned.path):
        with suppress(OffbookError, OSError):
            kept[backup] = read_text(backup) or ""

    def is_only(base: str, text: str) -> bool:
        """Whether it holds `base`, and beside that nothing but what we put there."""
        with suppress(OffbookError):
            return text == base or (without(text) != text and again(base, text) == text)
        return False

    for text in (*kept.values(), ""):
        with suppress(OffbookError):
            if without(text) == text and is_only(text, present):
                spent = tuple(backup for backup, other in kept.items() if is_only(text, other))
                was_there = text in kept.values()
                return Planned(planned.path, notation, present, text if was_there else None, spent)
    return planned


def _note_of_codex(plan: Plan) -> None:
    config = read_toml(plan.files[0].before or "")
    hooks = config.get("hooks")
    if isinstance(hooks, dict) and set(hooks) - {"state"}:
        plan.notes.append(BOTH_KINDS)
    features = config.get("features")
    if isinstance(features, dict) and False in (features.get("hooks"), features.get("codex_hooks")):
        plan.notes.append(HOOKS_OFF)
    if plan.files[-1].is_changed:
        plan.notes.append(TRUST)


# ── A client's file ──
# Read, shown as a diff, replaced in one step with a backup beside it.


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
