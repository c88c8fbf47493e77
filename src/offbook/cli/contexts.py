"""`offbook context`, `swap`, `replay`: a session as an agent gets it, would get it, or got it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.answers import asked, typed
from offbook.cli.options import UTF8, Invocation, common_options, moment_or_end_of_day, pass_invocation
from offbook.cli.output import (
    counted,
    local_time,
    print_json,
    printable,
    show_messages,
    table,
    told_levels,
    told_parts,
    told_span,
    warn,
)
from offbook.cli.verb_command import verb_command, verb_options

if TYPE_CHECKING:
    from offbook.model.summary import Dropped, Ledger, Replay, ReplayEvent, Swap
    from offbook.model.types import CompressedContext


# ── offbook context ───────────────────────────────────────────────────────────────────────────────

DEFAULT_CHARS = 16_000
"""About 4,000 tokens: a screenful or three, and what a small window can hold."""
TEXT_SHAPE = "text"
CHOICES = (TEXT_SHAPE, "openai", "anthropic")
"""Beside the text those of `compression.provider_shapes`, which is too much to load for `--help`."""

CONTEXT_EPILOG = """\b
Examples:
  offbook context chat
  offbook context chat --max-chars 4000 > context.txt
  offbook context chat --as openai > messages.json
  offbook context chat --as anthropic | jq .messages
  offbook context chat --json | jq .parts

\b
The text goes to stdout as it is; what it covers and what it is made of is
told on stderr. `offbook expand` shows what is behind a summary.
"""


SHAPE_OPTION = click.option(
    "--as",
    "shape",
    type=click.Choice(CHOICES),
    default=TEXT_SHAPE,
    show_default=True,
    help="As text, or as JSON that a model's provider takes: the messages of a request.",
)


@verb_command(
    "context",
    verb="getCompressedContext",
    epilog=CONTEXT_EPILOG,
    positional=["session_id"],
    options={"max_chars": {"required": False, "default": DEFAULT_CHARS, "show_default": True}},
    own=[SHAPE_OPTION],
    prints_json=True,
)
def context_command(context: CompressedContext, *, invocation: Invocation, shape: str, **_: Any) -> None:
    """Show a session in at most so many characters, as an agent would get it."""
    shaped = None if shape == TEXT_SHAPE else _shaped(context, shape)
    if invocation.is_json:
        print_json(context if shaped is None else shaped)
        return
    _tell_covered(context)
    if shaped is not None:
        print_json(shaped)
    elif context.text:
        _print_text(context.text)
    if context.parts:
        _tell_parts(context)


def _shaped(context: CompressedContext, shape: str) -> Any:
    from offbook.context.provider_shapes import SHAPES

    return SHAPES[shape](context.messages)


def _print_text(text: str) -> None:
    click.echo(printable(text) if sys.stdout.isatty() else text)


def _tell_covered(context: CompressedContext) -> None:
    session, agent = printable(context.session_id), printable(context.agent_id)
    covers = context.covers
    click.echo(
        f"messages {covers.first_seq:,} to {covers.last_seq:,} of {session} for agent {agent}, "
        f"generation {context.generation}"
        if covers.last_seq
        else f"nothing is known of {session}, agent {agent}: `offbook log` lists the sessions",
        err=True,
    )


def _tell_parts(context: CompressedContext) -> None:
    from offbook.models.tokens import estimate_tokens

    size = f"{context.chars:,} of {context.max_chars:,} characters, about {estimate_tokens(context.text):,} tokens"
    click.secho(f"{told_parts(context.parts)}; {size}", dim=True, err=True)


# ── offbook swap ──────────────────────────────────────────────────────────────────────────────────

SWAP_TIMEOUT_SECONDS = 60.0
"""What was begun is done and recorded, whether or not anybody waits for it."""
DROPPED_SHOWN = 20

SWAP_EPILOG = """\b
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


@click.command("swap", epilog=SWAP_EPILOG)
@click.argument("session", type=UTF8)
@verb_options("swap", "session_id")
@click.option("--full", is_flag=True, help="Show the messages that are handed over, too.")
@common_options
@pass_invocation
def swap_command(
    invocation: Invocation,
    session: str,
    used_tokens: int,
    context_window: int,
    force: bool,
    target_tokens: int | None,
    token_ratio: float | None,
    generation: int | None,
    full: bool,
) -> None:
    """Swap a session's context for the compressed one, where that is due, and show what is kept and left out."""
    from offbook.model.summary import Swap

    with invocation.client(timeout_seconds=SWAP_TIMEOUT_SECONDS) as client:
        document = asked(
            client,
            "swap",
            sessionId=session,
            usedTokens=used_tokens,
            contextWindow=context_window,
            force=force or None,
            targetTokens=target_tokens,
            tokenRatio=token_ratio,
            generation=generation,
        )
    if invocation.is_json:
        print_json(document)
        return
    swap = typed(document, Swap)
    if full:
        show_messages(swap.messages)
    _show_swap(swap, is_forced=force)


