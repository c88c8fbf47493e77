"""`offbook record`, `redact`: messages stored, and what redaction takes out of a text before it is."""

from __future__ import annotations

import os
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from hashlib import file_digest, sha256
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from offbook.cli.options import UTF8, Invocation, common_options, moment, pass_invocation
from offbook.cli.output import counted, print_json, printable, progress, table, warn

if TYPE_CHECKING:
    from offbook.client.blocking import Client
    from offbook.model.types import Message, Receipt


MESSAGES_AT_A_TIME = 500
BYTES_AT_A_TIME = 4 * 1024 * 1024
"""A quarter of what a provider takes in one request by default."""
TIMEOUT_SECONDS = 60.0
"""A batch on a slow disk; a person may wait that long for a bulk load."""

EPILOG = """\b
Examples:
  offbook record chat "My cat is called Ada."
  offbook record chat --role assistant "What a lovely name."
  git log -1 | offbook record chat --role tool --name git
  offbook record chat --jsonl transcript.jsonl
  zcat old.jsonl.gz | offbook record chat --jsonl -

\b
A line of --jsonl is a message: {"role": "user", "content": "…"} and optionally
id, ts, name, toolCallId, model, origin, meta. A message with an id that is
stored already is not stored again. A line without an id gets one from the file
and its number (on a pipe: from all that came so far), so a load that broke off
can be repeated, and the same file is stored once.
"""


@click.command("record", epilog=EPILOG)
@click.argument("session", type=UTF8)
@click.argument("text", type=UTF8, required=False)
@click.option(
    "--role", type=click.Choice(["user", "assistant", "system", "tool"]), help="Who says it.  [default: user]"
)
@click.option("--id", "message_id", type=UTF8, help="The message's id, against storing it twice.")
@click.option(
    "--ts",
    type=moment,
    metavar="TIME",
    help="When it was said, ISO 8601 (local unless it names a zone).  [default: now]",
)
@click.option("--name", type=UTF8, help="Name of the speaker or the tool.")
@click.option("--jsonl", "source", type=click.File("rb"), metavar="FILE|-", help="Messages as JSON lines.")
@common_options
@pass_invocation
def record_command(
    invocation: Invocation,
    session: str,
    text: str | None,
    role: str | None,
    message_id: str | None,
    ts: datetime | None,
    name: str | None,
    source: IO[bytes] | None,
) -> None:
    """Store a message, or a file of messages. Returns when they are durable.

    TEXT comes from stdin where it is missing or `-`.
    """
    own = {"role": role, "id": message_id, "ts": ts, "name": name}
    if source is not None:
        given = [f"--{option}" for option, value in own.items() if value is not None] + (["TEXT"] if text else [])
        if given:
            raise click.UsageError(f"--jsonl brings whole messages: leave out {', '.join(given)}")
        _record_lines(invocation, session, source)
        return
    message = _message({"role": "user", "content": _text(text)} | {key: each for key, each in own.items() if each})
    with invocation.client(timeout_seconds=TIMEOUT_SECONDS) as client:
        _show(invocation, session, client.on_message(session, message))


def _text(argument: str | None) -> str:
    if argument is not None and argument != "-":
        return argument
    if sys.stdin.isatty():
        click.echo("the message, then Ctrl-D on a line of its own:", err=True)
    try:
        text = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"stdin is not valid UTF-8 at byte {error.start}", param_hint="TEXT") from None
    if not text.strip():
        raise click.BadParameter("there is no text, neither here nor on stdin", param_hint="TEXT")
    return text.removesuffix("\n")


def _message(fields: dict[str, Any]) -> Message:
    import msgspec

    from offbook.model.types import Message

    try:
        return msgspec.convert(fields, Message)
    except msgspec.ValidationError as error:
        raise click.UsageError(f"this is no message: {error}") from None


# ── files of messages ─────────────────────────────────────────────────────────────────────────


class Batch(NamedTuple):
    messages: list[Message]
    first_line: int
    last_line: int
    size_bytes: int


IdOf = Callable[[int, bytes], str]


