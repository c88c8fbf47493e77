"""`offbook export`: the way out. Everything as documented files, or in the formats of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.answers import agents_there, refuse_unknown
from offbook.cli.options import UTF8, Invocation, home_option, json_option, pass_invocation, url_option
from offbook.cli.output import counted, left_out, print_json, printable, progress, table, warn

if TYPE_CHECKING:
    from offbook.cli.output import Advance
    from offbook.client.blocking import Client
    from offbook.transfer.provider_export import Written

TIMEOUT_SECONDS = 60.0
WRITERS = {
    "swap-jsonl": "offbook.transfer.documents.swap_jsonl",
    "summaries": "offbook.transfer.documents.summaries_folder",
    "archive": "offbook.transfer.documents.archive_days",
}
OWN, WIKI = "offbook", "wiki"
CANNOT = (404, 422)
"""A provider that does not know the verb, or not the task."""
MOST_NAMED = 5
EPILOG = """\b
Examples:
  offbook export                             into offbook-export-<date>
  offbook export /backup/memory              into this folder, which must be new or empty
  offbook export --agent main --json
  offbook export --format swap-jsonl         for the hot-swap plugin
  offbook export --format wiki pages         Markdown to read
  offbook export --encrypt memory.sealed     one file, sealed with a passphrase

\b
Formats:
  offbook     everything: messages, marks, pins, summaries, lessons. The way back is
              `offbook import offbook FOLDER`, and the same files come out again
  swap-jsonl  swap.jsonl of the hot-swap plugin
  summaries   the folder of the hierarchical memory plugin
  archive     archive/<day>.json of the continuity plugin
  wiki        the Markdown pages of the agent, as they are in the data folder

