from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from offbook.cli import connect
from offbook.context.agents_md import HEADING, OLD_HEADING, SECTION
from offbook.model.home import Home
from tests.unit.cli.conftest import Run

RULES = "# Rules\n\nBe kind.\n"
TEXTS = {
    "present": (SECTION, "has it"),
    "changed": (f"{HEADING}\n\nMy own words.\n", "has it, changed by hand"),
    "old": (f"{OLD_HEADING}\n", "has it under the old name (### Recalled Memories (Continuity Plugin))"),
    "absent": (RULES, "does not have it"),
    "missing": (None, "there is no AGENTS.md"),
}
NOBODY = 65_534
IS_THERE = ["present", "changed", "old"]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    """The agent's folder; when the test ends, nothing but Markdown is in it."""
    folder = tmp_path / "work space"
    folder.mkdir()
    (folder / "MEMORY.md").write_text("The agent's own.\n")
    yield folder
    assert (folder / "MEMORY.md").read_text() == "The agent's own.\n"
    assert [path for path in folder.iterdir() if path.name.startswith(".")] == []


def given(workspace: Path, state: str) -> Path:
    file = workspace / "AGENTS.md"
    text, _ = TEXTS[state]
    if text is not None:
        file.write_text(text)
    return file


# ── printed and checked ──


@pytest.mark.parametrize("state", TEXTS)
def test_it_is_printed_and_whether_it_is_there_is_told(state: str, workspace: Path, run: Run, home: Home) -> None:
    file = given(workspace, state)
    result = run("agents-md", str(workspace))
    way = f": `offbook agents-md '{workspace}' --write` adds it" if state not in IS_THERE else ""
    assert (result.exit_code, result.stdout) == (0, SECTION)
    assert result.stderr == f"{file}: {TEXTS[state][1]}{way}\n"
    assert file.exists() == (state != "missing")
    assert not home.folder.exists()


@pytest.mark.parametrize("state", TEXTS)
def test_a_check_prints_one_line_and_its_exit_status_says_it(state: str, workspace: Path, run: Run) -> None:
    file = given(workspace, state)
    for path in (workspace, file):
        result = run("agents-md", str(path), "--check")
        assert (result.stdout, result.stderr) == (f"{file}: {TEXTS[state][1]}\n", "")
        assert result.exit_code == (0 if state in IS_THERE else 1)


def test_this_folder_is_meant_where_none_is_named(workspace: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    given(workspace, "changed")
    monkeypatch.chdir(workspace)
    assert run("agents-md", "--check").stdout == "AGENTS.md: has it, changed by hand\n"


@pytest.mark.parametrize("state", TEXTS)
def test_json_says_all_of_it(state: str, workspace: Path, run: Run) -> None:
    file = given(workspace, state)
    told = {"path": str(file), "found": state, "written": False, "section": SECTION}
    printed, checked = run("agents-md", str(workspace), "--json"), run("agents-md", str(file), "--check", "--json")
    assert json.loads(printed.stdout) == json.loads(checked.stdout) == told
    assert (printed.exit_code, checked.exit_code) == (0, 0 if state in IS_THERE else 1)
    assert printed.stderr == checked.stderr == ""
    written = json.loads(run("agents-md", str(workspace), "--write", "--json").stdout)
    assert written == told | {"written": state not in IS_THERE}


# ── written ──


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", SECTION.encode()),
        (RULES.encode(), f"{RULES}\n{SECTION}".encode()),
        (b"# Rules", f"# Rules\n\n{SECTION.rstrip()}".encode()),
        (b"# Rules\r\n", f"# Rules\n\n{SECTION}".replace("\n", "\r\n").encode()),
        (b"# R\xe8gles \xff\n", b"# R\xe8gles \xff\n\n" + SECTION.encode()),
        (b"\xef\xbb\xbf# Rules\n", b"\xef\xbb\xbf# Rules\n\n" + SECTION.encode()),
        (f"```\n{SECTION}```\n".encode(), f"```\n{SECTION}```\n\n{SECTION}".encode()),
    ],
)
def test_it_is_added_at_the_end_and_once(before: bytes, after: bytes, workspace: Path, run: Run) -> None:
    file = workspace / "AGENTS.md"
    file.write_bytes(before)
    first = run("agents-md", str(workspace), "--write")
    assert (first.exit_code, first.stdout, first.stderr) == (0, f"{file}: added at the end\n", "")
    assert file.read_bytes() == after
    second = run("agents-md", str(workspace), "--write")
    assert (second.exit_code, second.stdout) == (0, f"{file}: has it: nothing to do\n")
    assert file.read_bytes() == after


