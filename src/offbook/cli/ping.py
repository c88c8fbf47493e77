"""`offbook ping`: does the provider answer, and how fast."""

from __future__ import annotations

import time

import click

from offbook.cli.options import Invocation, home_option, json_option, pass_invocation, url_option

EPILOG = """\b
Examples:
  offbook ping
  offbook ping --url http://127.0.0.1:8770
  until offbook ping >/dev/null 2>&1; do sleep 0.1; done
"""


@click.command("ping", epilog=EPILOG)
@home_option
@url_option
@json_option
@pass_invocation
def command(invocation: Invocation) -> None:
    """Ask whether the provider answers. Exit status 3 where it does not."""
    from offbook.cli.output import print_json, printable

    with invocation.client() as client:
        started = time.perf_counter()
        health = client.ping()
        milliseconds = (time.perf_counter() - started) * 1_000
        endpoint = client.endpoint
    if invocation.is_json:
        print_json(health)
        return
    facts = [
        f"Offbook {health.get('version')} answers at {endpoint}",
        f"{milliseconds:.1f} ms",
        f"store {health.get('store')}",
        f"model {health.get('model') or 'none'}",
        f"backlog {health.get('backlog')}",
    ]
    click.echo(printable(" · ".join(facts)))
