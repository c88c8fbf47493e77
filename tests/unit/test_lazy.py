"""`import offbook` and `offbook --help` load nothing heavy. How long they take, `benchmarks/startup.py` says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY_OF_PYTHON = {"asyncio", "ssl", "http", "urllib.request", "sqlite3", "multiprocessing", "email", "logging"}
"""Of the standard library, what takes more than a few milliseconds."""
PROGRAM = """
import sys
sys.argv = {arguments!r}
try:
    {statement}
except SystemExit as end:
    assert end.code == 0, end.code
sys.stderr.write("\\n".join(sys.modules))
"""
CLI = "from offbook.cli import main; main()"


def loaded_by(statement: str, *arguments: str) -> set[str]:
    program = PROGRAM.format(statement=statement, arguments=["offbook", *arguments])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines())


def third_party(modules: set[str]) -> set[str]:
    """Their packages, without what an environment loads by itself at every start."""
    bare = {name.partition(".")[0] for name in loaded_by("pass")}
    return {name.partition(".")[0] for name in modules} - bare - set(sys.stdlib_module_names) - {"offbook"}


def test_importing_the_package_loads_the_package_and_nothing_more() -> None:
    loaded = loaded_by("import offbook")
    assert third_party(loaded) == set()
    assert {name for name in loaded if name.startswith("offbook")} == {"offbook"}
    assert not loaded & {*HEAVY_OF_PYTHON, "typing", "re"}


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_loads_what_reads_the_command_line_and_nothing_more(argument: str) -> None:
    loaded = loaded_by(CLI, argument)
    assert third_party(loaded) == {"click"}
    assert "asyncio" not in loaded
    assert own_modules(loaded) == {"root", "options"}


def test_help_of_a_command_loads_its_module_and_what_makes_its_options() -> None:
    loaded = loaded_by(CLI, "recall", "--help")
    assert third_party(loaded) <= {"click", "msgspec", "typing_extensions"}
    assert "asyncio" not in loaded
    assert own_modules(loaded) == {"root", "options", "recall", "output", "verb_command"}


def own_modules(loaded: set[str]) -> set[str]:
    return {name.removeprefix("offbook.cli.") for name in loaded if name.startswith("offbook.cli.")}


def test_help_loads_nothing_heavy_of_python() -> None:
    assert not loaded_by(CLI, "--help") & HEAVY_OF_PYTHON


def test_no_command_loads_anything_heavy_before_it_runs() -> None:
    """Its module is loaded for its `--help`, and for every completion of a command line."""
    statement = "from offbook.cli.root import COMMANDS, root; [root.get_command(None, name) for name in COMMANDS]"
    assert third_party(loaded_by(statement)) <= {"click", "msgspec", "typing_extensions"}


def test_a_name_of_the_package_loads_when_it_is_used() -> None:
    assert "msgspec" in third_party(loaded_by("import offbook; offbook.Client"))


FIRST_TURN = """
import asyncio, sys
from datetime import timedelta
from pathlib import Path
from offbook.api.daemon import load_for_turns
from offbook.api.embedded import open_memory
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding, TurnSettings
from offbook.model.types import Message

async def main():
    settings = Settings(embedding=Embedding(model="none"), turn=TurnSettings(deadline=timedelta(seconds=60)))
    async with open_memory(Path(sys.argv[1]), settings=settings, environ={}) as memory:
        if sys.argv[2] == "live":
            await memory.on_message(memory.scope("a"), [Message(role="user", content="My cat is called Ada.")])
            while (await memory.ping()).backlog:
                await asyncio.sleep(0.02)
            return
        load_for_turns()
        before = set(sys.modules)
        turn = await memory.prepare_turn(memory.scope("b"), "What is my cat called?")
        assert "Ada" in turn.recall
        assert set(sys.modules) == before, set(sys.modules) - before

asyncio.run(main())
"""


def test_after_a_start_the_first_turn_loads_nothing_any_more(tmp_path: Path) -> None:
    for part in ("live", "turn"):
        arguments = [sys.executable, "-c", FIRST_TURN, str(tmp_path / "home"), part]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr
