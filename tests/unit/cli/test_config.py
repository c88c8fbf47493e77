from __future__ import annotations

import json

import pytest

from offbook.model.home import Home
from tests.unit.cli.conftest import Run


def test_every_setting_is_listed_with_its_origin(run: Run, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.folder.mkdir()
    home.config.write_text("minScore = 0.5\n")
    monkeypatch.setenv("OFFBOOK_PORT", "0")
    rows = {row["name"]: row for row in json.loads(run("config", "--json").stdout)}
    assert (rows["minScore"]["value"], rows["minScore"]["origin"]) == (0.5, f"file {home.config}")
    assert (rows["server.port"]["value"], rows["server.port"]["origin"]) == (0, "environment OFFBOOK_PORT")
    assert rows["session.interruptedGap"]["value"] == "2h"
    assert len(run("config").stdout.splitlines()) == len(rows) + 1
    changed = run("config", "--changed").stdout
    assert len(changed.splitlines()) == 3


@pytest.mark.parametrize("name", ["server.port", "port"])
def test_one_setting_is_told_with_what_it_is_for(name: str, run: Run) -> None:
    output = run("config", name).stdout
    assert "server.port = 8770" in output
    assert "from: default" in output
    assert json.loads(run("config", name, "--json").stdout)["value"] == 8770


def test_a_group_is_its_settings(run: Run) -> None:
    assert {line.split(".")[0] for line in run("config", "server").stdout.splitlines()[1:]} == {"server"}


def test_a_group_in_which_nothing_changed_is_no_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("config", "server", "--changed")
    assert (result.exit_code, result.stdout) == (0, "every setting has its default\n")
    assert json.loads(run("config", "server", "--changed", "--json").stdout) == []
    monkeypatch.setenv("OFFBOOK_PORT", "0")
    assert [row["name"] for row in json.loads(run("config", "server", "--changed", "--json").stdout)] == ["server.port"]


def test_an_unknown_name_is_told_with_the_one_that_was_meant(run: Run) -> None:
    result = run("config", "servr.port")
    assert result.exit_code == 1
    assert "did you mean server.port?" in result.stderr


def test_nothing_changed_is_said(run: Run) -> None:
    assert run("config", "--changed").stdout == "every setting has its default\n"


def test_the_path_is_told_without_making_anything(run: Run, home: Home) -> None:
    assert run("config", "--path").stdout == f"{home.config}\n"
    assert json.loads(run("config", "--path", "--json").stdout) == {"path": str(home.config), "exists": False}
    assert not home.folder.exists()
