from __future__ import annotations

import json
from pathlib import Path

import pytest

from offbook.cli.options import Invocation
from offbook.model.errors import ProviderUnavailable
from tests.unit.cli.conftest import Run
from tests.unit.contrib.importers.openclaw_state import AT_MS, State, said
from tests.unit.contrib.importers.test_openclaw_importing import Provider


class Answering(Provider):
    is_away = False

    def __enter__(self) -> Answering:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def ping(self) -> None:
        if self.is_away:
            raise ProviderUnavailable("no provider answers")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> State:
    state = State(tmp_path / "openclaw")
    events = (said("1", "a"), "{broken", said("2", "b", at_ms=AT_MS + 1))
    state.store("s", "agent:main:main", *events)
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(state.folder))
    return state


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Answering:
    provider = Answering()
    monkeypatch.setattr(Invocation, "client", lambda _, **__: provider)
    return provider


def test_what_was_stored_and_what_was_skipped_is_told(run: Run, state: State, answering: Answering) -> None:
    result = run("import", "openclaw")
    assert result.exit_code == 0
    assert "2 messages: 2 stored, 0 already there" in result.stdout
    assert "! 1 skipped\n" in result.stderr
    assert "agents/main/agent/openclaw-agent.sqlite session s event 1: not an entry" in result.stderr
    again = run("import", "openclaw")
    assert "2 messages: 0 stored, 2 already there" in again.stdout


def test_incognito_sessions_are_counted(run: Run, state: State, answering: Answering) -> None:
    state.store("p", "agent:main:dashboard:incognito-7", said("3", "b"))
    result = run("import", "openclaw")
    assert "incognito sessions" in result.stdout
    assert set(answering.sessions) == {"agent:main:main"}


def test_a_dry_run_says_so(run: Run, state: State, answering: Answering) -> None:
    result = run("import", "openclaw", "--dry-run")
    assert "2 messages: 2 would be stored, 0 already there" in result.stdout
    assert answering.sessions == {}


def test_a_dry_run_needs_no_provider(run: Run, state: State, answering: Answering) -> None:
    answering.is_away = True
    result = run("import", "openclaw", "--dry-run")
    assert result.exit_code == 0
    assert "cannot tell what is stored already" in result.stderr
    assert "not known" in result.stdout


def test_without_a_provider_nothing_is_begun(run: Run, state: State, answering: Answering) -> None:
    answering.is_away = True
    result = run("import", "openclaw")
    assert result.exit_code == 3
    assert "no provider answers" in result.stderr


def test_a_provider_that_goes_away_in_between(run: Run, state: State, answering: Answering) -> None:
    answering._left = 0
    result = run("import", "openclaw")
    assert result.exit_code == 3
    assert "Run this again: nothing is stored twice" in result.stderr


def test_the_report_as_json(run: Run, state: State, answering: Answering) -> None:
    report = json.loads(run("import", "openclaw", "--json").stdout)
    assert report["dryRun"] is False
    assert [(each["agentId"], each["messages"], each["new"], each["skipped"]) for each in report["agents"]] == [
        ("main", 2, 2, 1)
    ]
    assert len(report["problems"]) == 1


def test_only_one_agent_or_session_or_time(run: Run, state: State, answering: Answering) -> None:
    other = State(state.folder, "other")
    other.store("t", "agent:other:main", said("3", "c"))
    other.store("u", "agent:other:side", said("4", "d"))
    plan = ["import", "openclaw", "--dry-run"]
    assert "\n1 message: 1 would" in run(*plan, "--session", "agent:other:side").stdout
    assert "\n4 messages: 4 would" in run(*plan, "--agent", "other", "--agent", "main").stdout
    assert "\n2 messages: 2 would" in run(*plan, "--agent", "other").stdout
    assert "\n2 messages: 2 would" in run("--agent", "other", *plan).stdout
    assert "\n4 messages: 0 would" in run(*plan, "--since", "2026-01-01").stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--agent", "nobody"], "no agent 'nobody'; there is: main"),
        (["--session", "agent:main:mian"], "near it: agent:main:main"),
        (["--since", "yesterday"], "is not a time"),
    ],
)
def test_a_mistake_is_told(run: Run, state: State, answering: Answering, arguments: list[str], told: str) -> None:
    result = run("import", "openclaw", *arguments)
    assert result.exit_code == 2
    assert told in result.stderr


def test_where_there_is_no_host_it_is_told_where_it_was_looked_for(run: Run, tmp_path: Path) -> None:
    result = run("import", "openclaw", "--state", str(tmp_path / "nowhere"))
    assert result.exit_code == 1
    assert f"{tmp_path / 'nowhere'} (--state) is not there" in result.stderr


def test_what_cannot_be_read_at_all_is_a_failure(run: Run, state: State, answering: Answering) -> None:
    (state.sessions / "bad.jsonl.deleted.2025-10-09T09-00-00.000Z.zst").write_bytes(b"not zstd")
    result = run("import", "openclaw")
    assert result.exit_code == 1
    assert "2 messages: 2 stored" in result.stdout
    assert "1 file or database not read to the end" in result.stderr


def test_messages_that_came_after_newer_ones_are_told(run: Run, state: State, answering: Answering) -> None:
    answering.sessions["agent:main:main"] = {"9": {"id": "9", "content": "", "ts": "2027-01-01T00:00:00Z"}}
    result = run("import", "openclaw")
    assert "agent:main:main: 2 messages came after newer ones" in result.stderr
