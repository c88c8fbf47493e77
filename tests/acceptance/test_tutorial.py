"""Runs the tutorial as a reader would: every block in order, in one shell, against a provider of its own.

`bash` blocks are sourced, `python` blocks are run by `python`; both must succeed. A `text` block after one of
them is what it prints, with `…` for anything: within a line, or as a line of its own for any lines. The examples
of other pages are run the same way; what is not for a test there (`make run`) is a block of `sh`.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.acceptance.daemon import running

PATIENT = {"OFFBOOK_TURN_DEADLINE": "4s", "OFFBOOK_SEARCH_DEADLINE": "4s"}
"""As long as a client waits: a model that is still loading then is done without."""

ONE_PROCESS = {"OFFBOOK_MAINTENANCE_OWN_PROCESS": "false"}
"""A second interpreter for each page takes longer than most of them. The tutorial has it."""

REPOSITORY = Path(__file__).parents[2]
BLOCK_SECONDS = 60.0
HOW_TOS = [
    "python",
    "hot-swap",
    "prepare-turns",
    "any-host-over-http",
    "recall",
    "pins-tiers-and-ttl",
    "cross-agent",
    "rebuild-the-index",
    "tokens-for-agents",
]
END = "=== end of block, status "

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_JOB_NOTICE = re.compile(r"^\S+: line \d+: +\d+ (?:Terminated|Killed)\b.*\n(?: +.*\n)*", re.MULTILINE)
"""What a shell without a terminal says of a process that a signal ended; with one it says so at the prompt."""


class Step(NamedTuple):
    line: int
    language: str
    source: str
    printed: str | None

    @property
    def prints_in_background(self) -> bool:
        """What waits a while at its end waits for what something before it prints."""
        return re.search(r"\bsleep[ (]0\)?$", self.source) is not None


def steps(page: str) -> Iterator[Step]:
    blocks = list(_BLOCK.finditer(page))
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        language, source = block.groups()
        if language in ("text", "toml"):  # settings: tests/unit/docs/test_docs_settings.py reads those
            continue
        assert language in ("bash", "python"), f"a block of {language}, which nothing runs: {source}"
        printed = following[2] if following is not None and following[1] == "text" else None
        yield Step(page.count("\n", 0, block.start()) + 1, language, source, printed)


def patient(page: str) -> str:
    """Who has this machine for themselves waits two seconds for what is printed, and their agent a quarter of one for an
    answer; here others are at work, and `check` waits until it is printed."""
    page = re.sub(r"\bsleep([ (])\d+(?=\)?$)", r"sleep\g<1>0", page, flags=re.MULTILINE)
    return re.sub(r"(HotSwapSession\(.*\bcontext_window=[\d_]+)\)", r"\1, deadline_seconds=20)", page)


def pattern(printed: str) -> re.Pattern[str]:
    """`…` is any text of a line; alone on a line, any lines. Spaces around it may be more than they are here."""
    lines = []
    for line in printed.strip("\n").split("\n"):
        parts = line.split("…")
        starts = [parts[0], *(part.lstrip(" ") for part in parts[1:])]
        words = [re.escape(part) for part in (*(part.rstrip(" ") for part in starts[:-1]), starts[-1])]
        lines.append(r"(?:.*\n)*?" if line == "…" else r".*".join(words) + r"\n")
    return re.compile("".join(lines))


class Shell:
    """One bash for all blocks: what one exports or starts, the next one has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("OFFBOOK_", "BASH_ENV"))}
        environ |= {
            "PATH": f"{Path(sys.executable).parent}:{environ['PATH']}",
            "TMPDIR": str(folder),
            "HOME": str(folder),
            **PATIENT,
        }
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environ,
            cwd=folder,
            text=True,
            start_new_session=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)

    def run(self, step: Step) -> tuple[str, int]:
        """What a block prints, and its exit status."""
        script = self.folder / f"line-{step.line}.sh"
        is_python = step.language == "python"
        script.write_text(f"python - <<'END OF BLOCK'\n{step.source}END OF BLOCK\n" if is_python else step.source)
        assert self._process.stdin is not None
        self._process.stdin.write(f'. {script} < /dev/null; echo "{END}$?"\n')
        self._process.stdin.flush()
        printed = ""
        while True:
            line = self.next_line()
            if line is None:
                pytest.fail(f"the block at line {step.line} did not end; it printed:\n{printed}")
            if END in line:
                before, _, status = line.partition(END)
                return _JOB_NOTICE.sub("", printed + before), int(status)
            printed += line

    def next_line(self) -> str | None:
        """Of what it or something in its background prints; nothing, where that is for long nothing."""
        try:
            return self._lines.get(timeout=BLOCK_SECONDS)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Ends the shell and whatever it started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@pytest.fixture
def shell() -> Iterator[Shell]:
    # Not pytest's folder: the path of a Unix socket may have 107 bytes only.
    folder = Path(tempfile.mkdtemp(prefix="ob"))
    shell = Shell(folder)
    yield shell
    shell.close()
    shutil.rmtree(folder, ignore_errors=True)


def check(shell: Shell, page: str, *, shows_everything: bool) -> None:
    for step in steps(page):
        printed, status = shell.run(step)
        assert status == 0, f"the block at line {step.line} ended with {status}:\n{printed}"
        if step.printed is not None:
            while not pattern(step.printed).fullmatch(printed.rstrip("\n") + "\n"):
                line = shell.next_line() if step.prints_in_background else None
                told = f"the block at line {step.line} should print:\n{step.printed}\nand printed:\n{printed}"
                assert line is not None, told
                printed += line
        elif shows_everything:
            assert printed == "", f"the block at line {step.line} prints what the page does not show:\n{printed}"


@pytest.mark.timeout(300)
def test_the_tutorial_does_what_it_says(shell: Shell) -> None:
    check(shell, patient((REPOSITORY / "docs" / "tutorial.md").read_text(encoding="utf-8")), shows_everything=True)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["README.md", *(f"docs/how-to/{page}.md" for page in HOW_TOS)])
def test_the_examples_of_a_page_work_as_written(shell: Shell, name: str) -> None:
    """With a provider in the default folder, on another port: somebody may have theirs on the usual one."""
    with running(PATIENT | ONE_PROCESS | {"HOME": str(shell.folder)}, home=shell.folder / ".offbook") as daemon:
        page = patient((REPOSITORY / name).read_text(encoding="utf-8").replace(":8770", f":{daemon.port}"))
        check(shell, re.sub(r"^```sh\n.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL), shows_everything=False)


def test_dots_stand_for_anything_and_nothing_else_does() -> None:
    shown = pattern("── … ──\n…  #1     user\n…\nlast (a.b)\n")
    assert shown.fullmatch("── Monday ──\n08:00:00  #1     user\nx\ny\nlast (a.b)\n")
    assert shown.fullmatch("── Monday ──\n08:00:00  #1     user\nlast (a.b)\n")
    assert not shown.fullmatch("── Monday ──\n08:00:00  #2     user\nlast (a.b)\n")
    assert not shown.fullmatch("── Monday ──\n08:00:00  #1     user\nlast (axb)\n")
