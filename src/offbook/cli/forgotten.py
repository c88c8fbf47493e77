"""What would be forgotten, what was, and whether it is gone: as people read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from offbook import Client
    from offbook.model.receipt import ForgetCheck, ForgetReceipt, ForgottenSpan, Residue
    from offbook.model.summary import SourceLine

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
    from offbook.cli.output import table

    counts = {name: getattr(receipt.reached, name) for name in IN_WORDS}
    table(
        ["how many", "what"],
        [[f"{count:,}", IN_WORDS[name][count != 1]] for name, count in counts.items() if count],
        right=["how many"],
    )


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
    from offbook.cli.output import counted, local_minute, table
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
                _beginning(render(line.message)),
            ]
            for line in lines
        ],
    )
    if (more := receipt.reached.messages - len(lines)) > 0:
        click.echo(f"… and {counted(more, 'more message')}")
    click.echo()


def _lines(client: Client, agent_id: str, span: ForgottenSpan, number: int) -> list[SourceLine]:
    from offbook.cli.answered import typed
    from offbook.model.summary import Expansion

    meant = {"sessionId": span.session_id, "firstSeq": span.first_seq, "lastSeq": span.last_seq}
    document = client.call("expand", {"agentId": agent_id, "span": meant, "limit": number})
    return typed(document, Expansion).messages


def _beginning(text: str) -> str:
    whole = " ".join(text[: 2 * EXAMPLE_CHARS].split())
    return whole if len(whole) <= EXAMPLE_CHARS and len(text) <= 2 * EXAMPLE_CHARS else whole[:EXAMPLE_CHARS] + "…"


# ── what was done ─────────────────────────────────────────────────────────────────────────────


def show_receipt(receipt: ForgetReceipt) -> None:
    from offbook.cli.output import counted, local_time, printable

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
    from offbook.cli.output import printable, warn

    for place in receipt.outside:
        warn(printable(f"out of reach, so look there yourself: {place}"))


def show_residue(residue: Sequence[Residue]) -> None:
    from offbook.cli.output import printable

    for each in residue:
        click.secho(printable(f"NOT GONE: {each.where}: {each.what}"), fg="red", err=True)


def show_check(check: ForgetCheck) -> None:
    from offbook.cli.output import counted

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
    from offbook.cli.output import counted, warn

    own, these = ("its", "it was") if number == 1 else ("their", "they were")
    warn(
        f"{counted(number, 'message has', 'messages have')} no words of {own} own (one word, or what others say, too): "
        f"{these} looked for by place, in the log, the index, vectors, summaries, lessons, outboxes and backups. "
        "--matching TEXT looks for the words, in files, too"
    )