def _show_swap(swap: Swap, *, is_forced: bool) -> None:
    if not swap.swapped:
        click.echo(printable(f"not swapped: {swap.reason}"))
        if not is_forced:
            click.echo("--force swaps wherever the new context is the smaller one", err=True)
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


# ── offbook replay ────────────────────────────────────────────────────────────────────────────────

REPLAY_EPILOG = """\b
Examples:
  offbook replay chat --at 2026-10-03T14:30
  offbook replay chat --at 2026-10-03        at the end of that day
  offbook replay chat --at 2026-10-03T14:30Z --json | jq .why

\b
First what the agent was handed by the last swap or start before that moment,
and what had been said since; then the events that made it so.
`offbook audit --session S` shows when anything happened.
"""

HANDED = {
    "swap": "handed over by a swap at {at} (generation {generation}), and what was said since",
    "start": "given at a start at {at}, and what was said since",
    "log": "nothing was handed over before: what had been said is all there was",
}
REPLAY_TIMEOUT_SECONDS = 60.0
"""A long session without a swap is read from its beginning."""
TOLD_FIRST: tuple[str, ...] = ("reason", "generation")
"""Of an event's details: the rest may be cut."""


@click.command("replay", epilog=REPLAY_EPILOG)
@click.argument("session", type=UTF8)
@click.option(
    "--at",
    type=moment_or_end_of_day,
    required=True,
    metavar="WHEN",
    help="The moment: a day such as 2026-10-03 (its end), or an ISO 8601 time.",
)
@common_options
@pass_invocation
def replay_command(invocation: Invocation, session: str, at: datetime) -> None:
    """Show exactly what was in the agent's context at a moment, and why."""
    from offbook.model.summary import Replay

    with invocation.client(timeout_seconds=REPLAY_TIMEOUT_SECONDS) as client:
        document = asked(client, "replay", sessionId=session, at=at)
    if invocation.is_json:
        print_json(document)
        return
    _show_replay(typed(document, Replay))


def _show_replay(replay: Replay) -> None:
    place = f"{replay.session_id} of agent {replay.agent_id} at {local_time(replay.at)}"
    if not replay.messages:
        click.echo(
            printable(f"nothing was in {place}: `offbook log` lists the sessions; a later --at may show more"), err=True
        )
    else:
        handed_at = local_time(replay.handed_at) if replay.handed_at else ""
        how = HANDED[replay.kind].format(at=handed_at, generation=replay.generation)
        click.secho(printable(place), bold=True)
        click.secho(f"up to message #{replay.last_seq}; {how}\n", dim=True)
        show_messages(replay.messages)
    if replay.turn_memory:
        click.secho("the stable section of its turns then:", dim=True)
        click.echo(printable(replay.turn_memory) + "\n")
    _show_why(replay)
    if not replay.is_exact:
        warn(
            "this is not exactly what the agent had: its host compacted by itself in between, "
            "or more was said than can be shown"
        )


def _show_why(replay: Replay) -> None:
    if not replay.why:
        return
    rows: list[list[str]] = []
    for is_summary, row in groupby(replay.why, _is_of_a_summary):
        events = list(row)
        # A long session has hundreds of summaries: those made in a row are one line.
        folded = [(events[-1], _told_summaries(events))] if is_summary else [(one, _told_event(one)) for one in events]
        rows += [[local_time(event.at), event.verb, event.actor, told] for event, told in folded]
    click.echo("why:")
    table(["at", "what", "by", "details"], rows)


def _is_of_a_summary(event: ReplayEvent) -> bool:
    return event.verb == "compress" and "level" in event.details


def _told_summaries(events: Sequence[ReplayEvent]) -> str:
    levels = Counter(f"L{event.details['level']}" for event in events)
    return f"{counted(len(events), 'summary', 'summaries')} made: {told_levels(levels)}"


def _told_event(event: ReplayEvent) -> str:
    from offbook.cli.audit import format_details

    first = {name: event.details[name] for name in TOLD_FIRST if name in event.details}
    return format_details({**first, **event.details})
