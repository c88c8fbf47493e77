"""`offbook cross`: may agents search each other's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from offbook.cli.verb_command import Fields, verb_command

if TYPE_CHECKING:
    from offbook.cli.options import Invocation
    from offbook.model.memory_entry import CrossSearch

EPILOG = """\b
Examples:
  offbook cross                          how it is
  offbook cross on
  offbook cross on --agent researcher    the other side has to agree, too
  offbook recall "the deadline" --scope all
  offbook cross off

Both sides have to be on: an agent that is off neither reads nor is read.
"""


WANTED = click.argument("wanted", type=click.Choice(["on", "off"]), required=False, metavar="[on|off]")


def _asking(_invocation: Invocation, fields: Fields) -> Fields:
    return {"enabled": None if fields["wanted"] is None else fields["wanted"] == "on"}


@verb_command("cross", epilog=EPILOG, options={"enabled": None}, own=[WANTED], asking=_asking)
def command(found: CrossSearch, *, invocation: Invocation, **_: Any) -> None:
    """Open an agent's memory and that of others to each other, close it, or show how it is."""
    from offbook.cli.output import printable

    whose = f"agent {printable(invocation.agent)}" if invocation.agent else "this agent"
    if not found.enabled:
        click.echo(f"off: {whose} neither searches other agents' memory nor is searched by them")
    elif found.agents:
        click.echo(f"on: {whose} and {', '.join(map(printable, found.agents))} can search each other's memory")
    else:
        click.echo(f"on for {whose}, but for no other agent yet: `offbook cross on --agent NAME` opens one")
