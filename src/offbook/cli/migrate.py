"""`offbook migrate`: the memory from the file in the data folder into a PostgreSQL database, and back."""

from __future__ import annotations

import asyncio

import click

from offbook.cli.options import UTF8, Invocation, offline_options, pass_invocation
from offbook.cli.output import counted, print_json, progress

MIGRATE_EPILOG = """\b
Examples:
  offbook migrate --to postgresql://offbook@localhost/offbook
  offbook migrate --from postgresql://offbook@localhost/offbook
  offbook migrate --from sqlite
  offbook migrate --to sqlite

\b
The last two use the database of store.url: a password on the command line
is seen by others on the machine.

\b
Stop the provider first. One that broke off goes on where it was when it is
run again. The source stays as it is. Large parts, the search index and
backups stay in the data folder.
"""


@click.command("migrate", epilog=MIGRATE_EPILOG)
@click.option("--from", "source", type=UTF8, metavar="STORE", help="The memory that is copied; it stays as it is.")
@click.option(
    "--to", "target", type=UTF8, metavar="STORE", help="Where it is copied to: an empty database, or `sqlite`."
)
@offline_options
@pass_invocation
def migrate_command(invocation: Invocation, source: str | None, target: str | None) -> None:
    """Copy the memory into a database, or back into a file.

    A STORE is `sqlite`, the file in the data folder, or the URL of a PostgreSQL database. The one that is not given is
    the other of the two: the database that `store.url` names (config.toml, OFFBOOK_STORE_URL), or the file.
    """
    from offbook.model.settings import load
    from offbook.transfer.migrating import FILE, both_stores, migrate

    configured = load(invocation.home.folder, environ=invocation.environ).settings.store.url
    source, target = both_stores(source, target, configured)
    with progress("copying", None) as advance:
        migrated = asyncio.run(migrate(invocation.home, source, target, progress=advance))
    if invocation.is_json:
        print_json({"rows": migrated.rows, "resumed": migrated.is_resumed})
        return
    rows = migrated.rows
    click.echo(
        f"{counted(rows['messages'], 'message')} of {counted(rows['agents'], 'agent')}, "
        f"{counted(rows['audit'], 'audit event')}; copied, counted and verified"
    )
    if target == FILE:
        click.echo("take store.url out of the settings, then start the provider")
    else:
        click.echo("set store.url to that database (config.toml, or OFFBOOK_STORE_URL), then start the provider")
