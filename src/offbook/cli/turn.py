"""`offbook turn`: what would be put into an agent's mind for a prompt, part by part, and why."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.verb_command import Fields, verb_command

if TYPE_CHECKING:
    from offbook.cli.options import Invocation
    from offbook.model.turn import Intent, PreparedTurn, Section

LINES_SHOWN = 12
CHARS_SHOWN = 1_200
INDENT = "  "
INTENTS: dict[Intent, str] = {
    "recall": "it asks for what was said before",
    "resume": "it picks up the thread again",
    "plain": "it asks for nothing in particular",
    "brief": "it is too short to search for",
}
PLACES: dict[Section, str] = {
    "memory": "at the start of the context, the same until the next swap",
    "recall": "at the end of the user's turn, for this turn only",
}

EPILOG = """\b
Examples:
  offbook turn chat what did we decide about the database?
  offbook turn chat "good morning" --current-tokens 120000 --window 200000
  offbook turn chat "my sister" --text          as the model would get it
  offbook turn chat "my sister" --json | jq '.parts[] | {kind, tokens, why}'

\b
Only a look: nothing is injected, no retrieval is counted and no section is
kept. A host asks the same before each model call.
"""


OPTIONS: dict[str, Fields | None] = {
    "context_window": {"names": ["--window"]},
    **dict.fromkeys(["deadline_ms", "explain", "preview"]),
}
TEXT = click.option(
    "--text", "is_text", is_flag=True, help="Print the two sections as the model would get them, no more."
)


def _asking(invocation: Invocation, fields: Fields) -> Fields:
    if fields["is_text"] and invocation.is_json:
        raise click.UsageError("--text and --json are two ways to print it: leave out one of them")
    return fields | {"explain": True, "preview": True}


@verb_command(
    "turn",
    verb="prepareTurn",
    epilog=EPILOG,
    positional=["session_id", "prompt"],
    options=OPTIONS,
    own=[TEXT],
    asking=_asking,
    prints_json=True,
)
def command(turn: PreparedTurn, *, invocation: Invocation, is_text: bool, **_: Any) -> None:
    """Show what would be injected for PROMPT in a session and why, part by part, with its cost in tokens."""
    from offbook.cli.output import print_json, printable, warn

    if invocation.is_json:
        print_json(turn)
        return
    for note in turn.degraded:
        warn(printable(note))
    if is_text:
        _print_text(turn)
    else:
        _show(turn)
    _tell_missing(turn)


def _print_text(turn: PreparedTurn) -> None:
    """Byte for byte, but where it would steer a terminal."""
    from offbook.cli.output import printable

    text = "\n\n".join(section for section in (turn.memory, turn.recall) if section)
    if text:
        # As bytes: of text, click takes out what looks like a colour where there is no terminal.
        click.echo(printable(text) if sys.stdout.isatty() else text.encode())


def _show(turn: PreparedTurn) -> None:
    from offbook.cli.output import counted, table

    tokens = turn.tokens
    click.secho(f"intent  {turn.intent}: {INTENTS[turn.intent]}", bold=True)
    click.echo(f"memory  {counted(tokens.memory, 'token')}, {PLACES['memory']}" if turn.memory else "memory  nothing")
    budget = f"of at most {tokens.budget:,}"
    click.echo(
        f"recall  {counted(tokens.recall, 'token')} {budget}, {PLACES['recall']}"
        if turn.recall
        else f"recall  nothing {budget} tokens"
    )
    if turn.parts:
        click.echo()
        table(
            ["section", "part", "tokens", "items", "why"],
            [[part.section, part.kind, f"{part.tokens:,}", f"{part.items:,}", part.why] for part in turn.parts],
            right=["tokens", "items"],
        )
    _show_section("memory", turn.memory)
    _show_section("recall", turn.recall)


def _show_section(section: Section, text: str) -> None:
    from offbook.cli.continuity import shortened
    from offbook.cli.output import printable, wrapped

    if not text:
        return
    shown, left = shortened(text, max_lines=LINES_SHOWN, max_chars=CHARS_SHOWN)
    click.secho(f"\n── {section} ──", bold=True)
    for line in wrapped(printable(shown), INDENT):
        click.echo(line)
    if left:
        click.secho(f"{INDENT}… {left}: --text shows all", dim=True)


def _tell_missing(turn: PreparedTurn) -> None:
    """Why a section is empty, and what to do about it."""
    if not turn.memory and not turn.recall:
        click.echo("nothing would be injected:", err=True)
    if not turn.memory:
        why = "nothing to keep in mind yet; summaries, anchors and what was being done come as sessions grow"
        click.echo(f"memory: {why}{_or_unavailable(turn)}", err=True)
    if not turn.recall:
        click.echo(f"recall: {_why_nothing_recalled(turn)}", err=True)


def _why_nothing_recalled(turn: PreparedTurn) -> str:
    if not turn.tokens.budget:
        return "there is no room for it: the context is too full (--current-tokens, --window)"
    if turn.intent == "brief":
        return "the prompt is too short to search for"
    return f"nothing comes to mind; `offbook recall` searches by hand{_or_unavailable(turn)}"


def _or_unavailable(turn: PreparedTurn) -> str:
    return "; or see the warnings above" if turn.degraded else ""