\b
The folder appears when it is whole. It holds conversations: keep it where nobody
else reads. The audit chain, costs and indexes are not in it: `offbook backup` has
them, and `offbook audit --json` shows the chain. Exit status 1: written, but
large parts of messages could not be read back.
"""


@click.command("export", epilog=EPILOG)
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--agent", "agents", type=UTF8, multiple=True, metavar="NAME", help="Only this agent. May be repeated.")
@click.option(
    "--format",
    "form",
    type=click.Choice([OWN, *WRITERS, WIKI]),
    default=OWN,
    show_default=True,
    help="What is written.",
)
@click.option("--encrypt", "is_encrypted", is_flag=True, help="One encrypted file, in place of a folder.")
@home_option
@url_option
@json_option
@pass_invocation
def export_command(
    invocation: Invocation, folder: Path | None, agents: Sequence[str], form: str, is_encrypted: bool
) -> None:
    """Write everything to a folder, as files that anybody can read."""
    from offbook.transfer.agent_folders import check_is_free

    if is_encrypted and form != OWN:
        raise click.UsageError(f"--encrypt goes with the format {OWN} only: nothing else could read the others")
    name = f"offbook-export-{date.today().isoformat()}{'.sealed' if is_encrypted else ''}"
    target = (folder or Path(name)).absolute()
    if not is_encrypted:
        check_is_free(target)
    with ExitStack() as stack:
        client = stack.enter_context(invocation.client(timeout_seconds=TIMEOUT_SECONDS))
        wanted = agents or ([invocation.agent_given] if invocation.agent_given else [])
        chosen = _chosen(client, wanted)
        with _place(invocation, target, is_encrypted=is_encrypted) as unfinished:
            export = _Export(invocation, client, chosen, unfinished, form)
            written = _WRITE.get(form, _foreign)(export)
    report = {"folder": str(target), "format": form, "agents": written}
    if invocation.is_json:
        print_json(report)
    else:
        _show(target, form, written)
    for one in written:
        if missing := one.get("missingParts"):
            warn(
                f"{counted(missing, 'large part')} of messages of {printable(one['agentId'])} could not be read back: "
                "the messages say so in their place; `offbook doctor` names the files, a backup may have them"
            )
    if any("missingParts" in one for one in written):
        raise click.exceptions.Exit(1)


@contextmanager
def _place(invocation: Invocation, target: Path, *, is_encrypted: bool) -> Iterator[Path]:
    """A folder to write to: the target itself, or one in memory that is sealed into it. The keys are those of the data
    folder, or made for this file and wrapped by the passphrase."""
    from offbook.transfer.agent_folders import whole_folder

    if not is_encrypted:
        with whole_folder(target) as unfinished:
            yield unfinished
        return
    from tempfile import TemporaryDirectory

    from offbook.cli.encrypt import new_secret
    from offbook.model.keys import PASSPHRASE, keys_of, new_keys
    from offbook.transfer.sealed_export import sealed_folder

    with TemporaryDirectory(prefix="offbook-keys-") as made:
        own = keys_of(invocation.home.folder)
        keys = own or new_keys(Path(made), new_secret(invocation, None, PASSPHRASE)())
        with sealed_folder(target, keys) as unfinished:
            yield unfinished


@dataclass
class _Export:
    invocation: Invocation
    client: Client
    agents: Sequence[str]
    folder: Path
    form: str

    def messages(self) -> int:
        return sum(self.client.status(agent_id)["counts"]["messages"] for agent_id in self.agents)


def _chosen(client: Client, wanted: Sequence[str]) -> list[str]:
    there = agents_there(client, wanted)
    refuse_unknown(wanted, there, "--agent")
    return [name for name in there if not wanted or name in wanted]


# ── everything ──


def _own(export: _Export) -> list[dict[str, Any]]:
    from offbook.transfer.record_files import write_agent, write_index

    told = []
    with progress("exporting", export.messages()) as advance:
        written = []
        for agent_id in export.agents:
            found, whole = _records(export.client, agent_id, advance)
            written.append(write_agent(export.folder, agent_id, found))
            one = {"agentId": agent_id, "folder": written[-1].folder, "records": written[-1].records}
            told.append(one | ({"leftOut": whole.left_out} if whole.left_out else {}) | _missing(whole.missing_parts))
        write_index(export.folder, written)
    return told


def _records(client: Client, agent_id: str, advance: Advance) -> tuple[Any, Any]:
    from offbook.model.record import MessageRecord
    from offbook.transfer.provider_export import WholeRecords, records

    whole = WholeRecords()

    def counted() -> Any:
        for record in records(client, agent_id):
            advance(isinstance(record, MessageRecord))
            yield record

    return whole.of(counted()), whole


# ── the formats of others ──


def _foreign(export: _Export) -> list[dict[str, Any]]:
    from offbook.transfer.agent_folders import AgentFolder, folder_names, write_folders
    from offbook.transfer.provider_export import ProviderExported

    write: Callable[..., Written] = import_module(WRITERS[export.form]).write
    told, folders = [], []
    with progress("exporting", export.messages()) as advance:
        for agent_id, folder in folder_names(export.agents):
            exported = ProviderExported(export.client, agent_id, advance)
            written = write(exported, export.folder / folder)
            folders.append(AgentFolder(agent_id=agent_id, folder=folder, records=written.records))
            left_out = [{"what": each.what, "why": each.why, "count": each.count} for each in written.left_out]
            told.append(
                {
                    "agentId": agent_id,
                    "folder": folder,
                    "files": written.files,
                    "records": written.records,
                    "leftOut": left_out,
                }
                | _missing(exported.missing_parts)
            )
    write_folders(export.folder, export.form, folders)
    return told


# ── the wiki ──


def _wiki(export: _Export) -> list[dict[str, Any]]:
    """Copied from the data folder, so only where that is at hand."""
    from offbook.model.errors import InvalidInput
    from offbook.model.home import safe_name
    from offbook.projections.wiki.index_page import agents_index

    home, endpoint = export.invocation.home, export.invocation.endpoint
    if endpoint.scheme != "unix" or Path(endpoint.path) != home.socket:
        raise InvalidInput("the wiki lies in the provider's data folder: run this on its machine, without --url")
    wiki = home.wiki
    told: list[dict[str, Any]] = []
    for agent_id in export.agents:
        _bring_up_to_date(export.client, agent_id)
        source = wiki / safe_name(agent_id)
        if source.is_dir():
            told.append({"agentId": agent_id, **_copied(source, export.folder / safe_name(agent_id))})
    if not told:
        raise InvalidInput(f"there are no pages in {wiki} yet: nothing was said, or the wiki is switched off")
    # The pages of an agent lead to it. It names those that are here: the one in the data folder names all.
    index = agents_index([one["agentId"] for one in told])
    (export.folder / "index.md").write_text(index, encoding="utf-8", newline="\n")
    return told


def _copied(source: Path, target: Path) -> dict[str, Any]:
    """All that is there, also what a person put beside the pages."""
    import shutil

    from offbook.model.errors import InvalidInput

    links: list[Path] = []

    def lost(folder: str, names: list[str]) -> list[str]:
        found = [name for name in names if _leads_nowhere(Path(folder, name))]
        links.extend(Path(folder, name) for name in found)
        return found

    try:
        shutil.copytree(source, target, ignore=lost)
    except shutil.Error as error:
        path, _, why = error.args[0][0]
        raise InvalidInput(f"{path} cannot be copied ({why}): mend it or move it away, and export again") from error
    told = {"folder": target.name, "files": sum(path.is_file() for path in target.rglob("*"))}
    if not links:
        return told
    why = f"nothing is where they lead, or they lead back: {', '.join(map(str, links[:MOST_NAMED]))}"
    return told | {"leftOut": [{"what": "links that cannot be followed", "why": why, "count": len(links)}]}


def _leads_nowhere(path: Path) -> bool:
    """A link to what is not there, or to a folder that it is in itself."""
    return path.is_symlink() and (not path.exists() or path.parent.resolve().is_relative_to(path.resolve()))


def _bring_up_to_date(client: Client, agent_id: str) -> None:
    from offbook.model.errors import ProviderRefused

    try:
        errors = [run.error for run in client.maintain(tasks=["wiki"], agent_id=agent_id).runs if run.error]
    except ProviderRefused as error:
        if error.document.get("status") not in CANNOT:
            raise
        errors = [str(error.document.get("detail", ""))]
    for told in errors:
        warn(
            printable(
                f"the pages of {agent_id} are as they were last written, and may be older than what was said: {told}; "
                "run `offbook maintain` first, where it works again, then export"
            )
        )


_WRITE: dict[str, Callable[[_Export], list[dict[str, Any]]]] = {OWN: _own, WIKI: _wiki}


# ── what is told ──


def _show(target: Path, form: str, written: Sequence[dict[str, Any]]) -> None:
    names = {"agentId": "agent", "records": "records", "files": "files", "folder": "in"}
    shown = [name for name in names if any(name in one for one in written)]
    rows = [[_cell(one.get(name, "")) for name in shown] for one in written]
    if rows:
        table([names[name] for name in shown], rows, right=["records", "files"])
    for one in written:
        left = one.get("leftOut")
        if isinstance(left, int):
            what = counted(left, "summary or lesson", "summaries and lessons")
            warn(
                f"{what} of {one['agentId']} left out, of messages that came while this ran: export again to have them"
            )
        for each in left if isinstance(left, list) else ():
            whose = f" of {one['agentId']}" if len(written) > 1 else ""
            click.echo(printable(f"left out{whose}: {left_out(each['count'], each['what'])}: {each['why']}"))
    click.echo(f"{target}: {counted(len(written), 'agent')}, format {form}")
    if form != WIKI:
        click.echo(f"the way back: offbook import {form} {target}")


def _missing(parts: int) -> dict[str, int]:
    return {"missingParts": parts} if parts else {}


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
