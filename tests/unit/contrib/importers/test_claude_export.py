from __future__ import annotations

import json
from pathlib import Path

import pytest

from offbook.client.history.files import digest_of
from tests.unit.contrib.importers.foreign_files import claude, claude_message
from tests.unit.contrib.importers.reading_files import read, texts, write_json, write_zip


def test_a_conversation_with_its_times_and_its_title(tmp_path: Path) -> None:
    whole = claude(
        claude_message("a", "human", "How long does it rise? 🍞"),
        claude_message("b", "assistant", "A day", "a", created_at="2025-03-01T10:00:07.5Z"),
        claude_message("c", "human", "", "b", created_at="2025-03-01T10:00:09Z"),
    )
    found = read("claude", write_json(tmp_path / "conversations.json", [whole]))
    assert list(found.sessions) == ["claude:u1"]
    assert [(each["id"], each["role"], each["content"]) for each in found.only] == [
        ("a", "user", "How long does it rise? 🍞"),
        ("b", "assistant", "A day"),
    ]
    assert found.only[1]["ts"] == "2025-03-01T10:00:07.500Z"
    assert found.only[0]["meta"] == {"title": "Sourdough"}
    assert found.left_out() == {"empty messages": 1}


def test_blocks_keep_what_they_say_and_lose_the_bookkeeping(tmp_path: Path) -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "summaries": [], "cut_off": False},
        {"type": "tool_use", "id": "t1", "name": "web_search", "input": {"query": "x"}, "icon_name": "globe"},
        {"type": "tool_result", "tool_use_id": "t1", "name": "web_search", "content": [{"type": "text", "text": "y"}]},
        {"type": "token_budget"},
        {"type": "text", "text": "Here", "citations": []},
    ]
    placeholder = "This block is not supported on your current device yet."
    message = claude_message("a", "assistant", blocks, text=placeholder)
    found = read("claude", write_json(tmp_path / "conversations.json", [claude(message)]))
    assert found.only[0]["content"] == [
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "id": "t1", "name": "web_search", "input": {"query": "x"}},
        {"type": "tool_result", "name": "web_search", "tool_use_id": "t1", "content": [{"type": "text", "text": "y"}]},
        {"type": "text", "text": "Here"},
    ]
    assert found.left_out() == {"blocks of kind token_budget": 1}


def test_what_was_attached_is_a_message_of_its_own_that_nobody_said(tmp_path: Path) -> None:
    attached = [
        {"file_name": "plan.txt", "file_type": "txt", "file_size": 3, "extracted_content": "the plan"},
        {"file_name": "", "file_type": "txt", "extracted_content": "pasted"},
        {"file_name": "x.png", "file_type": "png"},
    ]
    files = [{"file_uuid": "f", "file_name": "photo.png"}]
    message = claude_message("a", "human", "Read this", attachments=attached, files=files)
    found = read("claude", write_json(tmp_path / "conversations.json", [claude(message)]))
    assert [(each["id"], each["content"], each.get("origin")) for each in found.only] == [
        ("a", "Read this", None),
        ("a:attachment:0", "the plan", "file:plan.txt"),
        ("a:attachment:1", "pasted", "file:pasted text"),
    ]
    assert found.only[0]["meta"] == {"title": "Sourdough", "files": ["photo.png"]}
    assert found.left_out() == {"files": 1}


def test_a_reply_asked_for_again_leaves_the_first_one_out(tmp_path: Path) -> None:
    whole = claude(
        claude_message("a", "human", "Q"),
        claude_message("b1", "assistant", "first", "a", created_at="2025-03-01T10:01:00Z"),
        claude_message("b2", "assistant", "second", "a", created_at="2025-03-01T10:02:00Z"),
        claude_message("c", "human", "thanks", "b2", created_at="2025-03-01T10:03:00Z"),
    )
    found = read("claude", write_json(tmp_path / "conversations.json", [whole]))
    assert texts(found.only) == ["Q", "second", "thanks"]
    assert found.left_out() == {"messages on other branches": 1}


@pytest.mark.parametrize("parent", [None, "gone"])
def test_where_parents_are_missing_all_is_taken(tmp_path: Path, parent: str | None) -> None:
    whole = claude(
        claude_message("a", "human", "Q", parent_message_uuid=parent),
        claude_message("b", "assistant", "A", parent_message_uuid=parent),
    )
    assert texts(read("claude", write_json(tmp_path / "conversations.json", [whole])).only) == ["Q", "A"]


def test_the_older_exports_have_only_texts(tmp_path: Path) -> None:
    whole = {
        "uuid": "old",
        "name": "",
        "created_at": "2024-01-01T12:00:00Z",
        "chat_messages": [
            {"uuid": "1", "text": "Hi", "sender": "human", "created_at": "2024-01-01T12:00:00Z"},
            {"uuid": "2", "text": "Hello", "sender": "assistant", "created_at": "2024-01-01T12:01:00Z"},
        ],
    }
    assert texts(read("claude", write_json(tmp_path / "conversations.json", [whole])).only) == ["Hi", "Hello"]


