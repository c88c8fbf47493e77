"""`offbook hook`: what Claude Code and Codex call when a session starts, a prompt is given, a turn ends."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import click

from offbook.cli.options import Invocation, agent_option, home_option, pass_invocation, unread_url_option

if TYPE_CHECKING:
    from offbook.contrib.coding.agents import AgentName

DELIVERY_SECONDS = 0.5
"""For what waits in the outbox, once the answer is given; and once more for what is under way then."""

EPILOG = """\b
Examples:
  offbook connect claude-code        writes the hooks that call this
  offbook hook claude-code < document.json
  offbook hook codex '{"type":"agent-turn-complete","thread-id":"…"}'

\b
Reads the document that the host gives its hooks:
  SessionStart       prints what the agent should have in mind
  UserPromptSubmit   prints what comes to mind for the prompt
  Stop, SubagentStop, PreCompact, SessionEnd
                     record what is new in the session's transcript

\b
Never stops the agent: with any trouble it prints nothing on stdout, a line on
stderr, and ends with 0. What was recorded while no provider ran, and that a
session ended, is delivered by the next hook of that host, whichever it is, or
by `offbook flush`.
"""


@click.command("hook", epilog=EPILOG, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("host", type=click.Choice(["claude-code", "codex"]), metavar="claude-code|codex")
@click.argument("given", nargs=-1, metavar="[DOCUMENT]")
@click.option(
    "--deadline",
    "deadline_ms",
    type=click.IntRange(min=1, max=10_000, clamp=True),
    default=1_000,
    show_default=True,
    metavar="MS",
    help="Milliseconds that each question to memory takes at most; the setting turn.deadline bounds a turn, too.",
)
@home_option
@unread_url_option
@agent_option
@pass_invocation
def command(invocation: Invocation, host: str, given: tuple[str, ...], deadline_ms: int) -> None:
    """Answer a hook of a coding agent: capture its session, give it its memory.

    DOCUMENT is what the host tells; it is read from stdin where there is none.
    """
    # Options that this version does not know are among them: a host's file may have been written by a later one.
    document = next((each for each in reversed(given) if each.lstrip().startswith("{")), None)
    if document is None and sys.stdin is not None and sys.stdin.isatty():
        raise click.UsageError(
            "it reads a document of the host's from stdin; `offbook connect` sets the host up for it"
        )
    try:
        _answer(invocation, cast("AgentName", host), document, deadline_ms)
    # Whatever it is: an agent that cannot go on because of its memory is worse than one without.
    except Exception as error:  # noqa: BLE001
        told = " ".join(str(error).split())[:500] or type(error).__name__
        click.echo(f"offbook: hook {host}: {told}", err=True)


def _answer(invocation: Invocation, host: AgentName, given: str | None, deadline_ms: int) -> None:
    from offbook.client.clients import Client
    from offbook.client.recorder import encoded
    from offbook.contrib.coding.agents import LONGEST_DOCUMENT_BYTES, read_document
    from offbook.contrib.coding.answers import answer, deliver

    document = read_document(sys.stdin.buffer.read(LONGEST_DOCUMENT_BYTES + 1) if given is None else given)
    home = invocation.home.folder
    client = Client(
        invocation.endpoint,
        agent_id=invocation.agent,
        token=invocation.token,
        client=host,
        timeout_seconds=deadline_ms / 1_000,
        home=home,
    )
    try:
        answered = answer(host, document, client, home, invocation.environ, deadline_ms=deadline_ms)
        if answered is not None:
            sys.stdout.buffer.write(encoded(answered) + b"\n")
            sys.stdout.buffer.flush()
    finally:
        # Also where this hook recorded nothing: what others left takes its chance.
        with suppress(Exception):
            deliver(host, client, home, seconds=DELIVERY_SECONDS)
        client.close(DELIVERY_SECONDS)
