"""`offbook import NAME PATH`: one command for each format in the table, all of them alike."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from offbook.cli.options import Invocation, common_options, pass_invocation
from offbook.portability.formats import FORMATS, Format

if TYPE_CHECKING:
    from offbook.portability.formats import Owner

AGAIN = "Each message is stored once: run this again at any time, also after it broke off."


def commands() -> list[click.Command]:
    return [command_of(name, each) for name, each in FORMATS.items()]


def command_of(name: str, form: Format) -> click.Command:
    @click.command(name, help=form.line, epilog=_epilog(name, form))
    @click.argument("path", type=click.Path(exists=True, path_type=Path))
    @click.option("--dry-run", is_flag=True, help="Read everything, store nothing, and tell what would be stored.")
    @common_options
    @pass_invocation
    def command(invocation: Invocation, path: Path, dry_run: bool) -> None:
        _import(invocation, form, path, dry_run)

    return command


def _epilog(name: str, form: Format) -> str:
    examples = "\n".join(f"  offbook import {name} {each}" for each in form.examples)
    return f"\b\nExamples:\n{examples}\n\n\b\n{form.note}\n{AGAIN}\n"


def _import(invocation: Invocation, form: Format, path: Path, dry_run: bool) -> None:
    import msgspec

    from offbook.cli.import_telling import provider, show, tell
    from offbook.cli.output import print_json
    from offbook.client.outgoing import encoded
    from offbook.portability.report import ImportReport

    with ExitStack() as stack:
        client = provider(invocation, stack, dry_run)
        report = ImportReport(state=str(path), is_dry_run=dry_run)
        tell(client, report, form.load()(path, report, _owner(invocation)))
    is_empty = not report.total("messages")
    if is_empty and not report.unreadable:
        # Before the lines that could not be read: of those only the first are shown.
        report.problem(str(path), f"nothing in it is a message: {form.give}", is_first=True)
    if invocation.is_json:
        print_json(msgspec.json.decode(encoded(report)))  # the names of files need not be UTF-8
    else:
        show(report)
    if report.unreadable or is_empty:
        sys.exit(1)


def _owner(invocation: Invocation) -> Owner:
    from offbook.scope import resolve_agent
    from offbook.settings import load

    default = load(invocation.home.folder, environ=invocation.environ).settings.default_agent
    return lambda session_key: resolve_agent(session_key, invocation.agent, default)
