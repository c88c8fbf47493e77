"""`offbook anchors`: what must not be lost from sight."""

from __future__ import annotations

import click

from offbook.cli.options import UTF8, Invocation, common_options, pass_invocation

EPILOG = """\b
Examples:
  offbook anchors
  offbook anchors researcher
  offbook anchors --session chat
  offbook anchors --json | jq -r '.anchors[] | select(.kind == "tension") | .text'

\b
identity       who they are
contradiction  what does not fit with what was said before
tension        what is unresolved

\b
How long one is fresh, and how many are kept: `offbook config`, anchors.
"""


@click.command("anchors", epilog=EPILOG)
@click.argument("agent", type=UTF8, required=False)
@click.option("--session", type=UTF8, metavar="S", help="Only those of this session.")
@common_options
@pass_invocation
def command(invocation: Invocation, agent: str | None, session: str | None) -> None:
    """Show what an agent must not lose from sight: who they are, what does not fit together, what is unresolved."""
    from offbook.cli.continuity import meant_agent, show_anchors, tell_none
    from offbook.cli.output import print_json

    whose = meant_agent(invocation, agent)
    with invocation.client() as client:
        found = client.anchors(session, agent_id=whose)
    if invocation.is_json:
        print_json(found)
    elif found.anchors:
        show_anchors(found.anchors)
    else:
        tell_none("anchors", session)
