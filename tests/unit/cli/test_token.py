from __future__ import annotations

import json
import stat

import pytest

from offbook.model.home import Home, TokenBook, token_digest
from tests.unit.cli.conftest import Run


def test_a_token_is_shown_once_and_opens_its_agents(run: Run, home: Home) -> None:
    made = run("token", "create", "laptop", "--agents", "main, researcher,main")
    assert made.exit_code == 0
    secret = made.stdout.strip()
    caller = TokenBook(home).callers()[token_digest(secret)]
    assert caller.agents == {"main", "researcher"}
    assert secret not in home.bound_tokens.read_text()
    assert stat.S_IMODE(home.bound_tokens.stat().st_mode) == 0o600
    listed = run("token", "list").stdout
    assert "laptop" in listed
    assert "main, researcher" in listed
    assert secret not in listed


def test_a_revoked_token_opens_nothing(run: Run, home: Home) -> None:
    secret = json.loads(run("token", "create", "laptop", "--agents", "main", "--json").stdout)["token"]
    assert run("token", "revoke", "laptop").exit_code == 0
    assert token_digest(secret) not in TokenBook(home).callers()
    assert json.loads(run("token", "list", "--json").stdout) == []


@pytest.mark.parametrize(
    ("arguments", "exit_code", "told"),
    [
        (["create", "laptop"], 2, "--agents"),
        (["create", "laptop", "--agents", " , "], 2, "at least one agent"),
        (["create", "lap\ntop", "--agents", "main"], 2, "control characters"),
        (["create", " ", "--agents", "main"], 2, "letters"),
        (["create", "laptop", "--agents", "a" * 200], 1, "the limit is 128"),
        (["revoke", "desktop"], 1, "no token 'desktop'"),
        (["show"], 1, "offbook serve"),
    ],
)
def test_what_cannot_be_done_is_told_and_makes_nothing(
    arguments: list[str], exit_code: int, told: str, run: Run, home: Home
) -> None:
    result = run("token", *arguments)
    assert result.exit_code == exit_code
    assert told in result.stderr
    assert not home.folder.exists()


def test_two_tokens_do_not_share_a_name(run: Run) -> None:
    run("token", "create", "laptop", "--agents", "main")
    again = run("token", "create", "laptop", "--agents", "other")
    assert again.exit_code == 1
    assert "revoke it first" in again.stderr


def test_the_owners_token_is_revealed_only_when_asked(run: Run, home: Home) -> None:
    home.prepare()
    secret = home.owner_token()
    assert run("token", "show").stdout == f"{home.token}\n"
    assert json.loads(run("token", "show", "--json").stdout) == {"path": str(home.token)}
    assert run("token", "show", "--reveal").stdout == f"{secret}\n"


def test_a_damaged_list_of_tokens_is_told(run: Run, home: Home) -> None:
    home.prepare()
    home.bound_tokens.write_text("{")
    result = run("token", "list")
    assert result.exit_code == 1
    assert "mend or remove it" in result.stderr
