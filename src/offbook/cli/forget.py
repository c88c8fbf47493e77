"""`offbook forget`: what was said goes for good, with everything that came of it, and a receipt proves it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from offbook.cli.answers import asked, typed
from offbook.cli.options import UTF8, Invocation, common_options, pass_invocation
from offbook.cli.output import counted, print_json, printable, progress, warn
from offbook.cli.receipts import (
    check_receipt_place,
    list_receipts,
    plainly,
    receipt_place,
    receipt_was_kept,
    show_examples,
    show_outside,
    show_reached,
    show_receipt,
    verify_receipt,
)

if TYPE_CHECKING:
    from offbook.client.blocking import Client
    from offbook.model.receipt import ForgetReceipt

TIMEOUT_SECONDS = 600.0
"""All of the history is looked through, and the store is written anew."""

EPILOG = """\b
Examples:
  offbook forget --matching "12 Harbour Street" --dry-run
  offbook forget --matching "12 Harbour Street" --reason "moved away"
  offbook forget m100000001 m100000004     by the ids that `offbook recall` shows
  offbook forget --session old-chat --yes --receipt old-chat.json
  offbook forget --secrets --dry-run       what an older version let through
  offbook forget --agent bob --everything  all that this agent was ever told
  offbook forget --verify old-chat.json --matching "12 Harbour Street"
  offbook forget --receipts                what was forgotten, also by rule
  offbook forget --verify forget-0123456789abcdef --receipt old-chat.json

\b
It shows what it would touch and asks first. Without a terminal, and with
--json, nothing is done unless --yes says so. What may be in backups only is
known when they are looked through, so that is asked for, too.

