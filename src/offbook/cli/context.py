"""`offbook context`: a session as an agent would get it."""

from __future__ import annotations

import sys

import click

from offbook.cli.options import UTF8, Invocation, common_options, pass_invocation

DEFAULT_CHARS = 16_000
"""About 4,000 tokens: a screenful or three, and what a small window can hold."""

EPILOG = """\b
Examples:
  offbook context chat
  offbook context chat --max-chars 4000 > context.txt
  offbook context chat --json | jq .parts

The text goes to stdout as it is; what it covers is told on stderr.
"""


@click.command("context", epilog=EPILOG)
@click.argument("session", type=UTF8)
@click.option("--max-chars", type=click.IntRange(min=1), default=DEFAULT_CHARS, show_default=True)
@common_options
@pass_invocation
def command(invocation: Invocation, session: str, max_chars: int) -> None:
    """Show a session in at most so many characters, as an agent would get it."""
    from offbook.cli.output import print_json, printable
    from offbook.tokens import estimate_tokens

    with invocation.client() as client:
        context = client.get_compressed_context(session, max_chars)
    if invocation.is_json:
        print_json(context)
        return
    covers = context.covers
    click.echo(
        f"messages {covers.first_seq:,} to {covers.last_seq:,} of {printable(session)} for agent "
        f"{printable(context.agent_id)}, {context.chars:,} of {max_chars:,} characters "
        f"(about {estimate_tokens(context.text):,} tokens), generation {context.generation}"
        if covers.last_seq
        else f"nothing is known of {printable(session)}, agent {printable(context.agent_id)}",
        err=True,
    )
    if context.text:
        click.echo(printable(context.text) if sys.stdout.isatty() else context.text)
