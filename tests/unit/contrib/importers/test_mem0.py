from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.contrib.importers.reading_files import read, texts, write_json

ALEX = {
    "id": "f4cbdb08",
    "memory": "Alex is planning a trip to San Francisco",
    "user_id": "alex",
    "agent_id": None,
    "hash": "7c",
    "metadata": {"type": "plan"},
    "categories": ["travel"],
    "created_at": "2024-07-01T12:00:00.123456-07:00",
    "updated_at": None,
}


@pytest.mark.parametrize("shape", [[ALEX], {"results": [ALEX], "total": 1}, {"memories": [ALEX]}, ALEX])
def test_every_shape_gives_the_same_note(tmp_path: Path, shape: Any) -> None:
    found = read("mem0", write_json(tmp_path / "mem0.json", shape))
    assert list(found.sessions) == ["mem0:alex"]
    [note] = found.only
    assert (note["role"], note["origin"]) == ("user", "memory:mem0")
    assert note["content"] == "Alex is planning a trip to San Francisco"
    assert note["ts"] == "2024-07-01T19:00:00.123456Z"
    assert note["id"].startswith("f4cbdb08:")
    assert note["meta"]["categories"] == ["travel"]
    assert note["meta"]["mem0Id"] == "f4cbdb08"


def test_notes_stand_in_the_order_of_their_times_by_owner(tmp_path: Path) -> None:
    memories = [
        ALEX | {"id": "2", "memory": "later", "created_at": "2024-08-01T00:00:00Z"},
        ALEX,
        ALEX | {"id": "3", "memory": "of an agent", "user_id": None, "agent_id": "helper"},
        {"id": "4", "memory": "of nobody"},
    ]
    found = read("mem0", write_json(tmp_path / "mem0.json", memories))
    assert texts(found.sessions["mem0:alex"]) == [ALEX["memory"], "later"]
    assert set(found.sessions) == {"mem0:alex", "mem0:helper", "mem0:memories"}


def test_a_memory_that_was_rewritten_is_a_note_of_its_own(tmp_path: Path) -> None:
    before = read("mem0", write_json(tmp_path / "a.json", [ALEX])).only[0]
    changed = ALEX | {"memory": "Alex went to Oakland", "updated_at": "2024-09-01T00:00:00Z"}
    after = read("mem0", write_json(tmp_path / "b.json", [changed])).only[0]
    same = read("mem0", write_json(tmp_path / "c.json", [ALEX | {"metadata": {}}])).only[0]
    assert after["id"] != before["id"]
    assert after["ts"] == "2024-09-01T00:00:00.000Z"
    assert same["id"] == before["id"]


def test_a_memory_without_a_text_is_skipped_and_named(tmp_path: Path) -> None:
    found = read("mem0", write_json(tmp_path / "mem0.json", {"results": [{"id": "1"}, 7, ALEX], "relations": [{}]}))
    assert len(found.only) == 1
    assert found.report.total("skipped") == 2
    assert [each.where for each in found.report.problems] == ["mem0.json memory 1", "mem0.json memory 2"]
    assert found.left_out() == {"relations of the graph": 1}


def test_memories_that_say_the_same_are_stored_once_and_the_others_told(tmp_path: Path) -> None:
    tea = {"memory": "Likes tea.", "user_id": "ann"}
    given = [tea, tea, tea | {"id": "1"}, tea | {"id": "1"}, tea | {"id": "2"}, tea | {"user_id": "bea"}]
    found = read("mem0", write_json(tmp_path / "mem0.json", given))
    assert [len(notes) for notes in found.sessions.values()] == [3, 1]
    assert found.left_out() == {"memories that say the same": 2}


def test_agents_that_memories_name_are_told_where_they_are_not_whose_they_become(tmp_path: Path) -> None:
    given = [
        {"memory": "Likes tea.", "user_id": "ann", "agent_id": "helper"},
        {"memory": "Likes rain.", "agent_id": "helper"},
        {"memory": "Likes snow.", "user_id": "ann", "agent_id": ""},
        {"memory": "Likes ice.", "user_id": "ann", "agent_id": "main"},
    ]
    path = write_json(tmp_path / "mem0.json", given)
    found = read("mem0", path)
    assert found.left_out() == {"names of agents of mem0": 2}
    assert "memory of agent main from now on (--agent names another)" in found.report.left_out[0].why
    assert [note["meta"].get("agent_id") for note in found.sessions["mem0:helper"]] == ["helper"]
    assert read("mem0", path, agent_id="helper").left_out() == {"names of agents of mem0": 1}


@pytest.mark.parametrize("content", [b"", b"{", b'{"full_name": "x"}', b"\xff\xfe", b"7"])
def test_what_holds_no_memories_says_what_to_give(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mem0.json"
    path.write_bytes(content)
    found = read("mem0", path)
    assert found.report.unreadable == 1
    assert "get_all" in found.report.problems[0].reason


def test_a_long_owner_is_a_key_that_a_provider_takes(tmp_path: Path) -> None:
    memories = [ALEX | {"user_id": "名" * 500}, ALEX | {"id": "2", "user_id": "名" * 501}, ALEX | {"user_id": "a\0b"}]
    keys = list(read("mem0", write_json(tmp_path / "mem0.json", memories)).sessions)
    assert len(set(keys)) == 3
    assert all(len(key.encode()) <= 512 and "\0" not in key for key in keys)


def test_when_it_was_made_is_kept_only_where_that_is_not_when_it_was_noted(tmp_path: Path) -> None:
    changed = ALEX | {"id": "2", "memory": "Alex went.", "updated_at": "2024-09-01T00:00:00Z"}
    same = ALEX | {"id": "3", "memory": "Alex is back.", "updated_at": "2024-07-01T19:00:00.123456Z"}
    neither = {"id": "4", "user_id": "alex", "memory": "Alex sleeps.", "created_at": "last summer"}
    notes = read("mem0", write_json(tmp_path / "mem0.json", [ALEX, changed, same, neither])).only
    made = {note["meta"]["mem0Id"]: note["meta"].get("createdAt") for note in notes}
    assert made == {"f4cbdb08": None, "2": ALEX["created_at"], "3": None, "4": "last summer"}


def test_times_in_any_unit_are_understood_and_others_are_told(tmp_path: Path) -> None:
    times = [1_715_000_000, 1_715_000_000_000, "1715000000000", "last summer", 10**400]
    memories = [{"id": str(number), "memory": f"note {number}", "created_at": at} for number, at in enumerate(times)]
    found = read("mem0", write_json(tmp_path / "mem0.json", memories))
    told_at = {note["meta"]["mem0Id"]: note.get("ts") for note in found.only}
    noted = "2024-05-06T12:53:20.000Z"
    assert told_at == {"0": noted, "1": noted, "2": noted, "3": None, "4": None}
    assert found.left_out() == {"times that are not understood": 2}
