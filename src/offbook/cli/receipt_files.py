"""The files that receipts of `offbook forget` are kept in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from offbook.model.home import Home
    from offbook.model.receipt import ForgetReceipt

RECEIPT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""What may be the name of a file, whoever said it."""


def check_place(kept_in: Path) -> None:
    """Before anything is gone: a receipt that cannot be kept proves nothing."""
    if kept_in.exists():
        raise click.UsageError(f"{kept_in} is there already: name another file for the receipt")
    if not kept_in.absolute().parent.is_dir():
        raise click.UsageError(f"{kept_in}: there is no such folder to write the receipt to")


def place_of(home: Home, receipt: ForgetReceipt) -> Path:
    name = receipt.id if RECEIPT_ID.fullmatch(receipt.id) else f"forget-{receipt.audit_seq}"
    return home.receipts / f"{name}.json"


def was_kept(place: Path, document: dict[str, Any]) -> bool:
    """A receipt that cannot be written is shown instead: what it names is gone already."""
    import msgspec

    from offbook.cli.output import warn
    from offbook.model.home import make_private, write_private

    try:
        if not place.absolute().parent.exists():
            make_private(place.parent)
        write_private(place, msgspec.json.format(msgspec.json.encode(document)).decode() + "\n")
    except OSError as error:
        warn(f"the receipt cannot be written to {place}: {error.strerror or error}")
        return False
    return True


def read_receipt(receipt_file: Path) -> Any:
    """The receipt itself, or what --json printed around it."""
    import msgspec

    from offbook.model.errors import InvalidInput

    try:
        document = msgspec.json.decode(receipt_file.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{receipt_file} is no receipt: it cannot be read as JSON ({error})") from None
    receipt = document.get("receipt", document) if isinstance(document, dict) else document
    if not isinstance(receipt, dict) or not {"id", "agentId", "signature"} <= receipt.keys():
        raise InvalidInput(f"{receipt_file} is no receipt of `offbook forget`, or of a dry run, which proves nothing")
    return receipt
