"""The data folder: who can open it, and what lies about in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import msgspec

from offbook.api.doctor.finding import Finding
from offbook.client.outbox_folder import OutboxFolder
from offbook.client.outboxes import waiting_in
from offbook.log.sqlite.lost_log import refuse_lost, refuse_lost_log
from offbook.model.errors import LogLost, OffbookError, StoreError
from offbook.model.home import SHORTEST_TOKEN, Home, lock_holder
from offbook.model.keys import KEYS_FILE
from offbook.model.private_files import read_private
from offbook.model.types import now
from offbook.transfer.backup import marker_of

UNFINISHED_AFTER = timedelta(hours=1)
"""A large part that is being written is a file for moments; one that old was left by a crash."""


def private_paths(home: Home) -> list[tuple[Path, int]]:
    """What only the owner may open, and the widest mode it may have."""
    folders = [(folder, 0o700) for folder in (home.folder, home.indexes, home.summaries)]
    return [
        *folders,
        (home.folder / KEYS_FILE, 0o600),
        (home.token, 0o600),
        (home.bound_tokens, 0o600),
        (home.socket, 0o600),
    ]


def check_folder(home: Home) -> Finding:
    if home.folder.exists() and not home.folder.is_dir():
        mend = "set OFFBOOK_HOME to a folder, or move the file away"
        return Finding(check="folder", level="fail", what=f"{home.folder} is a file, not a folder", mend=mend)
    if not home.folder.is_dir():
        mend = "the first `offbook serve` makes it; if there should be one, set OFFBOOK_HOME"
        return Finding(check="folder", level="warn", what=f"{home.folder} does not exist", mend=mend)
    owner = home.folder.stat().st_uid
    if owner != os.getuid():
        mend = "run as its owner, or set OFFBOOK_HOME to a folder of yours"
        what = f"{home.folder} belongs to user {owner}, this is user {os.getuid()}"
        return Finding(check="folder", level="warn", what=what, mend=mend)
    if not os.access(home.folder, os.W_OK | os.X_OK):
        mend = f"chmod u+rwx {home.folder}"
        return Finding(check="folder", level="fail", what=f"{home.folder} cannot be written", mend=mend)
    return Finding(check="folder", level="ok", what=str(home.folder))


def check_modes(home: Home) -> list[Finding]:
    """Conversations and tokens are in there: whatever others can open is told."""
    findings: list[Finding] = []
    if not home.folder.is_dir():
        return findings
    foreign = _why_not_ours(home.folder)
    for path, mode in private_paths(home):
        if path.exists() and (found := stat.S_IMODE(path.stat().st_mode)) & ~mode:
            if foreign is not None:
                what = f"{home.folder} {foreign}, and others can open it"
                mend = "set OFFBOOK_HOME to a folder of your own that only you can open"
                return [Finding(check="modes", level="warn", what=what, mend=mend)]
            what = f"{path} has mode {found:04o}: others can open it"
            mend = f"chmod {mode:o} {path}  (or `offbook doctor --fix`)"
            findings.append(Finding(check="modes", level="fail", what=what, mend=mend))
    if not findings:
        findings.append(Finding(check="modes", level="ok", what="only the owner can open it"))
    return findings


def fix(home: Home) -> list[str]:
    """Tighten modes and remove a socket that nobody listens on. Returns what was done."""
    done: list[str] = []
    if _why_not_ours(home.folder) is not None:
        return done
    for path, mode in private_paths(home):
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & ~mode:
            path.chmod(mode)
            done.append(f"{path} is now {mode:04o}")
    if home.socket.is_socket() and lock_holder(home) is None:
        home.socket.unlink()
        done.append(f"{home.socket} is removed: nobody listened on it")
    return done


def _why_not_ours(folder: Path) -> str | None:
    """OFFBOOK_HOME may name any folder by mistake, /tmp for one: closing that to others would break the machine."""
    if not folder.is_dir():
        return "is no folder"
    status = folder.stat()
    if status.st_mode & stat.S_ISVTX:
        return "is a folder that users share"
    if status.st_uid != os.getuid():
        return f"belongs to user {status.st_uid}"
    home = Home(folder)
    if not any(path.exists() for path in (home.database, home.lock, home.token)):
        return "holds no data of Offbook"
    return None


def check_restore(home: Home) -> list[Finding]:
    if not marker_of(home).exists():
        return []
    what = f"a restore broke off half-way in {home.folder}: no provider starts until it is finished"
    return [Finding(check="restore", level="fail", what=what, mend="offbook restore --resume")]


def check_log(home: Home) -> list[Finding]:
    try:
        refuse_lost_log(home)
        refuse_lost(home.database)
    except LogLost as error:
        return [Finding(check="log", level="fail", what=error.detail, mend="offbook restore FILE --force")]
    except StoreError:
        return []  # what cannot be opened is told of by itself
    return []


def check_tokens(home: Home) -> Finding:
    try:
        number = len(home.read_bound_tokens())
        is_short = home.token.exists() and len(read_private(home.token).strip()) < SHORTEST_TOKEN
    except (OffbookError, UnicodeDecodeError, OSError) as error:
        mend = f"mend {home.bound_tokens}, or remove it and make its tokens again with `offbook token create`"
        return Finding(check="tokens", level="fail", what=f"{home.bound_tokens} cannot be read: {error}", mend=mend)
    if is_short:
        mend = f"rm {home.token}  (the next `offbook serve` makes a new one)"
        return Finding(check="tokens", level="fail", what=f"{home.token} is empty or too short", mend=mend)
    return Finding(check="tokens", level="ok", what=f"the owner's and {number:,} for agents")


def check_blob_files(home: Home) -> Finding:
    """Names, sizes and what crashes left. The contents of the newest are compared with the log by `check_store`."""
    oldest = (now() - UNFINISHED_AFTER).timestamp()
    odd, unfinished, number = [], [], 0
    for path in _files_under(home.blobs):
        number += 1
        if path.suffix == ".tmp":
            with suppress(FileNotFoundError):  # it was just finished
                unfinished += [path] if path.stat().st_mtime < oldest else []
        elif not os.access(path, os.R_OK) or len(path.name) != 64 or path.parent.name != path.name[:2]:
            odd.append(path)
    if odd:
        mend = "restore it from a backup if it is unreadable, move it away if it is not ours"
        return Finding(check="large parts", level="warn", what=f"{odd[0]} is unreadable or not ours", mend=mend)
    if unfinished:
        what = f"unfinished files: {len(unfinished):,}, the first {unfinished[0]}"
        mend = f"find {home.blobs} -name '*.tmp' -mmin +60 -delete"
        return Finding(check="large parts", level="warn", what=what, mend=mend)
    return Finding(check="large parts", level="ok", what=f"{number:,} kept")


def _files_under(folder: Path) -> Iterator[Path]:
    for root, _, names in os.walk(folder):
        yield from (Path(root, name) for name in names)


def check_outboxes(home: Home) -> list[Finding]:
    """What clients could not deliver, and what the provider would not take."""
    findings: list[Finding] = []
    for folder in sorted(home.outboxes.glob("*")):
        try:
            findings += _of_outbox(folder) if folder.is_dir() else []
        except (OffbookError, OSError, ValueError, msgspec.MsgspecError) as error:
            mend = f"mend {folder}, or move it away: its client begins a new one"
            what = f"{folder.name} cannot be read: {error}"
            findings.append(Finding(check="outboxes", level="fail", what=what, mend=mend))
    return findings or [Finding(check="outboxes", level="ok", what="nothing waits")]


def _of_outbox(folder: Path) -> list[Finding]:
    findings = []
    if waiting := waiting_in(folder):
        what = f"{folder.name}: {waiting:,} to be delivered"
        findings.append(Finding(check="outboxes", level="warn", what=what, mend="offbook flush"))
    if rejected := OutboxFolder(folder).rejected_paths():
        files = ", ".join(map(str, rejected))
        mend = f"read {files}: it has the reasons; `offbook flush --rejected` tries again; delete it when done"
        what = f"{folder.name}: messages were refused for good"
        findings.append(Finding(check="outboxes", level="warn", what=what, mend=mend))
    return findings
