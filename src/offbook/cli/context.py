"""`offbook context`: a session as an agent would get it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.verb_command import verb_command

if TYPE_CHECKING:
    from offbook.cli.options import Invocation
    from offbook.model.types import CompressedContext

DEFAULT_CHARS = 16_000
"""About 4,000 tokens: a screenful or three, and what a small window can hold."""
TEXT = "text"
CHOICES = (TEXT, "openai", "anthropic")
"""Beside the text those of `compression.provider_shapes`, which is too much to load for `--help`."""

EPILOG = """\b
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


AS = click.option(
    "--as",
    "shape",
    type=click.Choice(CHOICES),
    default=TEXT,
    show_default=True,
    help="As text, or as JSON that a model's provider takes: the messages of a request.",
)


@verb_command(
    "context",
    verb="getCompressedContext",
    epilog=EPILOG,
    positional=["session_id"],
    options={"max_chars": {"required": False, "default": DEFAULT_CHARS, "show_default": True}},
    own=[AS],
    prints_json=True,
)
def command(context: CompressedContext, *, invocation: Invocation, shape: str, **_: Any) -> None:
    """Show a session in at most so many characters, as an agent would get it."""
    from offbook.cli.output import print_json

    shaped = None if shape == TEXT else _shaped(context, shape)
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
    from offbook.cli.output import printable

    click.echo(printable(text) if sys.stdout.isatty() else text)


def _tell_covered(context: CompressedContext) -> None:
    from offbook.cli.output import printable

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
    from offbook.cli.handed import told_parts
    from offbook.models.tokens import estimate_tokens

    size = f"{context.chars:,} of {context.max_chars:,} characters, about {estimate_tokens(context.text):,} tokens"
    click.secho(f"{told_parts(context.parts)}; {size}", dim=True, err=True)
