"""What `offbook forget` shows and keeps: what would be forgotten, what was, and whether it is still gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.answers import asked, typed
from offbook.cli.output import counted, local_minute, local_time, print_json, printable, progress, table, warn
from offbook.model.plain_names import is_plain_name

if TYPE_CHECKING:
    from offbook.cli.options import Invocation
    from offbook.client.blocking import Client
    from offbook.model.home import Home
    from offbook.model.receipt import ForgetCheck, ForgetReceipt, ForgottenSpan, KeptReceipt, Residue
    from offbook.model.summary import SourceLine


# ── what would be forgotten, what was, and whether it is gone ─────────────────────────────────────

EXAMPLES = 10
EXAMPLE_CHARS = 100
IN_WORDS = {
    "messages": ("message", "messages"),
    "vectors": ("vector of them", "vectors of them"),
    "index_entries": ("entry of the search index", "entries of the search index"),
    "large_parts": ("large part: a file, an image, a long text", "large parts: files, images, long texts"),
    "summaries": ("summary, written again from what is left", "summaries, written again from what is left"),
    "lessons": ("lesson", "lessons"),
    "contexts": (
        "context that was handed out: it can no longer be replayed",
        "contexts that were handed out: they can no longer be replayed",
    ),
    "turn_memories": (
        "memory section of a turn, made again from what is left",
        "memory sections of turns, made again from what is left",
    ),
    "notes": (
        "note on a session (state, topics, anchors), made again from what is left",
        "notes on sessions (state, topics, anchors), made again from what is left",
    ),
    "completions": ("answer of a model that was kept", "answers of models that were kept"),
    "supersessions": (
        "link between what was said and what replaced it",
        "links between what was said and what replaced it",
    ),
    "pages": ("page of the wiki", "pages of the wiki"),
    "summary_files": ("file of summaries, written again", "files of summaries, written again"),
    "backups": ("backup", "backups"),
    "outbox_records": (
        "record in an outbox of this machine: refused, or delivered and still there",
        "records in outboxes of this machine: refused, or delivered and still there",
    ),
}
"""Every field of `Reached`: one, and several."""


def show_reached(receipt: ForgetReceipt) -> None:
    counts = {name: getattr(receipt.reached, name) for name in IN_WORDS}
    table(
        ["how many", "what"],
        [[f"{count:,}", IN_WORDS[name][count != 1]] for name, count in counts.items() if count],
        right=["how many"],
    )
    if receipt.secrets:
        click.echo("secrets in them: " + ", ".join(f"{count:,} {kind}" for kind, count in receipt.secrets.items()))


# ── some of what is meant ─────────────────────────────────────────────────────────────────────


def spread(spans: Sequence[ForgottenSpan], most: int = EXAMPLES) -> list[tuple[ForgottenSpan, int]]:
    """Which stretches are looked into, and how many messages of each: from all over, not only from the beginning."""
    if len(spans) >= most:
        return [(spans[at * len(spans) // most], 1) for at in range(most)]
    lengths = [span.last_seq - span.first_seq + 1 for span in spans]
    shares = [0] * len(spans)
    while sum(shares) < min(most, sum(lengths)):
        for at, length in enumerate(lengths):
            shares[at] += shares[at] < length and sum(shares) < most
    return list(zip(spans, shares, strict=True))


def show_examples(client: Client, receipt: ForgetReceipt) -> None:
    from offbook.model.content import render

    lines = [line for span, number in spread(receipt.spans) for line in _lines(client, receipt.agent_id, span, number)]
    if not lines:
        return
    click.echo()
    table(
        ["said", "session", "role", "what"],
        [
            [
                local_minute(line.message.ts or line.received_at),
                line.session_id,
                line.message.role,
                _beginning(_shown(render(line.message), receipt)),
            ]
            for line in lines
        ],
    )
    if (more := receipt.reached.messages - len(lines)) > 0:
        click.echo(f"… and {counted(more, 'more message')}")
    click.echo()


def _shown(text: str, receipt: ForgetReceipt) -> str:
    """Who looks for secrets is not shown them."""
    from offbook.ingest.secret_scan import redact_text

    return redact_text(text, with_personal_numbers=True)[0] if receipt.secrets else text


def _lines(client: Client, agent_id: str, span: ForgottenSpan, number: int) -> list[SourceLine]:
    from offbook.model.summary import Expansion

    meant = {"sessionId": span.session_id, "firstSeq": span.first_seq, "lastSeq": span.last_seq}
    document = client.call("expand", {"agentId": agent_id, "span": meant, "limit": number})
    return typed(document, Expansion).messages


def _beginning(text: str) -> str:
    whole = " ".join(text[: 2 * EXAMPLE_CHARS].split())
    return whole if len(whole) <= EXAMPLE_CHARS and len(text) <= 2 * EXAMPLE_CHARS else whole[:EXAMPLE_CHARS] + "…"


# ── what was done ─────────────────────────────────────────────────────────────────────────────


def show_receipt(receipt: ForgetReceipt) -> None:
    sessions = len({span.session_id for span in receipt.spans})
    click.secho(
        f"forgotten: {counted(receipt.reached.messages, 'message')} of {counted(sessions, 'session')} "
        f"of agent {printable(receipt.agent_id)}",
        bold=True,
    )
    show_reached(receipt)
    click.echo(
        f"receipt {printable(receipt.id)}, {local_time(receipt.at)}, by {printable(receipt.by)}, "
        f"audit event {receipt.audit_seq:,}"
    )
    show_outside(receipt)
    show_residue(receipt.residue)


def show_outside(receipt: ForgetReceipt) -> None:
    for place in receipt.outside:
        warn(printable(f"out of reach, so look there yourself: {place}"))


def show_residue(residue: Sequence[Residue]) -> None:
    for each in residue:
        click.secho(printable(f"NOT GONE: {each.where}: {each.what}"), fg="red", err=True)


def show_check(check: ForgetCheck) -> None:
    if not check.is_genuine:
        click.secho(
            "not genuine: this provider did not sign it, or it was changed since; nothing was searched",
            fg="red",
            err=True,
        )
        return
    click.secho("genuine: this provider signed it, and nothing in it was changed", fg="green")
    searched = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in check.searched.items() if number)
    click.echo(f"searched: {searched or 'nothing, there was nothing to search'}")
    show_residue(check.residue)
    if check.residue:
        click.secho(
            f"{counted(len(check.residue), 'place still holds', 'places still hold')} what was forgotten",
            fg="red",
            err=True,
        )
    else:
        click.secho("nothing of it was found", fg="green")
    if check.wordless:
        _tell_wordless(check.wordless)


def _tell_wordless(number: int) -> None:
    own, these = ("its", "it was") if number == 1 else ("their", "they were")
    warn(
        f"{counted(number, 'message has', 'messages have')} no words of {own} own (one word, or what others say, too): "
        f"{these} looked for by place, in the log, the index, vectors, summaries, lessons, outboxes and backups. "
        "--matching TEXT looks for the words, in files, too"
    )


# ── the files that receipts are kept in ───────────────────────────────────────────────────────────


def check_receipt_place(kept_in: Path) -> None:
    """Before anything is gone: a receipt that cannot be kept proves nothing."""
    if kept_in.exists():
        raise click.UsageError(f"{kept_in} is there already: name another file for the receipt")
    if not kept_in.absolute().parent.is_dir():
        raise click.UsageError(f"{kept_in}: there is no such folder to write the receipt to")


def receipt_place(home: Home, receipt: ForgetReceipt) -> Path:
    name = receipt.id if is_plain_name(receipt.id) else f"forget-{receipt.audit_seq}"
    return home.receipts / f"{name}.json"


def receipt_was_kept(place: Path, document: dict[str, Any]) -> bool:
    """A receipt that cannot be written is shown instead: what it names is gone already."""
    import msgspec

    from offbook.model.private_files import make_private, write_private

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


# ── long after: which receipts there are, and whether what one names is still gone ────────────────

VERIFY_TIMEOUT_SECONDS = 600.0
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


def verify_receipt(invocation: Invocation, named: str, matching: str | None, kept_in: Path | None) -> None:
    """`named`: a file that holds a receipt, or the id of one that the provider keeps."""
    from offbook.model.receipt import ForgetCheck

    body = _verify_body(named, kept_in) | ({} if matching is None else {"matching": matching})
    with invocation.client(timeout_seconds=VERIFY_TIMEOUT_SECONDS) as client, progress("searching", None):
        owner = {"agentId": client.agent_id} if "receiptId" in body and client.agent_id is not None else {}
        document = client.call("forget/verify", owner | body)
    check = typed(document, ForgetCheck)
    is_kept = (
        kept_in is not None and document.get("receipt") is not None and receipt_was_kept(kept_in, document["receipt"])
    )
    if invocation.is_json:
        print_json(document)
    else:
        show_check(check)
        if is_kept:
            click.echo(f"the receipt is in {kept_in}")
    if not check.is_genuine or check.residue:
        raise click.exceptions.Exit(1)


def _verify_body(named: str, kept_in: Path | None) -> dict[str, Any]:
    path = Path(named)
    if path.is_file():
        if kept_in is not None:
            raise click.UsageError("--receipt goes with --verify ID: a file is there already")
        return {"receipt": read_receipt(path)}
    if not is_plain_name(named):
        raise click.UsageError(f"{named} is no file, and no id of a receipt: `offbook forget --receipts` lists them")
    if kept_in is not None:
        check_receipt_place(kept_in)
    return {"receiptId": named}


def list_receipts(invocation: Invocation) -> None:
    from offbook.model.receipt import ForgetCheck

    with invocation.client(timeout_seconds=VERIFY_TIMEOUT_SECONDS) as client:
        document = asked(client, "forget/verify")
    check: ForgetCheck = typed(document, ForgetCheck)
    if invocation.is_json:
        print_json({"receipts": document.get("receipts", [])})
        return
    if not check.receipts:
        click.echo("nothing was forgotten yet; --agent NAME is another")
        return
    _show_receipts(check.receipts)


def _show_receipts(receipts: list[KeptReceipt]) -> None:
    table(
        ["id", "when", "by", "named by", "messages", "reason", ""],
        [
            [one.id, local_minute(one.at), one.by, one.how, f"{one.messages:,}", one.reason, _told_state(one)]
            for one in receipts
        ],
        right=["messages"],
    )
    click.echo("verify one: offbook forget --verify ID; --receipt FILE writes it to a file")


def _told_state(receipt: KeptReceipt) -> str:
    if not receipt.is_finished:
        return "not finished yet"
    return f"{receipt.residue:,} NOT GONE" if receipt.residue else ""
