"""`offbook flush`: deliver what clients left behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.options import Invocation, home_option, json_option, pass_invocation, url_option

if TYPE_CHECKING:
    from offbook.client.endpoint import Endpoint

ENDS_SECONDS = 30.0
"""For all that a host told of the ends of its sessions while nobody answered."""

EPILOG = """\b
Examples:
  offbook flush
  offbook flush --url https://memory.example:8770
  offbook flush --rejected         also what was refused, once the cause is mended
  offbook flush --everything       also what was meant for where it answered before

\b
Clients keep what they cannot send in $OFFBOOK_HOME/outbox and deliver it by
themselves when they run again; this is for those that do not. What is meant
for another provider is only counted: --url delivers it there.
"""


@click.command("flush", epilog=EPILOG)
@click.option("--rejected", "with_rejected", is_flag=True, help="Try again with what the provider refused for good.")
@click.option(
    "--everything", is_flag=True, help="Deliver here what is meant for another provider, too: this one has moved."
)
@home_option
@url_option
@json_option
@pass_invocation
def command(invocation: Invocation, with_rejected: bool, everything: bool) -> None:
    """Deliver what clients could not send while nobody answered."""
    from offbook.cli.output import print_json

    report = delivered(invocation, with_rejected=with_rejected, everything=everything)
    if invocation.is_json:
        print_json(_on_the_wire(report))
    else:
        _show(report)
    if report["waiting"]:
        raise click.exceptions.Exit(1)


def delivered(invocation: Invocation, *, with_rejected: bool = False, everything: bool = False) -> dict[str, Any]:
    """What was delivered, and what was not: as `deliver_outboxes` reports it, and how many sessions were `ended`."""
    from offbook.client.clients import deliver_outboxes
    from offbook.contrib.coding.ends import Ends, hosts_with_ends

    home = invocation.home.folder
    with invocation.client() as client:
        client.ping()  # nobody there is exit status 3, not an outbox that stays as it is
        own = _own_names(invocation, client.endpoint)
        report = deliver_outboxes(
            home,
            client.endpoint,
            token=invocation.token,
            with_rejected=with_rejected,
            everything=everything,
            own=own,
        )
        whose = None if everything else client.endpoint
        report["ended"] = sum(
            Ends(home, host).tell(client, seconds=ENDS_SECONDS, endpoint=whose, own=own)
            for host in hosts_with_ends(home)
        )
    return report


def _own_names(invocation: Invocation, asked: Endpoint) -> frozenset[str]:
    """Of the provider of the data folder, where that is the one that is asked: it has a socket and a port."""
    from offbook.model.errors import SettingsError
    from offbook.model.settings import load

    try:
        server = load(invocation.home.folder, environ=invocation.environ).settings.server
    except SettingsError:
        return frozenset()  # `offbook config` says what is wrong; what waits does not wait for that
    scheme = "https" if server.tls_cert else "http"
    hosts = dict.fromkeys(("127.0.0.1", "localhost", "[::1]", server.host)) if server.port else {}
    names = {f"unix://{invocation.home.socket}", *(f"{scheme}://{host}:{server.port}" for host in hosts)}
    return frozenset(names) if str(asked) in names else frozenset()


def _on_the_wire(report: dict[str, Any]) -> dict[str, Any]:
    """In the spelling of all other documents."""
    outboxes = [_on_the_wire(outbox) for outbox in report.get("outboxes", [])]
    named = {"lastError" if name == "last_error" else name: value for name, value in report.items()}
    return {**named, "outboxes": outboxes} if "outboxes" in report else named


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
    for outbox in report["elsewhere"]:
        waits, where = counted(outbox["waiting"], "message"), outbox["endpoint"]
        click.echo(
            f"{Path(outbox['folder']).name}: {waits} meant for {where}: `offbook flush --url {where}` delivers there, "
            "--everything here, if that provider has moved"
        )
    if report["ended"]:
        click.echo(f"{counted(report['ended'], 'session')} of coding agents marked as ended")
    if not any(report[name] for name in ("outboxes", "busy", "elsewhere", "ended")):
        click.echo("nothing waits to be delivered")
    if report["rejected"]:
        warn(f"{counted(report['rejected'], 'message')} refused for good: see rejected*.jsonl in the outbox's folder")