def ids_for(source: IO[bytes]) -> IdOf:
    """The id of a line that brings none: the same one each time the same file is loaded, and another file's never."""
    if _size_of(source) is not None and source.seekable():
        start = source.tell()
        digest = file_digest(source, "sha256").hexdigest()[:32]  # type: ignore[arg-type]
        source.seek(start)
        return lambda number, line: f"jsonl:{digest}:{number}"
    so_far = sha256()

    def of_stream(number: int, line: bytes) -> str:
        so_far.update(line.rstrip(b"\r\n") + b"\n")
        return f"jsonl:{so_far.hexdigest()[:32]}:{number}"

    return of_stream


def batches(source: IO[bytes]) -> Iterator[Batch]:
    """Messages in portions a provider takes. Raises WrongShape for a line that is none, after what precedes it."""
    import msgspec

    from offbook.model.errors import WrongShape
    from offbook.model.types import Message

    decoder, id_of = msgspec.json.Decoder(Message), ids_for(source)
    messages: list[Message] = []
    first_line, size, problem, number = 1, 0, None, 0
    for number, line in enumerate(source, start=1):
        size += len(line)
        try:
            own_id = id_of(number, line)
            if line.strip():
                message = decoder.decode(line)
                messages.append(message if message.id is not None else msgspec.structs.replace(message, id=own_id))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            problem = WrongShape(f"line {number} is no message: {error}")
            break
        if len(messages) >= MESSAGES_AT_A_TIME or size >= BYTES_AT_A_TIME:
            yield Batch(messages, first_line, number, size)
            messages, first_line, size = [], number + 1, 0
    if messages:
        yield Batch(messages, first_line, number - (problem is not None), size)
    if problem is not None:
        raise problem


def _record_lines(invocation: Invocation, session: str, source: IO[bytes]) -> None:
    from offbook.model.errors import ProviderUnavailable

    receipts: list[Receipt] = []
    under_way: Batch | None = None
    stored_to = 0
    try:
        with (
            invocation.client(timeout_seconds=TIMEOUT_SECONDS) as client,
            progress("storing", _size_of(source)) as advance,
        ):
            for batch in _batches_with_progress(source, receipts):
                under_way = batch
                receipts.append(_send(client, session, batch, receipts))
                under_way, stored_to = None, batch.last_line
                advance(batch.size_bytes)
    except ProviderUnavailable as error:
        raise ProviderUnavailable(f"{error.detail}\n{_broken_off(stored_to, under_way)}") from None
    except KeyboardInterrupt:
        click.echo(f"offbook: interrupted\noffbook: {_broken_off(stored_to, under_way)}", err=True)
        raise
    if not receipts:
        raise click.UsageError("there is no message in --jsonl")
    _show(invocation, session, _sum(receipts))


def _batches_with_progress(source: IO[bytes], receipts: list[Receipt]) -> Iterator[Batch]:
    """Whoever must mend a line needs to know what is stored by then."""
    from offbook.model.errors import WrongShape

    try:
        yield from batches(source)
    except WrongShape as error:
        raise WrongShape(f"{error.detail}. {_stored(receipts)}") from None


def _send(client: Client, session: str, batch: Batch, receipts: list[Receipt]) -> Receipt:
    from offbook.model.errors import ProviderRefused

    try:
        return client.on_message(session, *batch.messages)
    except ProviderRefused as error:
        place = f"lines {batch.first_line} to {batch.last_line}"
        detail = f"{error.document.get('detail', '')} ({place}). {_stored(receipts)}"
        raise ProviderRefused({**error.document, "detail": detail}) from None


def _broken_off(stored_to: int, under_way: Batch | None) -> str:
    """Of what was under way, the answer may be all that was lost."""
    parts = [f"lines 1 to {stored_to} are stored"] if stored_to else []
    if under_way is not None:
        parts.append(f"{'' if parts else 'lines '}{under_way.first_line} to {under_way.last_line} may be")
    return f"{'; '.join(parts) or 'nothing was stored'}. Run this again: nothing is stored twice"


def _stored(receipts: list[Receipt]) -> str:
    stored = sum(receipt.accepted + receipt.duplicates for receipt in receipts)
    if not stored:
        return "Nothing was stored: mend it and run this again"
    return f"The {counted(stored, 'message')} before are stored: mend it, and run this again with the rest"