@pytest.mark.parametrize("named", ["AGENTS.md", ""])
def test_a_file_is_made_where_there_is_none(named: str, workspace: Path, run: Run) -> None:
    file = workspace / "AGENTS.md"
    umask = os.umask(0o027)
    try:
        result = run("agents-md", str(workspace / named), "--write")
    finally:
        os.umask(umask)
    assert (result.exit_code, result.stdout) == (0, f"{file}: made, with it\n")
    assert file.read_text() == SECTION
    assert file.stat().st_mode & 0o777 == 0o640
    assert run("agents-md", str(workspace), "--check").exit_code == 0


@pytest.mark.parametrize("state", ["changed", "old"])
def test_a_section_that_is_there_is_left_and_that_is_said(state: str, workspace: Path, run: Run) -> None:
    file = given(workspace, state)
    before = file.stat()
    result = run("agents-md", str(file), "--write")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{file}: {TEXTS[state][1]}: it is left as it is; ")
    assert file.read_text() == TEXTS[state][0]
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_the_mode_stays_as_it_is(mode: int, workspace: Path, run: Run) -> None:
    file = given(workspace, "absent")
    file.chmod(mode)
    assert run("agents-md", str(workspace), "--write").exit_code == 0
    assert file.stat().st_mode & 0o7777 == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_stays_its_owners_when_root_writes_it(workspace: Path, run: Run) -> None:
    file = given(workspace, "absent")
    os.chown(file, NOBODY, NOBODY)
    assert run("agents-md", str(workspace), "--write").exit_code == 0
    assert (file.stat().st_uid, file.stat().st_gid) == (NOBODY, NOBODY)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_is_followed_and_stays(is_there: bool, workspace: Path, tmp_path: Path, run: Run) -> None:
    shared = tmp_path / "shared.md"
    if is_there:
        shared.write_text(RULES)
    link = workspace / "AGENTS.md"
    link.symlink_to(Path("..") / "shared.md")
    assert run("agents-md", str(workspace), "--write").exit_code == 0
    assert str(link.readlink()) == "../shared.md"
    assert shared.read_text() == (f"{RULES}\n{SECTION}" if is_there else SECTION)


# ── refused ──


@pytest.mark.parametrize("name", ["MEMORY.md", "memory.md", "Memory.MD"])
@pytest.mark.parametrize("how", [[], ["--write"], ["--check"], ["--json"]])
def test_the_agents_own_memory_is_never_touched(name: str, how: list[str], workspace: Path, run: Run) -> None:
    result = run("agents-md", str(workspace / name), *how)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is the agent's own memory" in result.stderr
    assert "belongs in AGENTS.md" in result.stderr


def test_also_not_by_way_of_a_link(workspace: Path, run: Run) -> None:
    (workspace / "AGENTS.md").symlink_to("MEMORY.md")
    result = run("agents-md", str(workspace), "--write")
    assert (result.exit_code, "is the agent's own memory" in result.stderr) == (2, True)


@pytest.mark.parametrize("path", ["nowhere", "nowhere/", "nowhere.md/", "nowhere/AGENTS.md"])
@pytest.mark.parametrize("how", [[], ["--write"], ["--check"]])
def test_a_folder_that_is_not_there_is_not_made(path: str, how: list[str], workspace: Path, run: Run) -> None:
    result = run("agents-md", f"{workspace}/{path}", *how)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "name the agent's workspace, or its AGENTS.md" in " ".join(result.stderr.split())
    assert [file.name for file in workspace.iterdir()] == ["MEMORY.md"]


