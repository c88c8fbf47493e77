"""The outboxes of a data folder: `outbox/<client>`, and `outbox/<client>~2` … for processes beside it.

No client has a `~` in its name."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from offbook.client.courier import Courier, Envelope
from offbook.client.endpoint import Endpoint
from offbook.client.outbox import Outbox, OutboxBusy, OutboxElsewhere
from offbook.client.outbox_folder import OutboxFolder, add_lines
from offbook.client.segment import queued_of
from offbook.client.transport import Transport
from offbook.ingest.scope import agent_in
from offbook.model.errors import ProviderError

MAX_BYTES = 268_435_456
"""The default of the setting `outbox.maxBytes`."""
OUTBOXES_PER_CLIENT = 256

logger = logging.getLogger("offbook.client")

_reported: set[Path] = set()


def open_outbox(home: Path, client: str, *, endpoint: Endpoint, max_bytes: int = MAX_BYTES) -> Outbox:
    """The first outbox of this client and endpoint that no process holds. Raises OutboxBusy if all are held."""
    for number in range(1, OUTBOXES_PER_CLIENT + 1):
        name = client if number == 1 else f"{client}~{number}"
        try:
            return Outbox(home / "outbox" / name, max_bytes=max_bytes, endpoint=str(endpoint))
        except OutboxElsewhere as other_destination:
            _tell_once(home / "outbox" / name, other_destination.detail)
        except OutboxBusy:
            continue
    raise OutboxBusy(f"all {OUTBOXES_PER_CLIENT} outboxes of {client!r} are held by other processes")


def folders_that_wait(
    home: Path, client: str = "", endpoint: Endpoint | None = None, own: Collection[str] = ()
) -> list[Path]:
    """The outboxes with something in them, of one client or of all; with `endpoint` (and `own`, its other names) only
    what may go there."""
    waiting: list[Path] = []
    for folder in sorted((home / "outbox").glob("*")):
        name, tilde, number = folder.name.partition("~")
        if client and (name != client or (tilde and not number.isdecimal())):
            continue
        files = OutboxFolder(folder)
        if not files.segment_paths():
            continue
        destination = files.endpoint()
        if endpoint is not None and not is_addressed_to(endpoint, destination, own):
            _tell_once(folder, f"what waits in {folder} is meant for {destination}, not for {endpoint}")
            continue
        waiting.append(folder)
    return waiting


def waiting_in(folder: Path) -> int:
    """How many messages an outbox holds that were not delivered, whoever has it open. Raises OSError, ValueError."""
    outbox = OutboxFolder(folder)
    state, waiting = outbox.load(), 0
    for path in outbox.segment_paths():
        with suppress(FileNotFoundError):  # delivered and deleted while we looked
            queued = [queued_of(line) for line in path.read_bytes().splitlines()]
            waiting += sum(each is not None and state.awaits(each) for each in queued)
    return waiting


def _tell_once(folder: Path, what: str) -> None:
    if folder not in _reported:
        _reported.add(folder)
        logger.warning("%s: deliver it with a client for that endpoint, or with `offbook flush --url URL`", what)


async def deliver_folder(folder: Path, transport: Transport, *, with_rejected: bool = False) -> dict[str, Any]:
    """Empty one outbox. Raises OutboxBusy; what the provider did not take stays, with the reason."""
    outbox = Outbox(folder, max_bytes=MAX_BYTES)
    before = outbox.status()
    resent = 0
    try:
        resent = resend_rejected(outbox) if with_rejected else 0
        await Courier(outbox, transport).deliver_all()
        error = None
    except ProviderError as refused:
        error = refused.detail
    except OSError as unreadable:
        error = str(unreadable)
    finally:
        outbox.close()
    after = outbox.status()
    return {
        "folder": str(folder),
        "delivered": after["delivered"] - before["delivered"],
        "rejected": after["rejected"] - before["rejected"],
        "resent": resent,
        "waiting": after["waiting"],
        "last_error": error or outbox.last_error,
    }


def resend_rejected(outbox: Outbox) -> int:
    """Put what a provider refused for good back in line; how many those are. Raises OSError.

    A record keeps its id, so one that is put back twice, because the process ended in between, is stored once.
    """
    leaving = outbox.folder / "rejected.leaving"
    resent = _resent(outbox, leaving) if leaving.exists() else 0  # one that broke off left it
    for path in OutboxFolder(outbox.folder).rejected_paths():
        path.rename(leaving)
        resent += _resent(outbox, leaving)
    return resent


def _resent(outbox: Outbox, leaving: Path) -> int:
    resent, stays = 0, list[bytes]()
    for line in leaving.read_bytes().splitlines():
        if _put_back(outbox, line):
            resent += 1
        elif line and not line.isspace():  # what was forgotten meanwhile left blanks
            stays.append(line + b"\n")
    if not outbox.sync():
        raise OSError(f"{outbox.folder} cannot be written: {outbox.last_error}")  # so it stays here, too
    if stays:
        add_lines(outbox.folder / "rejected.jsonl", b"".join(stays))
    leaving.unlink()
    return resent


def _put_back(outbox: Outbox, line: bytes) -> bool:
    try:
        record = msgspec.json.decode(line, type=Rejected).record
        envelope = msgspec.json.decode(record, type=Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    lane = (agent_in(envelope.session_id) or "") if envelope.agent_id is None else envelope.agent_id
    return outbox.append(bytes(record), lane)


class Rejected(msgspec.Struct):
    """A line of what was refused, as far as it is of use here."""

    record: msgspec.Raw


def deliver_outboxes(
    home: Path,
    endpoint: Endpoint | str,
    *,
    token: str | None = None,
    with_rejected: bool = False,
    everything: bool = False,
    own: Collection[str] = (),
) -> dict[str, Any]:
    """Deliver what ended processes left for this endpoint: every outbox that no live one holds.

    `own`: other names of the endpoint. What is meant for another is counted as `elsewhere`; `everything` delivers it
    here, too. `with_rejected` tries again with what a provider refused for good.
    """
    where = Endpoint.parse(endpoint) if isinstance(endpoint, str) else endpoint
    folders = set(folders_that_wait(home))
    if with_rejected:
        folders |= {path.parent for path in (home / "outbox").glob("*/rejected.*")}
    others = [folder for folder in sorted(folders) if not is_addressed_to(where, OutboxFolder(folder).endpoint(), own)]
    other_destination = [] if everything else others
    report = asyncio.run(_deliver_folders(sorted(folders - set(other_destination)), where, token, with_rejected))
    report["elsewhere"] = [
        {"folder": str(folder), "endpoint": OutboxFolder(folder).endpoint(), "waiting": waiting_in(folder)}
        for folder in other_destination
    ]
    _reported.update(other_destination)  # by whoever shows this report
    return report


def is_addressed_to(endpoint: Endpoint, destination: str, own: Collection[str] = ()) -> bool:
    """Also where nobody said for whom. A socket has as many names as there are links to its folder."""
    if destination in ("", str(endpoint), *own):
        return True
    path = destination.removeprefix("unix://")
    return (
        path != destination and endpoint.scheme == "unix" and os.path.realpath(path) == os.path.realpath(endpoint.path)
    )


async def _deliver_folders(
    folders: Iterable[Path], endpoint: Endpoint, token: str | None, with_rejected: bool
) -> dict[str, Any]:
    reports: list[dict[str, Any]] = []
    busy: list[str] = []
    async with Transport(endpoint, token=token) as transport:
        for folder in folders:
            try:
                reports.append(await deliver_folder(folder, transport, with_rejected=with_rejected))
            except OutboxBusy:
                busy.append(str(folder))
    errors = [report["last_error"] for report in reports if report["last_error"]]
    return {
        "delivered": sum(report["delivered"] for report in reports),
        "rejected": sum(report["rejected"] for report in reports),
        "resent": sum(report["resent"] for report in reports),
        "waiting": sum(report["waiting"] for report in reports),
        "busy": busy,
        "last_error": errors[-1] if errors else None,
        "outboxes": reports,
    }