\b
Exit status 1: you did not agree and nothing was done, or something was found
that should be gone. That there is nothing to forget is no failure: 0.
"""


class Undelivered(NamedTuple):
    """What clients of this machine had not delivered: it would come back later."""

    delivered: int
    waiting: int


@click.command("forget", epilog=EPILOG)
@click.argument("entries", type=UTF8, nargs=-1, metavar="[ID]…")
@click.option("--matching", type=UTF8, metavar="TEXT", help="Messages that hold this text, in any case and spacing.")
@click.option("--session", type=UTF8, metavar="KEY", help="All messages of this session.")
@click.option("--secrets", is_flag=True, help="Messages that hold a secret which redaction knows today.")
@click.option("--everything", is_flag=True, help="All messages of the agent.")
@click.option("--reason", type=UTF8, default="", metavar="TEXT", help="Why. Kept, so do not repeat what is to go.")
@click.option("--dry-run", is_flag=True, help="Show what would be touched, and touch nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--receipt",
    "kept_in",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write the receipt.  [default: receipts/ in the data folder]",
)
@click.option(
    "--verify",
    "verified",
    type=UTF8,
    metavar="FILE|ID",
    help="Search everywhere for what this receipt says is gone; by its id, it is written to --receipt.",
)
@click.option("--receipts", "is_listing", is_flag=True, help="List the receipts that the provider keeps.")
@common_options
@pass_invocation
def forget_command(
    invocation: Invocation,
    entries: tuple[str, ...],
    matching: str | None,
    session: str | None,
    secrets: bool,
    everything: bool,
    reason: str,
    dry_run: bool,
    yes: bool,
    kept_in: Path | None,
    verified: str | None,
    is_listing: bool,
) -> None:
    """Forget what was said for good: messages with everything that came of them, in summaries, lessons, the index,
    pages, outboxes and backups. A signed receipt says what went, and can be verified later."""
    with plainly():
        if verified is None and not is_listing:
            what = _selection(entries, matching, session, secrets=secrets, everything=everything)
            _forget(invocation, what, reason, dry_run, yes, kept_in)
            return
        if (
            entries
            or session is not None
            or secrets
            or everything
            or reason
            or dry_run
            or yes
            or (is_listing and (verified or matching or kept_in))
        ):
            raise click.UsageError(
                "--verify goes with --matching and --receipt only, --receipts alone: both forget nothing"
            )
        if verified is None:
            list_receipts(invocation)
        else:
            verify_receipt(invocation, verified, matching, kept_in)


def _forget(
    invocation: Invocation, what: dict[str, Any], reason: str, dry_run: bool, is_sure: bool, kept_in: Path | None
) -> None:
    if kept_in is not None and not dry_run:
        check_receipt_place(kept_in)
    undelivered = _delivered(invocation, dry_run=dry_run)
    with invocation.client(timeout_seconds=TIMEOUT_SECONDS) as client:
        preview, would = _receipt_of(client, what, reason, dry_run=True)
        if dry_run or not _is_any(would):
            _show_preview(invocation, client, preview, would, undelivered)
            return
        _make_sure(invocation, client, preview, would, undelivered, is_sure=is_sure)
        document, receipt = _receipt_of(client, what, reason, dry_run=False)
    _show_done(invocation, document, receipt, undelivered, kept_in)
    if receipt.residue:
        raise click.exceptions.Exit(1)


def _selection(
    entries: tuple[str, ...], matching: str | None, session: str | None, *, secrets: bool, everything: bool
) -> dict[str, Any]:
    given = {
        "entryIds": list(entries) or None,
        "matching": matching,
        "sessionId": session,
        "secrets": secrets or None,
        "everything": everything or None,
    }
    named = {name: value for name, value in given.items() if value is not None}
    if len(named) != 1:
        raise click.UsageError(
            "say what is meant, in one way: ID (as `offbook recall` shows it), --matching TEXT, --session KEY, "
            "--secrets or --everything"
        )
    return named


def _is_any(receipt: ForgetReceipt) -> bool:
    """Whether there is something to forget, or was; in backups it is not known before they are looked through."""
    reached = receipt.reached
    return bool(reached.messages or reached.outbox_records or reached.backups or receipt.residue)


def _is_own(invocation: Invocation) -> bool:
    """Whether the provider that is asked is the one of this data folder."""
    endpoint = invocation.endpoint
    return endpoint.scheme == "unix" and Path(endpoint.path) == invocation.home.socket


def _delivered(invocation: Invocation, *, dry_run: bool) -> Undelivered:
    """What waits in the outboxes of the data folder is delivered to its own provider, as `offbook flush` does; it is
    only counted where nothing may be touched, or where it is meant for somebody else."""
    from offbook.client.outboxes import folders_that_wait, waiting_in

    home = invocation.home.folder
    if dry_run or not _is_own(invocation):
        return Undelivered(0, sum(map(waiting_in, folders_that_wait(home))))
    if not folders_that_wait(home):
        return Undelivered(0, 0)
    from offbook.cli.upkeep import deliver_waiting

    report = deliver_waiting(invocation)
    left = sum(waiting_in(Path(each)) for each in report["busy"]) + sum(each["waiting"] for each in report["elsewhere"])
    return Undelivered(report["delivered"], report["waiting"] + left)


def _receipt_of(
    client: Client, what: dict[str, Any], reason: str, *, dry_run: bool
) -> tuple[dict[str, Any], ForgetReceipt]:
    """The receipt as it came, because its signature is over all that is in it, and as a value."""
    from offbook.model.errors import ProviderUnavailable
    from offbook.model.receipt import Forgot

    with progress("looking" if dry_run else "forgetting", None):
        try:
            document = asked(client, "forget", **what, reason=reason, dryRun=dry_run or None)
        except ProviderUnavailable as error:
            if dry_run:
                raise
            raise ProviderUnavailable(
                f"{error.detail}: it may be forgotten or not, `offbook forget --receipts` and `offbook audit` tell. "
                "What was begun is finished when "
                "the provider starts again; the same command forgets what is left"
            ) from None
    return document["receipt"], typed(document, Forgot).receipt


# ── before ────────────────────────────────────────────────────────────────────────────────────


def _show_preview(
    invocation: Invocation, client: Client, document: dict[str, Any], would: ForgetReceipt, undelivered: Undelivered
) -> None:
    if invocation.is_json:
        print_json({"receipt": document, "undelivered": undelivered._asdict()})
        return
    _tell_undelivered(undelivered)
    _show_would(client, would)
    show_outside(would)


def _show_would(client: Client, would: ForgetReceipt) -> None:
    if not would.reached.messages and not would.reached.outbox_records:
        click.echo(
            f"nothing to forget: agent {printable(would.agent_id)} has no such message; --agent NAME is another, "
            "--receipts shows what was forgotten before"
        )
        if would.reached.backups:
            many = counted(would.reached.backups, "backup")
            click.echo(f"{many} would be looked through for messages that are only there")
        return
    click.secho(f"Of agent {printable(would.agent_id)} this would be touched:", bold=True)
    show_reached(would)
    show_examples(client, would)


def _tell_undelivered(undelivered: Undelivered) -> None:
    if undelivered.delivered:
        click.echo(f"{counted(undelivered.delivered, 'message')} that waited in outboxes delivered first", err=True)
    if undelivered.waiting:
        warn(
            f"{counted(undelivered.waiting, 'message')} in the outboxes of this machine not delivered yet: what they "
            "hold comes back when they are. `offbook flush` delivers them, or says for whom they are; then forget once "
            "more"
        )


def _make_sure(
    invocation: Invocation,
    client: Client,
    preview: dict[str, Any],
    would: ForgetReceipt,
    undelivered: Undelivered,
    *,
    is_sure: bool,
) -> None:
    from offbook.model.errors import InvalidInput

    if not invocation.is_json:
        _tell_undelivered(undelivered)
        _show_would(client, would)
    if is_sure:
        return
    messages = would.reached.messages or would.reached.outbox_records
    these = "this message" if messages == 1 else f"these {counted(messages, 'message')}"
    these = these if messages else f"what {counted(would.reached.backups, 'backup')} may hold of it"
    why = f"nothing was done: --yes forgets {these} without asking"
    if invocation.is_json:
        # One document: what is wrong, and beside it what would be touched.
        print_json(InvalidInput(why).problem() | {"receipt": preview, "undelivered": undelivered._asdict()})
        raise click.exceptions.Exit(1)
    if not _can_ask():
        click.echo(f"offbook: {why}", err=True)
        raise click.exceptions.Exit(1)
    if not click.confirm(f"Forget {these} for good?", err=True):
        click.echo("nothing was done", err=True)
        raise click.exceptions.Exit(1)


def _can_ask() -> bool:
    return sys.stdin.isatty()


# ── after ─────────────────────────────────────────────────────────────────────────────────────


def _show_done(
    invocation: Invocation,
    document: dict[str, Any],
    receipt: ForgetReceipt,
    undelivered: Undelivered,
    kept_in: Path | None,
) -> None:
    import shlex

    if not _is_any(receipt):
        # Backups were looked through in vain: nothing was done, so there is nothing to prove.
        _show_nothing(invocation, document, receipt, undelivered)
        return
    place = kept_in if kept_in is not None or not _is_own(invocation) else receipt_place(invocation.home, receipt)
    is_kept = place is not None and receipt_was_kept(place, document)
    if invocation.is_json:
        print_json(
            {
                "receipt": document,
                "savedTo": str(place) if is_kept else None,
                "undelivered": undelivered._asdict(),
            }
        )
        return
    show_receipt(receipt)
    if is_kept:
        click.echo(f"kept in {place}")
        click.echo(f"verify it at any time: offbook forget --verify {shlex.quote(str(place))}")
        return
    click.echo("keep this receipt in a file; `offbook forget --verify FILE` verifies it (--receipt FILE writes one):")
    print_json(document)


def _show_nothing(
    invocation: Invocation, document: dict[str, Any], receipt: ForgetReceipt, undelivered: Undelivered
) -> None:
    if invocation.is_json:
        print_json({"receipt": document, "savedTo": None, "undelivered": undelivered._asdict()})
        return
    click.echo(f"nothing to forget: no message of agent {printable(receipt.agent_id)} says it, and no backup")