def test_a_file_that_is_no_markdown_is_left_alone(workspace: Path, run: Run) -> None:
    (workspace / "notes.txt").write_text(RULES)
    result = run("agents-md", str(workspace / "notes.txt"), "--write")
    assert (result.exit_code, "is neither a folder nor a Markdown file" in result.stderr) == (2, True)
    assert (workspace / "notes.txt").read_text() == RULES


def test_to_check_and_to_write_are_two_things(workspace: Path, run: Run) -> None:
    assert run("agents-md", str(workspace), "--check", "--write").exit_code == 2
    assert not (workspace / "AGENTS.md").exists()


def test_what_is_not_utf_8_text_is_refused(workspace: Path, run: Run) -> None:
    file = workspace / "AGENTS.md"
    file.write_bytes(RULES.encode("utf-16"))
    result = run("agents-md", str(workspace), "--write")
    assert (result.exit_code, result.stderr) == (
        1,
        f"offbook: {file} is not text in UTF-8: save it as UTF-8, then run this again\n",
    )
    assert file.read_bytes() == RULES.encode("utf-16")


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop"])
def test_what_is_no_file_is_not_waited_for(kind: str, workspace: Path, run: Run) -> None:
    file = workspace / "AGENTS.md"
    {"folder": file.mkdir, "pipe": lambda: os.mkfifo(file), "loop": lambda: file.symlink_to(file.name)}[kind]()
    result = run("agents-md", str(workspace), "--write")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"offbook: {file}")
    assert len(result.stderr.splitlines()) == 1


# ── what can go wrong ──


def as_nobody(*arguments: str) -> tuple[int, str]:
    """The exit status and what is told, of the command run by somebody who is not root."""
    # Another user may not reach this interpreter: load first, then step down.
    step_down = f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})" if os.geteuid() == 0 else ""
    program = (
        "import os, offbook.cli, offbook.cli.connect, offbook.cli.output, offbook.context.agents_md\n"
        f"{step_down}\n"
        f"offbook.cli.root({list(arguments)!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that everybody can reach: pytest's are their owner's only."""
    made = Path(tempfile.mkdtemp(prefix="ob"))
    made.chmod(0o755)
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


def test_a_folder_that_is_closed_to_us_is_told(open_to_all: Path) -> None:
    file = given(open_to_all, "absent")
    file.chmod(0o666)
    open_to_all.chmod(0o555)
    status, told = as_nobody("agents-md", str(open_to_all), "--write")
    assert status == 1
    assert told.startswith(f"offbook: {file} cannot be written (Permission denied): ")
    assert "add by hand what `offbook agents-md` prints" in told
    assert file.read_text() == RULES


def test_a_file_that_is_closed_to_us_is_not_replaced(open_to_all: Path) -> None:
    file = given(open_to_all, "absent")
    file.chmod(0o444)
    open_to_all.chmod(0o777)
    status, told = as_nobody("agents-md", str(open_to_all), "--write")
    assert (status, "cannot be written (no permission to write)" in told) == (1, True)
    assert (file.read_text(), file.stat().st_mode & 0o777) == (RULES, 0o444)


def test_a_file_we_may_not_read_is_told(open_to_all: Path) -> None:
    file = given(open_to_all, "absent")
    file.chmod(0o000)
    assert as_nobody("agents-md", str(open_to_all)) == (1, f"offbook: {file}: Permission denied\n")


def test_a_full_disk_leaves_the_file_as_it_was(workspace: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    file = given(workspace, "absent")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = run("agents-md", str(workspace), "--write")
    assert (result.exit_code, "cannot be written (No space left on device)" in result.stderr) == (1, True)
    assert file.read_text() == RULES


def test_what_somebody_else_writes_meanwhile_is_not_lost(
    workspace: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = given(workspace, "absent")
    filled = connect._fill_file

    def slowly(unfinished: Path, content: bytes, *, like: Path) -> None:
        filled(unfinished, content, like=like)
        file.write_text("The agent was quicker.\n")

    monkeypatch.setattr(connect, "_fill_file", slowly)
    result = run("agents-md", str(workspace), "--write")
    assert (result.exit_code, "was changed just now by somebody else: run this again" in result.stderr) == (1, True)
    assert file.read_text() == "The agent was quicker.\n"
