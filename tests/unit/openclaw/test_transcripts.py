"""The newest sessions of every agent, from the host's own databases, which are not touched."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from offbook.openclaw.examination import newest_sessions
from offbook.openclaw.transcripts import Database, Event
from tests.unit.openclaw.hosted import transcript


class Message(dict[str, Any]):
    """One that can be watched."""


def test_the_newest_first_and_so_many_of_each_agent(tmp_path: Path) -> None:
    transcript(tmp_path, "main", {f"agent:main:{n}": [(f"m{n}", "user")] for n in range(5)})
    transcript(tmp_path, "second", {"agent:second:x": [("s1", "user"), ("s2", "assistant")], "empty": []})
    sessions, faults = newest_sessions(tmp_path, 3)
    assert faults == []
    assert [each.session_key for each in sessions] == [
        "agent:main:4",
        "agent:main:3",
        "agent:main:2",
        "agent:second:x",
    ]
    assert [(entry.entry_id, entry.role) for entry in sessions[3].entries] == [("s1", "user"), ("s2", "assistant")]
    assert sessions[3].agent_id == "second"


def test_what_was_said_is_not_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transcript(tmp_path, "main", {"k": [(f"m{n}", "user") for n in range(5)]})
    alive: list[weakref.ref[Message]] = []
    most = 0

    def events(*_: object) -> Iterator[Event]:
        nonlocal most
        for number in range(5):
            message = Message(role="user")
            alive.append(weakref.ref(message))
            yield Event(str(number), message, None, 1, "w")
            del message
            most = max(most, sum(each() is not None for each in alive))

    monkeypatch.setattr(Database, "events", events)
    ((session,), _) = newest_sessions(tmp_path, 3)
    assert (len(session.entries), most) == (5, 1)


def test_reading_leaves_nothing_behind(tmp_path: Path) -> None:
    path = transcript(tmp_path, "main", {"k": [("a", "user")]})
    before = sorted(each.name for each in path.parent.iterdir())
    newest_sessions(tmp_path, 3)
    assert sorted(each.name for each in path.parent.iterdir()) == before


def test_a_database_that_is_none_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    transcript(tmp_path, "main", {"k": [("a", "user")]})
    broken = tmp_path / "agents" / "broken" / "agent" / "openclaw-agent.sqlite"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"no database at all" * 100)
    sessions, faults = newest_sessions(tmp_path, 3)
    assert [each.agent_id for each in sessions] == ["main"]
    assert [str(broken) in fault for fault in faults] == [True]


def test_no_host_at_all(tmp_path: Path) -> None:
    assert newest_sessions(tmp_path, 3) == ([], [])
