"""Whatever is damaged is named and passed over; nothing of the host is changed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from offbook.openclaw import transcripts
from offbook.openclaw.catalogue import Catalogue
from offbook.openclaw.places import Agent
from offbook.openclaw.transcripts import Damage, Database, Event
from tests.unit.contrib.importers.openclaw_state import State, add_events, compressed, head, said, text
from tests.unit.contrib.importers.test_openclaw_catalogue import messages_of

DAMAGED = [
    "{broken",
    "[1]",
    json.dumps({"type": "message", "id": "x"}),
    json.dumps({"type": "message", "id": "x", "message": {"content": "no role"}}),
    "[" * 100_000,
]


@pytest.mark.parametrize("line", DAMAGED, ids=["broken", "list", "empty", "roleless", "deep"])
def test_a_damaged_line_is_named_and_the_rest_is_read(state: State, line: str) -> None:
    (state.sessions / "s.jsonl").write_text(text(head("s"), said("1", "a"), line, said("2", "b")))
    damages: list[Damage] = []
    assert messages_of(state, damages) == {"agent:main:archived:s": ["1", "2"]}
    assert [damage.where for damage in damages] == ["agents/main/sessions/s.jsonl line 3"]


def test_bytes_that_are_no_text(state: State) -> None:
    content = text(head("s"), said("1", "a")).encode() + b'{"type":"message","x":"\xff"}\n'
    (state.sessions / "s.jsonl").write_bytes(content)
    damages: list[Damage] = []
    assert messages_of(state, damages) == {"agent:main:archived:s": ["1"]}
    assert [damage.where for damage in damages] == ["agents/main/sessions/s.jsonl line 3"]


def test_a_line_without_an_end_does_not_fill_the_memory(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "LONGEST_EVENT_BYTES", 1_000)
    (state.sessions / "s.jsonl").write_text(text(head("s"), "x" * 200_000, said("1", "a")))
    damages: list[Damage] = []
    assert messages_of(state, damages) == {"agent:main:archived:s": ["1"]}
    assert [damage.reason for damage in damages] == ["longer than 1,000 bytes"]


def test_a_damaged_row_is_named_and_the_rest_is_read(state: State) -> None:
    state.store("s", "agent:main:main", said("1", "a"), "{broken", said("2", "b"))
    connection = state.connect()
    list(connection.execute("INSERT INTO transcript_events VALUES ('s', 7, NULL, 0, x'00112233', 9)"))
    list(connection.execute("INSERT INTO transcript_events VALUES ('s', 8, NULL, 0, NULL, 9)"))
    connection.close()
    damages: list[Damage] = []
    assert messages_of(state, damages) == {"agent:main:main": ["1", "2"]}
    assert [damage.where.split()[-1] for damage in damages] == ["1", "7", "8"]


def test_a_damaged_archive_is_named_and_the_others_are_read(state: State) -> None:
    name = "jsonl.deleted.2025-10-09T09-00-00.000Z.zst"
    (state.sessions / f"bad.{name}").write_bytes(b"not zstd at all")
    (state.sessions / f"good.{name}").write_bytes(compressed(head("good"), said("1", "a")))
    damages: list[Damage] = []
    assert messages_of(state, damages) == {"agent:main:archived:good": ["1"]}
    assert [damage.is_whole for damage in damages] == [True]


def test_a_file_that_is_no_database_is_named_and_the_files_are_read(state: State) -> None:
    state.database.parent.mkdir()
    state.database.write_bytes(b"no database" * 1_000)
    (state.sessions / "s.jsonl").write_text(text(head("s"), said("1", "a")))
    damages: list[Damage] = []
    assert messages_of(state, damages) == {"agent:main:archived:s": ["1"]}
    assert damages[0].where == "agents/main/agent/openclaw-agent.sqlite"


@pytest.mark.parametrize("cut", [r"cut \ud83d", r"\uD83D", r"\udf89 end", r"a \ud83dx b", r"\ud83d\ud83d"])
def test_half_a_character_becomes_a_sign_for_it(cut: str) -> None:
    message = r'{"role":"user","meta":"\ud83c\udf89","content":"' + cut + '"}'
    found = transcripts.event_of('{"type":"message","id":"1","message":' + message + "}", "here", "own")
    assert isinstance(found, Event)
    assert found.message["content"] == re.sub(r"\\u[dD]...", "\ufffd", cut)
    assert found.message["meta"] == "🎉"


def test_entries_of_the_oldest_hosts_have_no_id_and_get_the_same_one_each_time(state: State) -> None:
    (state.sessions / "s.jsonl").write_text(text(head("s"), said(None, "a"), said(None, "b")))
    assert messages_of(state) == messages_of(state) == {"agent:main:archived:s": ["s:2", "s:3"]}


# ── what is not ours is left as it is ──


def beside(path: Path) -> dict[str, tuple[int, int]]:
    return {each.name: (each.stat().st_size, each.stat().st_mtime_ns) for each in path.parent.iterdir()}


def test_a_database_that_nobody_has_open_is_left_without_a_trace(state: State) -> None:
    state.store("s", "agent:main:main", said("1", "a"))
    before = beside(state.database)
    assert list(before) == ["openclaw-agent.sqlite"]
    assert messages_of(state) == {"agent:main:main": ["1"]}
    assert beside(state.database) == before


def test_what_a_running_host_has_not_yet_moved_into_its_file_is_read(state: State) -> None:
    host = state.connect()
    host.pragma("wal_autocheckpoint", 0)
    add_events(host, "s", "agent:main:main", said("1", "a"))
    catalogue = Catalogue(state.folder, Agent("main", state.agent))
    names = set(beside(state.database))
    assert [session.key for session in catalogue.sessions()] == ["agent:main:main"]
    add_events(host, "t", "agent:main:other", said("2", "written while we read"))
    catalogue.close()
    assert messages_of(state) == {"agent:main:main": ["1"], "agent:main:other": ["2"]}
    assert set(beside(state.database)) == names
    host.close()


def test_a_host_that_starts_while_we_read_is_noticed(state: State) -> None:
    state.store("s", "agent:main:main", said("1", "a"))
    database = Database(state.database)
    assert database.is_immutable
    assert not database.was_changed()
    state.store("t", "agent:main:other", said("2", "b" * 10_000))
    assert database.was_changed()
    database.close()
