"""`agents.json` beside what an export wrote in the format of another program: whose folder is whose.

Those formats do not say it, and the name of a folder does not either where an agent's own is no name for one.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from offbook.ingest.scope import checked_key
from offbook.model.errors import InvalidInput
from offbook.model.home import safe_name
from offbook.model.private_files import sync_folder
from offbook.model.types import MAX_AGENT_BYTES, Value
from offbook.transfer.documents.archive_days import replace_file

NAME = "agents.json"
ALONE = "."
"""One agent has the folder to itself."""


class AgentFolder(Value, frozen=True):
    agent_id: str
    folder: str
    records: int


class AgentFolders(Value, frozen=True):
    format: str
    """As `offbook export --format` and `offbook import` call it."""
    agents: list[AgentFolder]


def folder_names(agents: Sequence[str]) -> list[tuple[str, str]]:
    return [(agent_id, ALONE if len(agents) == 1 else safe_name(agent_id)) for agent_id in agents]


def write_folders(root: Path, form: str, agents: Sequence[AgentFolder]) -> None:
    index = AgentFolders(format=form, agents=list(agents))
    replace_file(root / NAME, [msgspec.json.format(msgspec.json.encode(index), indent=2) + b"\n"])


def read_folders(root: Path, form: str) -> list[tuple[str, Path]] | None:
    """Each agent with its folder, where there is something in it. None where no export of ours wrote this. Raises
    InvalidInput and OSError."""
    try:
        data = (root / NAME).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        index = msgspec.json.decode(data, type=AgentFolders)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # somebody else's, of that name
    if index.format != form:
        raise InvalidInput(f"{root} was exported as {index.format}: use `offbook import {index.format}`")
    named = dict(folder_names([checked_key(each.agent_id, "agentId", MAX_AGENT_BYTES) for each in index.agents]))
    for each in index.agents:
        if each.folder != named[each.agent_id]:  # wherever else it leads to
            raise InvalidInput(
                f"{root / NAME}: the folder of agent {each.agent_id!r} would be {named[each.agent_id]!r}, not "
                f"{each.folder!r}: put it back as it was exported, or give each folder by itself, with --agent"
            )
    return [(each.agent_id, root / each.folder) for each in index.agents if each.records]


# ── A folder that appears whole or not at all ──


def check_is_free(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InvalidInput(f"{folder} is there and no folder: name another one")
    if folder.is_dir() and any(folder.iterdir()):
        raise InvalidInput(f"{folder} is not empty: name a new folder, or empty it")
    if not folder.parent.is_dir():
        raise InvalidInput(f"{folder} cannot be written: there is no folder {folder.parent}; make it first")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder beside it to write to; it gets its name at the end, and goes where something went wrong."""
    check_is_free(folder)
    unfinished = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    unfinished.mkdir(mode=0o700)
    try:
        yield unfinished
        check_is_free(folder)
        if folder.is_dir():
            folder.rmdir()
        unfinished.rename(folder)
        sync_folder(folder.parent)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
