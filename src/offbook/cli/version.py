"""`offbook version`: what runs here."""

from __future__ import annotations

import platform

import click

from offbook.cli.options import Invocation, json_option, pass_invocation

EPILOG = """\b
Examples:
  offbook version
  offbook version --json
"""


@click.command("version", epilog=EPILOG)
@json_option
@pass_invocation
def command(invocation: Invocation) -> None:
    """Show the versions of what runs here."""
    import apsw

    from offbook.cli.output import print_json
    from offbook.log.sqlite.connection import latest_version
    from offbook.model.version import VERSION

    versions = {
        "offbook": VERSION,
        "schema": latest_version(),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "platform": platform.platform(),
    }
    if invocation.is_json:
        print_json(versions)
        return
    for name, version in versions.items():
        click.echo(f"{name:<9}{version}")
