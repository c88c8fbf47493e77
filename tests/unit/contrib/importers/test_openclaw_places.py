from __future__ import annotations

from pathlib import Path

import pytest

from offbook.model.errors import NotFound
from offbook.openclaw.places import Agent, folder_with_agents, state_folder, transcript_files
from tests.unit.contrib.importers.openclaw_state import State

WHEN = "2025-10-09T09-00-00.000Z"


@pytest.fixture
def nobody_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_the_folder_is_the_one_given_then_the_variables_then_the_default(nobody_home: Path) -> None:
    given, named, default = (nobody_home / name for name in ("given", "named", ".openclaw"))
    for folder in (given, named, default):
        (folder / "agents").mkdir(parents=True)
    environ = {"OPENCLAW_STATE_DIR": str(named)}
    assert folder_with_agents(str(given), environ) == given
    assert folder_with_agents(None, environ) == named
    assert folder_with_agents(None, {}) == default


def test_a_folder_that_is_not_there_is_named_with_what_to_set(nobody_home: Path) -> None:
    with pytest.raises(NotFound, match=r"\.openclaw \(the default\) is not there.*--state DIR or OPENCLAW_STATE_DIR"):
        folder_with_agents(None, {})


def test_the_folder_is_the_one_that_the_host_itself_takes(nobody_home: Path) -> None:
    moved = nobody_home / "svc"
    (moved / ".openclaw" / "agents").mkdir(parents=True)
    environ = {"OPENCLAW_STATE_DIR": " undefined ", "OPENCLAW_HOME": str(moved)}
    assert state_folder(environ) == folder_with_agents(None, environ) == moved / ".openclaw"
    assert state_folder({"OPENCLAW_HOME": "null"}) == nobody_home / ".openclaw"
    with pytest.raises(NotFound, match=r"\(OPENCLAW_HOME\) is not there"):
        folder_with_agents(None, {"OPENCLAW_HOME": str(nobody_home / "gone")})


def test_another_profile_is_told(nobody_home: Path) -> None:
    (nobody_home / ".openclaw-work" / "agents").mkdir(parents=True)
    with pytest.raises(NotFound, match=r"there is .*\.openclaw-work"):
        folder_with_agents(None, {})


def test_a_folder_of_something_else_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"\(--state\) has no folder `agents`"):
        folder_with_agents(str(tmp_path), {})


def test_every_kind_of_transcript_is_found_and_nothing_else(state: State) -> None:
    named = {
        "a.jsonl": "a",
        "a-topic-9.jsonl": "a-topic-9",
        f"b.jsonl.reset.{WHEN}": "b",
        f"c.jsonl.deleted.{WHEN}": "c",
        f"c.jsonl.deleted.{WHEN}.zst": "c",
        f"d.jsonl.deleted.{WHEN}.{'0' * 32}.zst": "d",
        "e.jsonl.bak.2025-10-09T09-00-00Z": "e",
    }
    others = [
        "sessions.json",
        "sessions.json.bak.1",
        "a.trajectory.jsonl",
        "a.trajectory-path.json",
        "a.checkpoint.0b0e7b06-7e9c-4de8-8ece-a6cc90671e0f.jsonl",
        f"c.jsonl.deleted.{WHEN}.zst.5f.tmp",
        "notes.txt",
    ]
    for name in [*named, *others]:
        (state.sessions / name).write_text("")
    cold = state.sessions / "cold" / f"{'a' * 64}.jsonl.zst"
    cold.write_text("")
    (state.sessions / "cold" / "0b0e.tmp.zst").write_text("")
    imported = state.agent / "session-sqlite-import-archive"
    imported.mkdir()
    (imported / "agent_main_main.f.jsonl.imported-1760000000000").write_text("")
    (imported / "agent_main_main.sessions.json.imported-1760000000000").write_text("")
    found = list(transcript_files(Agent("main", state.agent)))
    assert {file.path.name: file.session for file in found if file.session} == named
    assert [file.path for file in found if file.is_cold] == [cold]
    assert [file.path.name for file in found if not file.session and not file.is_cold] == [
        "agent_main_main.f.jsonl.imported-1760000000000"
    ]
