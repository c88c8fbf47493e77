"""What `offbook forget` tells long after: which receipts there are, and whether what one names is still gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.receipt_files import RECEIPT_ID, check_place, read_receipt, was_kept

if TYPE_CHECKING:
    from offbook.cli.options import Invocation
    from offbook.model.receipt import ForgetCheck, KeptReceipt

TIMEOUT_SECONDS = 600.0
"""All of the history is looked through."""


@contextmanager
def plainly() -> Iterator[None]:
    """What is wrong with the request is said in its detail; that something is wrong with it need not be said before."""
    from offbook.model.errors import ProviderRefused

    try:
        yield
    except ProviderRefused as error:
        if error.document.get("status") in (400, 422) and error.document.get("detail"):
            error.detail = str(error.document["detail"])
        raise


def verify(invocation: Invocation, named: str, matching: str | None, kept_in: Path | None) -> None:
    """`named`: a file that holds a receipt, or the id of one that the provider keeps."""
    from offbook.cli.answered import typed
    from offbook.cli.forgotten import show_check
    from offbook.cli.output import print_json, progress
    from offbook.model.receipt import ForgetCheck

    body = _body(named, kept_in) | ({} if matching is None else {"matching": matching})
    with invocation.client(timeout_seconds=TIMEOUT_SECONDS) as client, progress("searching", None):
        owner = {"agentId": client.agent_id} if "receiptId" in body and client.agent_id is not None else {}
        document = client.call("forget/verify", owner | body)
    check = typed(document, ForgetCheck)
    is_kept = kept_in is not None and document.get("receipt") is not None and was_kept(kept_in, document["receipt"])
    if invocation.is_json:
        print_json(document)
    else:
        show_check(check)
        if is_kept:
            click.echo(f"the receipt is in {kept_in}")
    if not check.is_genuine or check.residue:
        raise click.exceptions.Exit(1)


def _body(named: str, kept_in: Path | None) -> dict[str, Any]:
    path = Path(named)
    if path.is_file():
        if kept_in is not None:
            raise click.UsageError("--receipt goes with --verify ID: a file is there already")
        return {"receipt": read_receipt(path)}
    if not RECEIPT_ID.fullmatch(named):
        raise click.UsageError(f"{named} is no file, and no id of a receipt: `offbook forget --receipts` lists them")
    if kept_in is not None:
        check_place(kept_in)
    return {"receiptId": named}


def list_receipts(invocation: Invocation) -> None:
    from offbook.cli.answered import asked, typed
    from offbook.cli.output import print_json
    from offbook.model.receipt import ForgetCheck

    with invocation.client(timeout_seconds=TIMEOUT_SECONDS) as client:
        document = asked(client, "forget/verify")
    check: ForgetCheck = typed(document, ForgetCheck)
    if invocation.is_json:
        print_json({"receipts": document.get("receipts", [])})
        return
    if not check.receipts:
        click.echo("nothing was forgotten yet; --agent NAME is another")
        return
    _show(check.receipts)


def _show(receipts: list[KeptReceipt]) -> None:
    from offbook.cli.output import local_minute, table

    table(
        ["id", "when", "by", "named by", "messages", "reason", ""],
        [
            [one.id, local_minute(one.at), one.by, one.how, f"{one.messages:,}", one.reason, _state(one)]
            for one in receipts
        ],
        right=["messages"],
    )
    click.echo("verify one: offbook forget --verify ID; --receipt FILE writes it to a file")


def _state(receipt: KeptReceipt) -> str:
    if not receipt.is_finished:
        return "not finished yet"
    return f"{receipt.residue:,} NOT GONE" if receipt.residue else ""
