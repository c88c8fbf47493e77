"""The data folder: who can open it, and what lies about in it."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from offbook.client.outbox_folder import OutboxFolder
from offbook.client.segment import queued_of
from offbook.doctor.finding import Finding
from offbook.home import Home
from offbook.types import now

UNFINISHED_AFTER = timedelta(hours=1)
"""A large part that is being written is a file for moments; one that old was left by a crash."""


def private_paths(home: Home) -> list[tuple[Path, int]]:
    """What only the owner may open, and the widest mode it may have."""
    return [(home.folder, 0o700), (home.token, 0o600), (home.bound_tokens, 0o600), (home.socket, 0o600)]


def check_folder(home: Home) -> Finding:
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
    findings = []
    for path, mode in private_paths(home):
        if path.exists() and (found := stat.S_IMODE(path.stat().st_mode)) & ~mode:
            what = f"{path} has mode {found:04o}: others can open it"
            mend = f"chmod {mode:o} {path}  (or `offbook doctor --fix`)"
            findings.append(Finding(check="modes", level="fail", what=what, mend=mend))
    if not findings and home.folder.is_dir():
        findings.append(Finding(check="modes", level="ok", what="only the owner can open it"))
    return findings


def fix(home: Home) -> list[str]:
    """Tighten modes and remove a socket that nobody listens on. Returns what was done."""
    done = []
    for path, mode in private_paths(home):
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & ~mode:
            path.chmod(mode)
            done.append(f"{path} is now {mode:04o}")
    if home.socket.is_socket() and lock_holder(home) is None:
        home.socket.unlink()
        done.append(f"{home.socket} is removed: nobody listened on it")
    return done


def lock_holder(home: Home) -> str | None:
    """The process that owns the data folder; None where none does."""
    try:
        descriptor = os.open(home.lock, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
    finally:
        os.close(descriptor)
    return None


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
    findings = []
    for folder in sorted(path for path in home.outboxes.glob("*") if path.is_dir()):
        waiting = _waiting_in(OutboxFolder(folder))
        if waiting:
            what = f"{folder.name}: {waiting:,} to be delivered"
            findings.append(Finding(check="outboxes", level="warn", what=what, mend="offbook flush"))
        if (folder / "rejected.jsonl").exists():
            mend = f"read {folder / 'rejected.jsonl'}: it has the reasons; delete it when done"
            what = f"{folder.name}: messages were refused for good"
            findings.append(Finding(check="outboxes", level="warn", what=what, mend=mend))
    return findings or [Finding(check="outboxes", level="ok", what="nothing waits")]


def _waiting_in(outbox: OutboxFolder) -> int:
    cursor, waiting = outbox.load().cursor, 0
    for path in outbox.segment_paths():
        with suppress(OSError):  # delivered and deleted while we looked
            queued = [queued_of(line) for line in path.read_bytes().splitlines()]
            waiting += sum(each is not None and each.ordinal > cursor for each in queued)
    return waiting
