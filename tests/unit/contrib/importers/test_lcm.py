from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.contrib.importers import lcm
from tests.unit.contrib.importers.foreign_files import Lcm
from tests.unit.contrib.importers.reading_files import read, texts


@pytest.fixture
def database(tmp_path: Path) -> Lcm:
    return Lcm(tmp_path / "lcm.db")


def part(kind: str, text: str | None = None, raw: Any = None, **fields: Any) -> dict[str, Any]:
    return {
        "part_type": kind,
        "text_content": text,
        "metadata": json.dumps({"raw": raw} | fields.pop("about", {})),
    } | fields


def test_a_session_goes_on_under_the_key_of_the_host(database: Lcm) -> None:
    first = database.conversation("old", "agent:ops:main", "Morning")
    second = database.conversation("new", "agent:ops:main")
    other = database.conversation("lonely")
    database.say(first, 0, "user", "first 你好")
    database.say(second, 0, "assistant", "second")
    database.say(other, 0, "user", "alone")
    database.conversation("empty")
    database.summary(first)
    found = read("lcm", database.close())
    assert {key: texts(each) for key, each in found.sessions.items()} == {
        "agent:ops:main": ["first 你好", "second"],
        "lcm:lonely": ["alone"],
    }
    assert found.agents == {"agent:ops:main": "ops", "lcm:lonely": "main"}
    begun = found.sessions["agent:ops:main"][0]
    assert begun["ts"] == "2026-02-03T04:05:00.000Z"
    assert begun["meta"] == {"title": "Morning", "hostSessionId": "old", "lcmMessageId": 1}
    assert found.left_out() == {"summaries": 1}


def test_parts_become_the_blocks_they_were(database: Lcm) -> None:
    conversation = database.conversation("s", "agent:main:main")
    call = {"type": "toolCall", "id": "c1", "name": "exec", "arguments": {"command": "ls"}}
    thinking = {"type": "thinking", "thinking": "hm"}
    database.say(
        conversation,
        0,
        "assistant",
        "Looking",
        part("reasoning", "hm", thinking),
        part("text", "Looking", {"type": "text", "text": "Looking"}),
        part("tool", None, call, tool_call_id="c1"),
    )
    database.say(
        conversation,
        1,
        "tool",
        "a.txt",
        part("text", "a.txt", about={"toolCallId": "c1", "toolName": "exec", "isError": True}),
    )
    database.say(
        conversation, 2, "assistant", "", part("tool", tool_call_id="c2", tool_name="read", tool_input='{"p":1}')
    )
    database.say(
        conversation,
        3,
        "tool",
        "",
        {"part_type": "tool", "tool_call_id": "c2", "tool_output": "x", "metadata": "{broken"},
    )
    database.say(conversation, 4, "user", "plain", {"part_type": "step_start"})
    found = read("lcm", database.close()).only
    assert found[0]["content"] == [thinking, {"type": "text", "text": "Looking"}, call]
    assert (found[1]["content"], found[1]["toolCallId"], found[1]["name"]) == ("a.txt", "c1", "exec")
    assert found[1]["meta"]["isError"] is True
    assert found[2]["content"] == [{"type": "tool-call", "id": "c2", "name": "read", "arguments": '{"p":1}'}]
    assert found[3]["content"] == [{"type": "tool-result", "toolCallId": "c2", "content": "x"}]
    assert found[4]["content"] == "plain"


def test_a_message_is_known_by_its_entry_in_the_transcript(tmp_path: Path) -> None:
    database = Lcm(tmp_path / "lcm.db", has_entries=True)
    conversation = database.conversation("s", "agent:main:main")
    database.say(conversation, 0, "user", "a", transcript_entry_id="e1")
    database.say(conversation, 1, "user", "b", transcript_entry_id="e1")
    database.say(conversation, 2, "user", "c")
    ids = [each["id"] for each in read("lcm", database.close()).only]
    assert ids == ["e1", "lcm:1:1:2026-02-03 04:05:01", "lcm:1:2:2026-02-03 04:05:02"]


def test_more_rows_than_are_read_at_a_time(database: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lcm, "ROWS_AT_A_TIME", 3)
    conversation = database.conversation("s")
    for seq in range(-1, 9):
        database.say(conversation, seq, "user", f"m{seq}")
    assert texts(read("lcm", database.close()).only) == [f"m{seq}" for seq in range(-1, 9)]


def test_a_database_in_use_is_read_as_it_is(database: Lcm) -> None:
    database.execute("PRAGMA journal_mode = wal")
    database.say(database.conversation("s"), 0, "user", "in the log")
    assert texts(read("lcm", database.path).only) == ["in the log"]
    database.close()


def test_the_oldest_tables_have_neither_keys_nor_parts(database: Lcm) -> None:
    database.say(database.conversation("s"), 0, "user", "old")
    database.execute("DROP TABLE message_parts")
    database.execute("ALTER TABLE conversations DROP COLUMN session_key")
    assert texts(read("lcm", database.close().parent).sessions["lcm:s"]) == ["old"]  # the folder does as well


def test_incognito_sessions_are_left_out(database: Lcm) -> None:
    database.say(database.conversation("s", "agent:main:dashboard:incognito-1"), 0, "user", "secret")
    found = read("lcm", database.close())
    assert found.sessions == {}
    assert found.left_out() == {"incognito conversations": 1}


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100])
def test_another_file_says_what_to_give(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lcm.db"
    path.write_bytes(content)
    found = read("lcm", path)
    assert found.sessions == {}
    assert found.report.unreadable == 1


def test_a_damaged_database_gives_what_can_be_read(database: Lcm) -> None:
    conversation = database.conversation("s")
    for seq in range(400):
        database.say(conversation, seq, "user", f"message {seq} " + "x" * 500)
    path = database.close()
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 8192] = b"\xff" * 8192
    path.write_bytes(bytes(data))
    found = read("lcm", path)
    assert [each.is_whole for each in found.damages] == [True]
    assert 100 < len(found.only) < 300


def test_times_that_are_not_understood_are_told(database: Lcm) -> None:
    conversation = database.conversation("s", "agent:main:main")
    database.say(conversation, 0, "user", "a", created_at=1_770_091_506_000)
    database.say(conversation, 1, "user", "b", created_at="soon")
    found = read("lcm", database.close())
    assert [each.get("ts") for each in found.only] == ["2026-02-03T04:05:06.000Z", None]
    assert found.left_out() == {"times that are not understood": 1}
    assert b'"count":1' in msgspec.json.encode(found.report)


def test_a_text_that_is_no_utf8_is_told_and_does_not_fail(tmp_path: Path) -> None:
    lcm = Lcm(tmp_path / "lcm.db")
    lcm.say(lcm.conversation("s", "agent:main:main"), 0, "user", "Hello")
    file = lcm.close()
    file.write_bytes(file.read_bytes().replace(b"transcript", b"tran\xe1cript").replace(b"title", b"tit\xe1e"))
    assert read("lcm", file).sessions == {}
