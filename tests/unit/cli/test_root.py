from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from offbook.cli.options import Invocation
from offbook.cli.root import COMMANDS
from offbook.model.home import Home
from tests.unit.cli.conftest import Run

HEAVY = ["asyncio", "msgspec", "rich", "apsw", "structlog", "uvicorn", "cryptography", "ssl"]
HEAVY += ["numpy", "onnxruntime", "tokenizers"]


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from offbook.cli.root import root\n"
        "root.main(['--help'], standalone_mode=False)\n"
        f"print('loaded:', [name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("loaded: []\n")


def test_help_lists_every_command_and_the_exit_statuses(run: Run) -> None:
    output = run("--help").output
    assert all(f"  {name} " in output for name in COMMANDS)
    assert "3  no provider answers" in output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples_and_the_line_that_is_listed(name: str, run: Run) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert "Example" in result.output
    assert f"offbook {name}" in result.output


def test_an_unknown_command_is_a_usage_error(run: Run) -> None:
    result = run("remember")
    assert result.exit_code == 2
    assert "No such command" in result.stderr


def test_nobody_there_is_exit_status_3_on_stderr_and_makes_no_folder(run: Run, home: Home) -> None:
    result = run("ping")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("offbook: nobody answers at unix://")
    assert "offbook serve" in result.stderr
    assert not home.folder.exists()


@pytest.mark.parametrize("arguments", [("--json", "ping"), ("ping", "--json")])
def test_with_json_an_error_is_a_problem_document(arguments: tuple[str, ...], run: Run) -> None:
    import json

    result = run(*arguments)
    assert (result.exit_code, result.stderr) == (3, "")
    assert json.loads(result.stdout)["type"] == "urn:offbook:problem:provider-unavailable"


def test_each_line_of_an_error_is_ours(run: Run, home: Home) -> None:
    home.folder.mkdir()
    home.config.write_text("nonsense = 1\nrubbish = 2\n")
    result = run("config")
    assert result.exit_code == 1
    assert [line[:9] for line in result.stderr.splitlines()] == ["offbook: "] * 2


def test_an_error_of_the_system_is_one_line(run: Run, home: Home) -> None:
    home.folder.mkdir()
    home.token.mkdir()
    result = run("token", "show", "--reveal")
    assert result.exit_code == 1
    assert result.stderr == f"offbook: {home.token}: Is a directory\n"


def test_an_argument_that_is_not_utf_8_is_refused(run: Run) -> None:
    result = run("log", "\udcff")
    assert result.exit_code == 2
    assert "not valid UTF-8" in result.stderr


# ── whom a command asks ──


@pytest.mark.parametrize("option", ["--agent", "--home", "--url"])
def test_an_option_that_is_empty_does_not_mean_the_default(option: str, run: Run) -> None:
    result = run("status", option, "")
    assert result.exit_code == 2
    assert "it is empty: leave the option out, or say what is meant" in result.stderr


@pytest.mark.parametrize("arguments", [("--url", "nonsense", "ping"), ("ping", "--url", "http://x:port")])
def test_a_url_that_is_none_is_a_usage_error(arguments: tuple[str, ...], run: Run) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Invalid value for '--url': endpoint " in result.stderr


def test_one_of_the_environment_is_not(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFBOOK_URL", "nonsense")
    assert run("ping").exit_code == 1


def test_a_folder_named_wins_over_the_provider_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFBOOK_URL", "http://127.0.0.1:1")
    assert str(Invocation().endpoint) == "http://127.0.0.1:1"
    assert str(Invocation(home_given="/elsewhere").endpoint) == "unix:///elsewhere/offbook.sock"
    assert str(Invocation(home_given="/elsewhere", url_given="http://[::1]:2").endpoint) == "http://[::1]:2"


def test_a_folder_is_absolute_and_a_tilde_is_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/somebody")
    assert Invocation(home_given="data").home.folder == tmp_path / "data"
    assert Invocation(home_given="~/data").home.folder == Path("/somebody/data")


def test_the_agent_comes_from_the_option_else_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Invocation().agent is None
    monkeypatch.setenv("OFFBOOK_AGENT", "researcher")
    assert Invocation().agent == "researcher"
    assert Invocation(agent_given="main").agent == "main"