def test_projects_users_and_memories_are_left_out_with_a_reason(tmp_path: Path) -> None:
    whole = json.dumps([claude(claude_message("a", "human", "Q")), claude(name="empty")])
    members: dict[str, str | bytes] = {
        "conversations.json": whole,
        "users.json": "[]",
        "projects.json": "[]",
        "memories.json": "[]",
    }
    found = read("claude", write_zip(tmp_path / "data.zip", members))
    assert texts(found.only) == ["Q"]
    assert found.left_out() == {
        "lists of users": 1,
        "lists of projects": 1,
        "lists of memories": 1,
        "empty conversations": 1,
    }


def test_a_message_by_nobody_is_a_damage_and_the_others_stay(tmp_path: Path) -> None:
    whole = claude(claude_message("a", "human", "Q"), claude_message("b", "ghost", "boo", "a"))
    whole["chat_messages"].append("rubbish")
    found = read("claude", write_json(tmp_path / "conversations.json", [whole]))
    assert texts(found.only) == ["Q"]
    assert len(found.damages) == 2


def test_an_export_of_chatgpt_says_so(tmp_path: Path) -> None:
    found = read("claude", write_json(tmp_path / "conversations.json", [{"mapping": {}}]))
    assert found.report.unreadable == 1
    assert found.report.problems[0].reason == "holds a conversation of ChatGPT: `offbook import chatgpt` reads it"


@pytest.mark.parametrize("parent", [["a"], {"a": 1}])
def test_an_odd_parent_ends_the_way_up(tmp_path: Path, parent: object) -> None:
    whole = claude(claude_message("a", "human", "Q"), claude_message("b", "assistant", "A", parent=parent))  # type: ignore[arg-type]
    assert texts(read("claude", write_json(tmp_path / "conversations.json", [whole])).only) == ["Q", "A"]


def test_times_that_are_not_understood_are_told(tmp_path: Path) -> None:
    whole = claude(claude_message("a", "human", "Q", created_at="soon"), created_at=1_740_823_140_000)
    found = read("claude", write_json(tmp_path / "conversations.json", [whole]))
    assert [each["ts"] for each in found.only] == ["2025-03-01T09:59:00.000Z"]
    assert found.left_out() == {"times that are not understood": 1}


# ── where there are no ids ────────────────────────────────────────────────────────────────────


def bare(*said: str, **fields: object) -> dict[str, object]:
    messages = [{"sender": "human", "text": each} for each in said]
    return {"created_at": "2026-05-10T00:00:00Z", "chat_messages": messages, **fields}


def ids(path: Path) -> dict[str, list[str]]:
    return {key: [each["id"] for each in told] for key, told in read("claude", path).sessions.items()}


@pytest.mark.parametrize("fields", [{"uuid": "A"}, {}])
def test_a_message_without_an_id_has_the_same_one_wherever_it_is_read(tmp_path: Path, fields: dict[str, str]) -> None:
    whole = bare("one", "two", **fields)
    [(key, first)] = ids(write_json(tmp_path / "conversations.json", [whole])).items()
    packed = write_zip(tmp_path / "c.zip", {"export/conversations.json": json.dumps([whole])})
    assert ids(packed) == {key: first}
    grown = bare("one", "two", "three", **fields)
    later = ids(write_json(tmp_path / "later.json", [claude(claude_message("q", "human", "newer")), grown]))
    assert later[key][:2] == first
    assert len(set(later[key])) == 3


def test_conversations_that_begin_alike_are_two(tmp_path: Path) -> None:
    path = write_json(tmp_path / "conversations.json", [bare("hi", "one"), bare("hi", "two")])
    assert sorted(texts(told)[1] for told in read("claude", path).sessions.values()) == ["one", "two"]


def test_what_has_ids_is_known_as_it_was(tmp_path: Path) -> None:
    whole = claude(claude_message("a", "human", "Q"), name="")
    assert ids(write_json(tmp_path / "conversations.json", [whole])) == {
        "claude:" + digest_of(*map(str, whole["chat_messages"])): ["a"]
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [(["hi", "one"], ["hi", "one"]), (["hi"], ["hi", "one"]), (["hi", "one"], ["hi"])],
)
def test_a_conversation_in_two_files_is_one_with_all_that_is_said(
    tmp_path: Path, first: list[str], second: list[str]
) -> None:
    [alone] = ids(write_json(tmp_path / "alone.json", [bare("hi")]))
    write_json(tmp_path / "both" / "a" / "conversations.json", [bare(*first)])
    write_json(tmp_path / "both" / "b" / "conversations.json", [bare(*second)])
    found = read("claude", tmp_path / "both")
    assert {key: texts(told) for key, told in found.sessions.items()} == {alone: ["hi", "one"]}


def test_those_that_begin_alike_are_two_in_two_files_as_well(tmp_path: Path) -> None:
    write_json(tmp_path / "a" / "conversations.json", [bare("hi", "one"), bare("hi", "two")])
    write_json(tmp_path / "b" / "conversations.json", [bare("hi", "two", "three"), bare("hi", "one")])
    found = read("claude", tmp_path).sessions
    assert sorted(texts(told) for told in found.values()) == [["hi", "one"], ["hi", "two", "three"]]
