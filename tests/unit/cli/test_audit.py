from __future__ import annotations

import json

import apsw
import pytest

from offbook.cli.audit import described
from offbook.model.home import Home
from offbook.model.types import Fault
from tests.unit.cli.conftest import Run


def tamper(home: Home, *statements: str) -> None:
    connection = apsw.Connection(str(home.database))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_all_agents_are_verified_without_a_provider(run: Run, stored: Home) -> None:
    result = run("audit", "--verify")
    assert result.exit_code == 0
    assert "everything is as it was written" in result.stdout
    document = json.loads(run("audit", "--verify", "--json").stdout)
    assert document["verified"] is True
    assert set(document["heads"]) == {"main", "second"}


def test_one_agent_is_verified(run: Run, stored: Home) -> None:
    assert set(json.loads(run("audit", "--verify", "second", "--json").stdout)["heads"]) == {"second"}
    assert set(json.loads(run("audit", "--verify", "--agent", "main", "--json").stdout)["heads"]) == {"main"}


def test_a_fault_is_placed_and_is_exit_status_1(run: Run, stored: Home) -> None:
    tamper(stored, "UPDATE messages SET content = '\"forged\"' WHERE seq = 4")
    result = run("audit", "--verify")
    assert result.exit_code == 1
    assert "fault: message was altered after it was written (agent main, session chat, #4)" in result.stdout


def test_a_log_that_went_on_elsewhere_is_not_called_whole(run: Run, stored: Home) -> None:
    """As after a move to PostgreSQL, or where its newest part was lost: what is left of it verifies."""
    head = stored.database.with_suffix(".head")
    installation, events = head.read_text().split()
    head.write_text(f"{installation} {int(events) + 3:020}\n")
    result = run("audit", "--verify")
    assert result.exit_code == 1
    assert "lost its newest part (3 of " in result.stderr
    assert "store.url" in result.stderr


def test_a_noted_head_is_found_or_missed(run: Run, stored: Home) -> None:
    head = json.loads(run("audit", "--verify", "--json").stdout)["heads"]["main"]["hash"]
    found = run("audit", "--verify", "--head", head.upper())
    assert found.exit_code == 0
    assert f"{head} is event 10 of agent main" in found.stdout
    missed = run("audit", "--verify", "--head", "0" * 64)
    assert missed.exit_code == 1
    assert "not in the chain" in missed.stdout


@pytest.mark.parametrize(
    ("arguments", "exit_code", "told"),
    [
        (["--verify", "--session", "chat"], 2, "whole chains"),
        (["--head", "0" * 64], 2, "--verify"),
        (["--verify", "--head", "5d1c"], 2, "64 hexadecimal digits"),
        (["--since", "yesterday"], 2, "2026-01-31T12:00"),
        (["-n", "0"], 2, "0"),
    ],
)
def test_a_wrong_command_line_is_told(arguments: list[str], exit_code: int, told: str, run: Run) -> None:
    result = run("audit", *arguments)
    assert result.exit_code == exit_code
    assert told in result.stderr


def test_nothing_to_verify_is_told_and_makes_nothing(run: Run, home: Home) -> None:
    result = run("audit", "--verify")
    assert result.exit_code == 1
    assert "does not exist" in result.stderr
    assert not home.folder.exists()


def test_an_unknown_agent_is_told_with_those_there_are(run: Run, stored: Home) -> None:
    result = run("audit", "--verify", "nobody")
    assert result.exit_code == 1
    assert "main, second" in result.stderr


def test_a_fault_without_a_place_is_what_it_is() -> None:
    assert described(Fault(what="the file is torn")) == "the file is torn"
