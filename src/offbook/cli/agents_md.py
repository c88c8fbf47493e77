"""`offbook agents-md`: teach a workspace's agent that what it recalls is its own memory."""

from __future__ import annotations

import os
import secrets
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from offbook.cli.options import UTF8, Invocation, json_option, pass_invocation
from offbook.model.errors import OffbookError

if TYPE_CHECKING:
    from offbook.context.agents_md import Found

    State = Found | Literal["missing"]

FILE = "AGENTS.md"
NEVER_WRITTEN = "memory.md"
"""It is the agent's own: what it wants to keep it writes there itself."""
TOLD: dict[State, str] = {
    "present": "has it",
    "changed": "has it, changed by hand",
    "old": "has it under the old name (### Recalled Memories (Continuity Plugin))",
    "absent": "does not have it",
    "missing": "there is no {name}",
}
NOT_WRITTEN: dict[State, str] = {
    "present": "nothing to do",
    "changed": "it is left as it is; to have ours instead, remove it and run this again",
    "old": "it is left as it is; to have ours instead, remove it and run this again",
}

EPILOG = """\b
Examples:
  offbook agents-md                           print it; does this folder have it?
  offbook agents-md ~/workspace --write       add it at the end of its AGENTS.md
  offbook agents-md ~/workspace --check && echo there
  offbook agents-md --json | jq -r .section

\b
No provider is needed. A section that is there is never changed, also one that
was changed by hand. MEMORY.md belongs to the agent and is never touched.
"""


@click.command("agents-md", epilog=EPILOG)
@click.argument("path", type=UTF8, default=".", metavar="[PATH]")
@click.option("--write", is_flag=True, help="Add it at the end of the file, unless it is there.")
@click.option("--check", is_flag=True, help="Only say whether it is there: exit status 0 if so, else 1.")
@json_option
@pass_invocation
def command(invocation: Invocation, path: str, write: bool, check: bool) -> None:
    """Print the section of AGENTS.md that teaches an agent that what it recalls is its own memory.

    PATH is the agent's workspace or a file in it; this folder where it is left out.
    """
    from offbook.cli.output import print_json, printable
    from offbook.context.agents_md import SECTION

    if write and check:
        raise click.UsageError("--check changes nothing: leave out --check or --write")
    file = _meant(path)
    state, text = _read(file)
    is_written = write and state in ("absent", "missing")
    if is_written:
        _write(file, text)
    if invocation.is_json:
        print_json({"path": str(file), "found": state, "written": is_written, "section": SECTION})
    elif write:
        done = "added at the end" if state == "absent" else "made, with it"
        click.echo(printable(f"{file}: {done}" if is_written else f"{_told(file, state)}: {NOT_WRITTEN[state]}"))
    elif check:
        click.echo(printable(_told(file, state)))
    else:
        click.echo(SECTION, nl=False)
        way = f": `offbook agents-md {shlex.quote(path)} --write` adds it" if state in ("absent", "missing") else ""
        click.echo(printable(_told(file, state) + way), err=True)
    if check and state in ("absent", "missing"):
        raise click.exceptions.Exit(1)


def _told(file: Path, state: State) -> str:
    return f"{file}: {TOLD[state].format(name=file.name)}"


def _meant(path: str) -> Path:
    """The file that is meant, whether it is there or not."""
    given = Path(path)
    file = given / FILE if given.is_dir() else given
    folder = _target(file).parent
    if NEVER_WRITTEN in (file.name.casefold(), _target(file).name.casefold()):
        raise click.BadParameter(
            f"{file} is the agent's own memory, which it alone writes: the section belongs in {FILE} beside it",
            param_hint="PATH",
        )
    if file.suffix.casefold() != ".md" or (path.endswith("/") and not given.is_dir()):
        is_there = "is neither a folder nor a Markdown file" if file.exists() else "is no folder"
        raise click.BadParameter(f"{given} {is_there}: name the agent's workspace, or its {FILE}", param_hint="PATH")
    if not folder.is_dir():
        raise click.BadParameter(
            f"there is no folder {folder}: name the agent's workspace, or its {FILE}", param_hint="PATH"
        )
    return file


def _target(file: Path) -> Path:
    """Where it really is: a link is followed, and stays a link. Unlike `resolve`, this takes a link to itself, too."""
    return Path(os.path.realpath(file))


def _read(file: Path) -> tuple[State, str]:
    """How it stands with the section, and the text, from which the bytes can be made again."""
    from offbook.context.agents_md import found_in

    if file.exists() and not file.is_file():
        raise OffbookError(f"{file} is no file: name the agent's workspace, or its {FILE}")
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return "missing", ""
    if b"\0" in content:
        raise OffbookError(f"{file} is not text in UTF-8: save it as UTF-8, then run this again")
    text = content.decode("utf-8", "surrogateescape")
    return found_in(text), text


def _write(file: Path, text: str) -> None:
    """The file with the section, all at once, where it really is and with the permissions it has."""
    from offbook.context.agents_md import with_section

    target = _target(file)
    content = with_section(text).encode("utf-8", "surrogateescape")
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        if target.exists() and not os.access(target, os.W_OK):
            # A rename asks the folder only: a file that is closed to us would be replaced.
            raise PermissionError("no permission to write")
        _fill(unfinished, content, like=target)
        if _read(file)[1] != text:
            raise OffbookError(f"{file} was changed just now by somebody else: run this again")
        unfinished.replace(target)
    except OSError as error:
        raise OffbookError(
            f"{file} cannot be written ({error.strerror or error}): mend its permissions or make room, "
            "or add by hand what `offbook agents-md` prints"
        ) from None
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _fill(unfinished: Path, content: bytes, *, like: Path) -> None:
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with os.fdopen(descriptor, "wb") as writing:
        if like.exists():
            status = like.stat()
            with suppress(PermissionError):  # whoever is not root owns it already, or may not give it away
                os.fchown(descriptor, status.st_uid, status.st_gid)
            os.fchmod(descriptor, status.st_mode & 0o7777)
        writing.write(content)
        writing.flush()
        os.fsync(descriptor)