def _sum(receipts: list[Receipt]) -> Receipt:
    from offbook.model.types import Receipt

    return Receipt(
        accepted=sum(receipt.accepted for receipt in receipts),
        duplicates=sum(receipt.duplicates for receipt in receipts),
        first_seq=min(receipt.first_seq for receipt in receipts),
        last_seq=max(receipt.last_seq for receipt in receipts),
        conflicts=[conflict for receipt in receipts for conflict in receipt.conflicts],
    )


def _size_of(source: IO[bytes]) -> int | None:
    try:
        status = os.fstat(source.fileno())
    except OSError:  # not a real file
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _show(invocation: Invocation, session: str, receipt: Receipt) -> None:
    if invocation.is_json:
        print_json(receipt)
        return
    if not receipt.accepted and not receipt.duplicates:
        warn("nothing is stored: the provider's setting `enabled` is false")
        return
    place = f"#{receipt.first_seq}"
    if receipt.last_seq != receipt.first_seq:
        place += f" to #{receipt.last_seq}"
    known = f", {receipt.duplicates:,} already there" if receipt.duplicates else ""
    click.echo(f"{printable(session)}: {counted(receipt.accepted, 'message')} stored{known} ({place})")
    if receipt.conflicts:
        first = receipt.conflicts[0]
        warn(
            f"{counted(len(receipt.conflicts), 'message')} came under an id that is stored with other content "
            f"(the first: {printable(first.id)}, #{first.seq}); the stored one stays"
        )


# ── offbook redact: what redaction finds in a text, without storing anything ──


REDACT_EPILOG = """\b
Examples:
  offbook redact --dry-run notes.txt        kinds and places, not the secrets
  offbook redact < notes.txt > clean.txt
  git diff | offbook redact --dry-run --json

\b
It needs no provider. What it finds is what would be taken out of a message
with this text before it is stored.
"""


class Finding(NamedTuple):
    kind: str
    line: int
    column: int
    """In characters, from 1."""
    chars: int


@click.command("redact", epilog=REDACT_EPILOG)
@click.argument("source", type=click.File("r", encoding="utf-8", errors="surrogateescape"), default="-")
@click.option("--dry-run", is_flag=True, help="Show kinds and places only.")
@click.option("--personal-numbers", is_flag=True, help="Payment cards, IBANs and US social security numbers as well.")
@common_options
@pass_invocation
def redact_command(invocation: Invocation, source: IO[str], dry_run: bool, personal_numbers: bool) -> None:
    """Take secrets out of a text (a file, or stdin), as is done with every message before it is stored."""
    from offbook.ingest.secret_scan import redact_text

    text = source.read()
    if dry_run:
        _show_findings(invocation, _findings(text, personal_numbers))
        return
    redacted, kinds = redact_text(text, with_personal_numbers=personal_numbers)
    if invocation.is_json:
        print_json({"text": redacted.encode("utf-8", "replace").decode(), "redactions": kinds})
    else:
        click.echo(redacted.encode("utf-8", "surrogateescape"), nl=False)


def _findings(text: str, personal_numbers: bool) -> list[Finding]:
    from offbook.ingest.secret_scan import secrets_in

    findings = []
    line, start_of_line, read = 1, 0, 0
    for start, end, kind in secrets_in(text, with_personal_numbers=personal_numbers):
        if breaks := text.count("\n", read, start):
            line += breaks
            start_of_line = text.rfind("\n", read, start) + 1
        read = start
        findings.append(Finding(kind, line, start - start_of_line + 1, end - start))
    return findings


def _show_findings(invocation: Invocation, findings: list[Finding]) -> None:
    if invocation.is_json:
        print_json({"secrets": [finding._asdict() for finding in findings]})
        return
    if not findings:
        click.echo("no secrets found")
        return
    rows = [[finding.kind, f"{finding.line}:{finding.column}", f"{finding.chars}"] for finding in findings]
    table(["kind", "line:column", "chars"], rows, right=["chars"])
    kinds = Counter(finding.kind for finding in findings)
    click.echo(f"{counted(len(findings), 'secret')} of {counted(len(kinds), 'kind')}")
