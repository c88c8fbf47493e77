"""`offbook nodes`: which nodes share the database, and what each of them has."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from offbook.cli.options import Invocation, offline_options, pass_invocation
from offbook.cli.output import local_time, print_json, printable, table
from offbook.model.errors import InvalidInput

if TYPE_CHECKING:
    from offbook.log.postgres.nodes import NodeRow

NODES_EPILOG = """\b
Examples:
  offbook nodes
  offbook nodes --watch
  offbook nodes --json

\b
It asks the database of store.url, so it answers where no node does. A node
whose lease is over is removed by the next one that looks, and its buckets
are shared out among the others.
"""
WATCH_SECONDS = 2.0


@click.command("nodes", epilog=NODES_EPILOG)
@click.option("--watch", is_flag=True, help="Show it again every two seconds, until Ctrl-C.")
@offline_options
@pass_invocation
def nodes_command(invocation: Invocation, watch: bool) -> None:
    """Show the nodes that share the database, and how many of the agents' buckets each has."""
    from offbook.model.settings import load

    url = load(invocation.home.folder, environ=invocation.environ).settings.store.url
    if url is None:
        raise InvalidInput("the memory is in a file (`store.url` is not set): several nodes share a database")
    while True:
        _show(invocation, _nodes(url))
        if not watch:
            return
        time.sleep(WATCH_SECONDS)
        if not invocation.is_json:
            click.echo()


def _nodes(url: str) -> list[NodeRow]:
    from offbook.log.opening import check_url

    check_url(url)
    from offbook.log.postgres.connection import PostgresConnection, opening
    from offbook.log.postgres.nodes import shown_nodes
    from offbook.log.postgres.schema import refuse_newer, schema_version

    with opening():
        connection = PostgresConnection(url, name="offbook nodes", read_only=True)
        try:
            refuse_newer(connection)
            return shown_nodes(connection) if schema_version(connection) else []
        finally:
            connection.close()


def _show(invocation: Invocation, nodes: list[NodeRow]) -> None:
    if invocation.is_json:
        print_json({"nodes": [_document(row) for row in nodes]})
        return
    if not nodes:
        click.echo("no node runs: `offbook serve --store URL --node-url URL` starts one", err=True)
        return
    rows = [
        [
            printable(row.url),
            printable(row.holder),
            row.version,
            f"{row.buckets:,}",
            f"{row.seconds_left:.1f} s" if row.seconds_left > 0 else "over",
            local_time(row.started_at),
        ]
        for row in nodes
    ]
    numbers = ["buckets", "lease left"]
    table(["node", "where", "version", *numbers, "since"], rows, right=numbers)


def _document(row: NodeRow) -> dict[str, object]:
    return {
        "node": row.node,
        "number": row.number,
        "url": row.url,
        "holder": row.holder,
        "version": row.version,
        "buckets": row.buckets,
        "leaseSecondsLeft": round(row.seconds_left, 3),
        "since": row.started_at.isoformat(),
    }
