"""`offbook config`: each setting, and who said so."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.options import UTF8, Invocation, offline_options, pass_invocation

if TYPE_CHECKING:
    from offbook.model.settings import LoadedSettings, Row

EPILOG = """\b
Examples:
  offbook config
  offbook config --changed
  offbook config server.port
  offbook config server                 the settings of one group
  $EDITOR "$(offbook config --path)"
"""


@click.command("config", epilog=EPILOG)
@click.argument("name", type=UTF8, required=False)
@click.option("--path", "wants_path", is_flag=True, help="Print where config.toml is, or would be.")
@click.option("--changed", is_flag=True, help="Only what is not a default.")
@offline_options
@pass_invocation
def command(invocation: Invocation, name: str | None, wants_path: bool, changed: bool) -> None:
    """Show every setting and where it came from, or one of them.

    \b
    Later wins: defaults, config.toml of the data folder, OFFBOOK_… variables,
    flags of `offbook serve`.
    """
    from offbook.cli.output import print_json
    from offbook.model.settings import load

    home = invocation.home
    if wants_path:
        if invocation.is_json:
            print_json({"path": str(home.config), "exists": home.config.exists()})
        else:
            click.echo(home.config)
        return
    loaded = load(home.folder, environ=invocation.environ)
    rows = [row for row in loaded if not changed or row.origin != "default"]
    if name is not None:
        rows = _named(loaded, rows, name)
    if invocation.is_json:
        documents = [_document(row) for row in rows]
        print_json(documents[0] if name is not None and [row.name for row in rows] == [_full(name)] else documents)
        return
    _show(rows, name)


def _named(loaded: LoadedSettings, rows: list[Row], name: str) -> list[Row]:
    """The setting of that name, in either spelling, or the settings of the group."""
    from offbook.model.settings import catalogue

    wanted = _full(name)
    found = [row for row in rows if row.name == wanted or row.name.startswith(wanted + ".")]
    if not found and not catalogue().is_group(name.split(".")):
        loaded.origin_of(wanted)  # raises, with the name that was probably meant
    return found


def _full(name: str) -> str:
    from offbook.model.settings import catalogue

    setting = catalogue().find_short(name) or catalogue().find(name.split("."))
    return setting.name if setting is not None else name


def _document(row: Row) -> dict[str, Any]:
    from offbook.model.settings.values import as_text

    value = as_text(row.value) if isinstance(row.value, timedelta) else row.value
    return {"name": row.name, "value": value, "origin": row.origin, "description": row.description}


def _show(rows: list[Row], name: str | None) -> None:
    from offbook.cli.output import printable, table
    from offbook.model.settings.values import as_text

    if name is not None and len(rows) == 1:
        (row,) = rows
        click.echo(printable(f"{row.name} = {as_text(row.value)}\n  {row.description}\n  from: {row.origin}"))
        return
    if not rows:
        click.echo("every setting has its default")
        return
    table(["setting", "value", "from"], [[row.name, as_text(row.value), row.origin] for row in rows])
