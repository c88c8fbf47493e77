"""`offbook cross`: may agents search each other's memory."""

from __future__ import annotations

import click

from offbook.cli.options import Invocation, common_options, pass_invocation

EPILOG = """\b
Examples:
  offbook cross                          how it is
  offbook cross on
  offbook cross on --agent researcher    the other side has to agree, too
  offbook recall "the deadline" --scope all
  offbook cross off

Both sides have to be on: an agent that is off neither reads nor is read.
"""


@click.command("cross", epilog=EPILOG)
@click.argument("wanted", type=click.Choice(["on", "off"]), required=False, metavar="[on|off]")
@common_options
@pass_invocation
def command(invocation: Invocation, wanted: str | None) -> None:
    """Open an agent's memory and that of others to each other, close it, or show how it is."""
    from offbook.cli.output import print_json, printable

    with invocation.client() as client:
        found = client.cross(None if wanted is None else wanted == "on")
    if invocation.is_json:
        print_json(found)
        return
    whose = f"agent {printable(invocation.agent)}" if invocation.agent else "this agent"
    if not found.enabled:
        click.echo(f"off: {whose} neither searches other agents' memory nor is searched by them")
    elif found.agents:
        click.echo(f"on: {whose} and {', '.join(map(printable, found.agents))} can search each other's memory")
    else:
        click.echo(f"on for {whose}, but for no other agent yet: `offbook cross on --agent NAME` opens one")
