"""`maintain`, what `status` says of maintenance, and backups that are rotated, listed and put back as at a moment."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.api.embedded import open_memory
from offbook.cli.upkeep import told_run
from offbook.client.blocking import Client
from offbook.model.home import Home
from offbook.model.maintenance import MaintenanceReport, TaskRun
from offbook.model.types import Message, now
from tests.unit.cli.answering import Answering, status
from tests.unit.cli.conftest import Run

DONE = {
    "agentId": "main",
    "runs": [
        {"task": "index", "agentId": "main", "did": {"indexed": 1200, "waiting": 0}, "seconds": 0.5},
        {"task": "tiers", "agentId": "main", "did": {}, "seconds": 0.0},
    ],
    "health": [],
}
FAILED = {**DONE, "runs": [*DONE["runs"], {"task": "backup", "did": {}, "seconds": 2.0, "error": "no room \x1b[31m"}]}

BROKEN = "wiki/main/lessons/lesson-0001.md: it has no statement"


def answering(monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]) -> list[tuple[Any, str | None]]:
    asked: list[tuple[Any, str | None]] = []

    def maintain(self: Client, *, tasks: Any, agent_id: str | None) -> MaintenanceReport:
        asked.append((tasks, agent_id))
        return msgspec.convert(answer, MaintenanceReport)

    monkeypatch.setattr(Client, "maintain", maintain)
    monkeypatch.setattr(Client, "status", lambda self, agent_id=None: {"agents": ["ada", "bea"]})
    return asked


def test_what_was_done_is_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answering(monkeypatch, DONE)
    result = run("maintain", "ada", "--task", "index", "--task", "tiers")
    assert result.exit_code == 0, result.stderr
    assert asked == [(("index", "tiers"), "ada")]
    assert "1,200 indexed" in result.stdout
    assert "nothing to do" in result.stdout
    assert "waiting" not in result.stdout


def test_a_name_that_nobody_has_is_refused_with_those_there_are(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answering(monkeypatch, DONE)
    for arguments in (["typo"], ["--agent", "typo"]):
        result = run("maintain", *arguments)
        assert result.exit_code == 2
        assert "there is no agent 'typo'; there is: ada, bea" in result.stderr
    assert asked == []


def test_one_of_a_kind_is_said_as_one() -> None:
    did = {"lessons": 1, "session logs": 1, "cold pages": 2, "edits taken": 1, "pages not understood": 1, "waiting": 0}
    run = TaskRun(task="wiki", did=did, seconds=0.0)
    assert told_run(run) == "1 lesson, 1 session log, 2 cold pages, 1 edit taken, 1 page not understood"


def test_what_waits_for_a_person_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = {"task": "wiki", "did": {"pages not understood": 1}, "seconds": 0.1, "waits": [BROKEN]}
    answering(monkeypatch, {**DONE, "runs": [waits]})
    assert BROKEN in run("maintain").stderr
    assert json.loads(run("maintain", "--json").stdout)["runs"][0]["waits"] == [BROKEN]


def test_one_that_failed_is_told_and_is_the_exit_status(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answering(monkeypatch, FAILED)
    result = run("maintain", "--agent", "bea")
    assert result.exit_code == 1
    assert "backup failed: no room" in result.stdout
    assert "\x1b[31m" not in result.stdout
    as_json = run("maintain", "--json")
    assert as_json.exit_code == 1
    assert [run["task"] for run in json.loads(as_json.stdout)["runs"]] == ["index", "tiers", "backup"]
    assert asked == [(None, "bea"), (None, None)]


def task(name: str, **fields: Any) -> dict[str, Any]:
    return {"task": name, "runs": 1, "failures": 0, "did": {}} | fields


def test_status_tells_of_tasks_that_fail(run: Run, provider: Answering) -> None:
    failing = task("wiki", failures=4, error="the disk is full", lastSuccess="2026-01-31T12:00:00Z")
    provider.with_answers("status", status() | {"maintenance": [task("index"), failing]})
    result = run("status")
    assert "maintenance   1 of 2 tasks failing" in result.stdout
    assert "wiki fails (4 times in a row, last done at 2026-01-31" in result.stderr
    provider.with_answers("status", status() | {"maintenance": [task("index", lastRun="2026-01-31T12:00:00Z")]})
    result = run("status")
    assert "maintenance   1 task, last at 2026-01-31" in result.stdout
    assert result.stderr == ""
    broken = task("wiki", did={"pages not understood": 2}, waits=[BROKEN])
    provider.with_answers("status", status() | {"maintenance": [broken]})
    told_so = run("status").stderr
    assert "2 pages of lessons in the wiki not understood" in told_so
    assert BROKEN in told_so
    provider.with_answers("status", status())  # a provider of an older version says nothing of it
    assert "maintenance" not in run("status").stdout


# ── backups ──


@pytest.fixture
def stored(home: Home) -> Home:
    async def store() -> None:
        async with open_memory(home.folder) as memory:
            await memory.on_message(memory.scope("chat"), [Message(role="user", content="hello 🐘")])

    asyncio.run(store())
    return home


def test_rotating_keeps_the_newest(run: Run, stored: Home) -> None:
    stored.config.write_text("[backup]\nkeep = 2\n")
    made = [json.loads(run("backup", "--rotate", "--json").stdout) for _ in range(3)]
    assert [len(each["removed"]) for each in made] == [0, 0, 1]
    left = json.loads(run("backup", "--list", "--json").stdout)
    assert [each["file"] for each in left["backups"]] == [each["file"] for each in made[1:]]
    assert left["elsewhere"] == []
    assert f"removed: {Path(made[1]['file']).name}" in run("backup", "--rotate").stdout


def test_the_list_knows_of_those_elsewhere(run: Run, stored: Home, tmp_path: Path) -> None:
    assert "no backups are known" in run("backup", "--list").stdout
    assert run("backup", str(tmp_path / "made.tar.gz")).exit_code == 0
    assert run("backup", "--rotate").exit_code == 0
    shown = run("backup", "--list").stdout
    assert "made.tar.gz" in shown
    assert str(stored.backups) in shown
    (tmp_path / "made.tar.gz").unlink()
    assert "not there" in run("backup", "--list").stdout
    for arguments in (["--list", "--rotate"], ["--rotate", "x.tar.gz"], ["--list", "x.tar.gz"]):
        assert run("backup", *arguments).exit_code == 2


def test_a_restore_as_at_a_moment_says_what_was_cut(run: Run, stored: Home, tmp_path: Path) -> None:
    then = now()
    time.sleep(0.01)

    async def more() -> None:
        async with open_memory(stored.folder) as memory:
            await memory.on_message(memory.scope("chat"), [Message(role="user", content="later")])
            await memory.on_message(memory.scope("x", "bea"), [Message(role="user", content="another's")])

    asyncio.run(more())
    run("backup", str(tmp_path / "made.tar.gz"))
    result = run("restore", str(tmp_path / "made.tar.gz"), "--at", then.isoformat(), "--home", str(tmp_path / "then"))
    assert result.exit_code == 0, result.output
    assert "cut of agent main: 1 message, 1 audit event" in result.stdout
    assert "cut of agent bea (all of it): 1 message, 1 session" in result.stdout
    assert "everything is as it was written" in result.stdout
    as_json = run(
        *("restore", str(tmp_path / "made.tar.gz"), "--at", then.isoformat(), "--json"),
        *("--home", str(tmp_path / "again")),
    )
    told = json.loads(as_json.stdout)
    assert (told["messages"], [each["messages"] for each in told["cut"]["agents"]]) == (1, [1, 1])
    assert run("audit", "--verify", "--home", str(tmp_path / "then")).exit_code == 0
    refused = run("restore", str(tmp_path / "made.tar.gz"), "--at", "2026-01-01", "--home", str(tmp_path / "then"))
    assert refused.exit_code == 1
    assert "--force" in refused.stderr
    assert run("restore", str(tmp_path / "made.tar.gz"), "--at", "yesterday").exit_code == 2
    assert run("restore", "--resume", "--at", "2026-01-01").exit_code == 2
