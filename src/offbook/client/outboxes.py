"""The outboxes of a data folder: `outbox/<client>`, and `outbox/<client>-2` … for processes beside it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from offbook.client.courier import Courier
from offbook.client.endpoint import Endpoint
from offbook.client.outbox import Outbox, OutboxBusy
from offbook.client.outbox_folder import OutboxFolder
from offbook.client.transport import Transport
from offbook.errors import ProviderError

MAX_BYTES = 268_435_456
"""The default of the setting `outbox.maxBytes`."""
OUTBOXES_PER_CLIENT = 256


def open_outbox(home: Path, client: str, *, max_bytes: int = MAX_BYTES) -> Outbox:
    """The first outbox of this client that no process holds. Raises OutboxBusy if all are held."""
    for number in range(1, OUTBOXES_PER_CLIENT + 1):
        name = client if number == 1 else f"{client}-{number}"
        try:
            return Outbox(home / "outbox" / name, max_bytes=max_bytes)
        except OutboxBusy:
            continue
    raise OutboxBusy(f"all {OUTBOXES_PER_CLIENT} outboxes of {client!r} are held by other processes")


def folders_that_wait(home: Path, client: str = "") -> list[Path]:
    """The outboxes with something in them, of one client or of all."""
    return sorted(
        folder
        for folder in (home / "outbox").glob(f"{client}*")
        if folder.name.removeprefix(client).lstrip("-").isdecimal() or not client or folder.name == client
        if OutboxFolder(folder).segment_paths()
    )


async def deliver_folder(folder: Path, transport: Transport) -> dict[str, Any]:
    """Empty one outbox. Raises OutboxBusy; what the provider did not take stays, with the reason."""
    outbox = Outbox(folder, max_bytes=MAX_BYTES)
    before = outbox.status()
    try:
        await Courier(outbox, transport).deliver_all()
        error = None
    except ProviderError as refused:
        error = refused.detail
    finally:
        outbox.close()
    after = outbox.status()
    return {
        "folder": str(folder),
        "delivered": after["delivered"] - before["delivered"],
        "rejected": after["rejected"] - before["rejected"],
        "waiting": after["waiting"],
        "last_error": error or outbox.last_error,
    }


def deliver_outboxes(home: Path, endpoint: Endpoint | str, *, token: str | None = None) -> dict[str, Any]:
    """Deliver what ended processes left: every outbox that no live one holds."""
    where = Endpoint.parse(endpoint) if isinstance(endpoint, str) else endpoint
    return asyncio.run(_deliver_folders(folders_that_wait(home), where, token))


async def _deliver_folders(folders: list[Path], endpoint: Endpoint, token: str | None) -> dict[str, Any]:
    reports: list[dict[str, Any]] = []
    busy: list[str] = []
    async with Transport(endpoint, token=token) as transport:
        for folder in folders:
            try:
                reports.append(await deliver_folder(folder, transport))
            except OutboxBusy:
                busy.append(str(folder))
    errors = [report["last_error"] for report in reports if report["last_error"]]
    return {
        "delivered": sum(report["delivered"] for report in reports),
        "rejected": sum(report["rejected"] for report in reports),
        "waiting": sum(report["waiting"] for report in reports),
        "busy": busy,
        "last_error": errors[-1] if errors else None,
        "outboxes": reports,
    }
