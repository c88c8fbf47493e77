"""`offbook import NAME PATH`: one command for each format in the table, all of them alike."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from offbook.cli.options import Invocation, common_options, pass_invocation
from offbook.client.history.formats import FORMATS, Format

if TYPE_CHECKING:
    from offbook.client.history.conversations import Conversation, ImportReport
    from offbook.client.history.formats import Owner

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
        _import(invocation, name, path, dry_run)

    return command


def _epilog(name: str, form: Format) -> str:
    examples = "\n".join(f"  offbook import {name} {each}" for each in form.examples)
    return f"\b\nExamples:\n{examples}\n\n\b\n{form.note}\n{AGAIN}\n"


def _import(invocation: Invocation, name: str, path: Path, dry_run: bool) -> None:
    import msgspec

    from offbook.cli.import_telling import provider, show, tell
    from offbook.cli.output import print_json
    from offbook.client.history.conversations import ImportReport
    from offbook.client.recorder import encoded

    form = FORMATS[name]
    with ExitStack() as stack:
        client = provider(invocation, stack, dry_run)
        report = ImportReport(state=str(path), is_dry_run=dry_run)
        tell(client, report, _conversations(invocation, name, path, report))
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


def _conversations(invocation: Invocation, name: str, path: Path, report: ImportReport) -> list[Conversation]:
    """Those of a path, or of each agent's folder in it, where `offbook export` wrote them."""
    from offbook.transfer.agent_folders import read_folders

    read = FORMATS[name].load()
    folders = read_folders(path, name)
    if folders is None:
        return read(path, report, _owner(invocation))
    if invocation.agent_given and len(folders) > 1:
        raise click.BadParameter(
            f"{path} holds {len(folders)} agents: give the folder of the one that is meant", param_hint="'--agent'"
        )
    return [
        each
        for agent_id, folder in folders
        for each in read(folder, report, _always(invocation.agent_given or agent_id))
    ]


def _always(agent_id: str) -> Owner:
    """Whatever the keys say: they were this agent's when they were written."""
    return lambda session_key: agent_id


def _owner(invocation: Invocation) -> Owner:
    from offbook.ingest.scope import resolve_agent
    from offbook.model.errors import WrongShape
    from offbook.model.settings import load

    default = load(invocation.home.folder, environ=invocation.environ).settings.default_agent

    def owner(session_key: str) -> str:
        try:
            return resolve_agent(session_key, invocation.agent, default)
        except WrongShape as error:
            hint = "" if invocation.agent else f"; say whose {session_key[:60]!r} is with --agent"
            raise WrongShape(f"{error.detail}{hint}") from None

    return owner
