"""`offbook end`: a session is over."""

from __future__ import annotations

import click

from offbook.cli.options import UTF8, Invocation, common_options, pass_invocation

EPILOG = """\b
Examples:
  offbook end chat
  offbook end chat --reason reset
"""


@click.command("end", epilog=EPILOG)
@click.argument("session", type=UTF8)
@click.option("--reason", type=UTF8, help="Why, such as new, reset, idle, daily, shutdown.")
@common_options
@pass_invocation
def command(invocation: Invocation, session: str, reason: str | None) -> None:
    """Say that a session is over. The next message to it opens it again."""
    from offbook.cli.output import print_json, printable

    with invocation.client() as client:
        client.session_end(session, reason)
    if invocation.is_json:
        print_json({"ok": True})
        return
    click.echo(printable(f"session {session} is over" + (f" ({reason})" if reason else "")))
