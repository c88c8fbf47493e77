"""`offbook topics`: what they keep returning to, what is fresh, what they have left."""

from __future__ import annotations

import click

from offbook.cli.options import UTF8, Invocation, common_options, pass_invocation

EPILOG = """\b
Examples:
  offbook topics
  offbook topics researcher
  offbook topics --session chat
  offbook topics --json | jq -r '.topics[] | select(.isFixated) | .label'

\b
● marks what they keep returning to. `lately` counts the turns of the window
that speak of it, `ever` all that did; freshness is full in the turn that
speaks of it, and less with each that does not.
`offbook config` has the window and what makes a return: topicTracking.
"""


@click.command("topics", epilog=EPILOG)
@click.argument("agent", type=UTF8, required=False)
@click.option("--session", type=UTF8, metavar="S", help="Only those of this session.")
@common_options
@pass_invocation
def command(invocation: Invocation, agent: str | None, session: str | None) -> None:
    """Show what an agent and its people talk about: what they keep returning to, what is fresh, what has gone stale."""
    from offbook.cli.continuity import meant_agent, show_topics, tell_none
    from offbook.cli.output import print_json

    whose = meant_agent(invocation, agent)
    with invocation.client() as client:
        found = client.topics(session, agent_id=whose)
    if invocation.is_json:
        print_json(found)
    elif found.topics:
        show_topics(found.topics)
    else:
        tell_none("topics", session)
