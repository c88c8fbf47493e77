"""`offbook swap`: hand over the compressed context, and see what it keeps and leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from offbook.cli.options import UTF8, Invocation, common_options, pass_invocation
from offbook.cli.verb_command import verb_options

if TYPE_CHECKING:
    from offbook.model.summary import Dropped, Ledger, Swap

TIMEOUT_SECONDS = 60.0
"""What was begun is done and recorded, whether or not anybody waits for it."""
DROPPED_SHOWN = 20

EPILOG = """\b
Examples:
  offbook swap chat --used-tokens 170000 --context-window 200000
  offbook swap chat --used-tokens 9000 --context-window 200000 --force
  offbook swap chat --used-tokens 170000 --context-window 200000 --full
  offbook swap chat --used-tokens 170000 --context-window 200000 --json | jq .ledger

\b
Hosts do this by themselves; here it is for trying it out. A swap that is due
or forced is a real one: it is recorded, and counts as a generation. Asked
again with nothing new, the answer is the same.
To only look at a context: `offbook context`.
"""


@click.command("swap", epilog=EPILOG)
@click.argument("session", type=UTF8)
@verb_options("swap", "session_id")
@click.option("--full", is_flag=True, help="Show the messages that are handed over, too.")
@common_options
@pass_invocation
def command(
    invocation: Invocation, session: str, used_tokens: int, context_window: int, force: bool, full: bool
) -> None:
    """Swap a session's context for the compressed one, where that is due, and show what is kept and left out."""
    from offbook.cli.answered import asked, typed
    from offbook.cli.handed import show_messages
    from offbook.cli.output import print_json
    from offbook.model.summary import Swap

    with invocation.client(timeout_seconds=TIMEOUT_SECONDS) as client:
        document = asked(
            client,
            "swap",
            sessionId=session,
            usedTokens=used_tokens,
            contextWindow=context_window,
            force=force or None,
        )
    if invocation.is_json:
        print_json(document)
        return
    swap = typed(document, Swap)
    if full:
        show_messages(swap.messages)
    _show(swap, is_forced=force)


def _show(swap: Swap, *, is_forced: bool) -> None:
    from offbook.cli.output import counted, printable

    if not swap.swapped:
        click.echo(printable(f"not swapped: {swap.reason}"))
        if not is_forced:
            click.echo("--force swaps all the same", err=True)
        return
    share = 100 * swap.tokens_after / max(1, swap.tokens_before)
    click.secho(
        f"swapped: {swap.tokens_before:,} → {swap.tokens_after:,} tokens ({share:.0f} %), "
        f"{counted(len(swap.messages), 'message')}, generation {swap.generation}",
        bold=True,
    )
    click.secho(printable(f"{swap.reason}; in {swap.took_ms:,.1f} ms\n"), dim=True)
    _show_ledger(swap.ledger)


def _show_ledger(ledger: Ledger) -> None:
    from offbook.cli.handed import told_parts, told_span
    from offbook.cli.output import counted, printable, table

    spans = [told_span(part.first_seq, part.last_seq) for part in ledger.verbatim]
    click.echo(f"kept: {told_parts([*ledger.summaries, *ledger.verbatim])}")
    if spans:
        click.echo(f"verbatim: {', '.join(spans)}")
    if ledger.summaries:
        click.echo()
        table(
            ["summary", "messages", "characters"],
            [
                [part.id or "none", told_span(part.first_seq, part.last_seq), f"{part.chars:,}"]
                for part in ledger.summaries
            ],
            right=["characters"],
        )
    if ledger.state:
        click.echo("\ncarried along:")
        for record in ledger.state:
            click.echo(printable(f"{record.kind}: {record.text} ({told_span(record.first_seq, record.last_seq)})"))
    if ledger.dropped_count:
        shown = ledger.dropped[-DROPPED_SHOWN:]
        newest = f", the newest {len(shown)}" if ledger.dropped_count > len(shown) else ""
        click.echo(f"\n{counted(ledger.dropped_count, 'particular')} left out{newest}:")
        table(["what", "it says", "to get it back"], [[one.kind, one.text, _way_back(one)] for one in shown])
        if len(ledger.dropped) > len(shown):
            click.echo(f"--json has {len(ledger.dropped):,} of them", err=True)


def _way_back(dropped: Dropped) -> str:
    import shlex

    if dropped.expand is not None:
        return f"offbook expand {dropped.expand}"
    return f"offbook expand --session {shlex.quote(dropped.session_id)} --from {dropped.seq}"
