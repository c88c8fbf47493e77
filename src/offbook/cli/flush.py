"""`offbook flush`: deliver what clients left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from offbook.cli.options import Invocation, home_option, json_option, pass_invocation, url_option

EPILOG = """\b
Examples:
  offbook flush
  offbook flush --url https://memory.example:8770
  offbook flush --rejected         also what was refused, once the cause is mended

\b
Clients keep what they cannot send in $OFFBOOK_HOME/outbox and deliver it by
themselves when they run again; this is for those that do not.
"""


@click.command("flush", epilog=EPILOG)
@click.option("--rejected", "with_rejected", is_flag=True, help="Try again with what the provider refused for good.")
@home_option
@url_option
@json_option
@pass_invocation
def command(invocation: Invocation, with_rejected: bool) -> None:
    """Deliver what clients could not send while nobody answered."""
    from offbook.cli.output import print_json
    from offbook.client.clients import deliver_outboxes

    with invocation.client() as client:
        client.ping()  # nobody there is exit status 3, not an outbox that stays as it is
    report = deliver_outboxes(
        invocation.home.folder, invocation.endpoint, token=invocation.token, with_rejected=with_rejected
    )
    if invocation.is_json:
        print_json(report)
    else:
        _show(report)
    if report["waiting"]:
        raise click.exceptions.Exit(1)


def _show(report: dict[str, Any]) -> None:
    from offbook.cli.output import counted, table, warn

    if report["outboxes"]:
        table(
            ["outbox", "delivered", "refused", "waiting", ""],
            [
                [
                    Path(outbox["folder"]).name,
                    f"{outbox['delivered']:,}",
                    f"{outbox['rejected']:,}",
                    f"{outbox['waiting']:,}",
                    outbox["last_error"] or "",
                ]
                for outbox in report["outboxes"]
            ],
            right=["delivered", "refused", "waiting"],
        )
    for folder in report["busy"]:
        click.echo(f"{Path(folder).name}: in use by a running client, which delivers it by itself")
    if not report["outboxes"] and not report["busy"]:
        click.echo("nothing waits to be delivered")
    if report["rejected"]:
        warn(f"{counted(report['rejected'], 'message')} refused for good: see rejected.jsonl in the outbox's folder")
