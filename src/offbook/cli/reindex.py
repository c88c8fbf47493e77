"""`offbook reindex`: the search index, made anew from the log."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from offbook.cli.options import Invocation, common_options, pass_invocation

if TYPE_CHECKING:
    from offbook.client.clients import Client
    from offbook.model.status import IndexStatus

TIMEOUT_SECONDS = 120.0
"""Dropping the vectors of a long history takes a while."""
FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 0.2, 2.0
"""Between two looks: each leaves an audit event, so they grow apart."""

STALLED_SECONDS = 30.0
"""Without anything new after which it is not waited for: the model is away, say."""

EPILOG = """\b
Examples:
  offbook reindex
  offbook reindex --embeddings      the vectors too: minutes to hours
  offbook reindex --all-agents
  offbook reindex --no-wait && offbook status

Recall goes on meanwhile, with what is indexed so far. Nothing of the log is touched.
"""


@click.command("reindex", epilog=EPILOG)
@click.option("--embeddings", is_flag=True, help="Embed every message again as well, not only index it.")
@click.option("--all-agents", is_flag=True, help="For every agent that this provider knows.")
@click.option("--no-wait", is_flag=True, help="Begin it, and do not wait for its end.")
@common_options
@pass_invocation
def command(invocation: Invocation, embeddings: bool, all_agents: bool, no_wait: bool) -> None:
    """Make the agent's search index anew from the log, in the background.

    Not needed in daily life: the index follows the log by itself, and is made anew by itself where it is damaged.
    """
    from offbook.cli.output import print_json

    if all_agents and invocation.agent_given:
        raise click.UsageError("either --agent or --all-agents")
    with invocation.client(timeout_seconds=TIMEOUT_SECONDS) as client:
        agents = _status(client, invocation.agent)[1] if all_agents else [invocation.agent]
        begun = [client.reindex(embeddings=embeddings, agent_id=agent) for agent in agents]
        try:
            ended = begun if no_wait else [_waited(client, agent) for agent in agents]
        except KeyboardInterrupt:
            click.echo("\nit goes on in the background: `offbook status` shows how far it is", err=True)
            raise
    if invocation.is_json:
        print_json(dict(zip(map(str, agents), ended, strict=True)) if all_agents else ended[0])
        return
    for agent, index in zip(agents, ended, strict=True):
        _tell(agent, index, is_over=not no_wait)


def _status(client: Client, agent: str | None) -> tuple[IndexStatus, list[str], int]:
    """How far the index is, the agents there are, and how many messages there are to be found."""
    from offbook.cli.answered import typed
    from offbook.model.status import Status

    status = typed(client.status(agent), Status)
    return status.index, status.agents, status.counts.messages - status.counts.noise


def _waited(client: Client, agent: str | None) -> IndexStatus:
    """The index, once it has stopped growing and nothing waits for its vector."""
    from offbook.cli.output import progress

    name = f" {agent}" if agent else ""
    index, _, total = _status(client, agent)
    pause, shown, moved_at = FIRST_LOOK_SECONDS, 0, time.monotonic()
    # Each message counts twice: found by text, then by meaning.
    with progress(f"indexing{name}", 2 * total if sys.stderr.isatty() else None) as advance:
        while True:
            done = index.entries + (index.embedded if index.trouble is None else index.entries)
            advance(max(0, done - shown))
            shown = max(shown, done)
            time.sleep(pause)
            pause = min(LONGEST_LOOK_SECONDS, 1.5 * pause)
            before, (index, _, total) = index, _status(client, agent)
            if (index.entries, index.embedded) != (before.entries, before.embedded):
                moved_at = time.monotonic()
            elif index.waiting == 0 or index.trouble is not None or time.monotonic() - moved_at > STALLED_SECONDS:
                return index


def _tell(agent: str | None, index: IndexStatus, *, is_over: bool) -> None:
    from offbook.cli.output import counted, printable, warn

    whose = printable(f"agent {agent}: " if agent else "")
    if not is_over:
        click.echo(f"{whose}begun, {counted(index.waiting, 'message')} to go: `offbook status` shows how far it is")
        return
    click.echo(
        f"{whose}{counted(index.entries, 'message')} can be found by text, {index.embedded:,} of them by meaning too"
    )
    if index.trouble is not None:
        warn(printable(f"no embeddings: {index.trouble}"))
    elif index.waiting:
        warn(
            f"{counted(index.waiting, 'message')} still to go, and nothing moves: it goes on in the background; "
            "`offbook doctor` looks at the model, the provider's log has more"
        )
