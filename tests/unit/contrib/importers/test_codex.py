from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.unit.contrib.importers.reading_files import read, texts

ID = "0199f0c2-1c1e-7a31-9d7e-2f1f5f6a7b8c"


def meta(session_id: str = ID, **fields: Any) -> dict[str, Any]:
    told = {"id": session_id, "timestamp": "2026-05-01T10:00:00Z", "cwd": "/src/app", "originator": "codex_cli_rs"}
    git = {"branch": "main"}
    return line("session_meta", told | {"cli_version": "0.150.0", "source": "cli", "git": git} | fields)


def line(kind: str, payload: dict[str, Any], at: str = "2026-05-01T10:00:01.500Z") -> dict[str, Any]:
    return {"timestamp": at, "type": kind, "payload": payload}


def said(role: str, *parts: str, **fields: Any) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": part} for part in parts]
    return line("response_item", {"type": "message", "role": role, "content": content} | fields)


def write(folder: Path, *lines: dict[str, Any] | str, name: str = f"rollout-2026-05-01T10-00-00-{ID}.jsonl") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    told = [each if isinstance(each, str) else json.dumps(each) for each in lines]
    path.write_text("\n".join(told) + "\n", encoding="utf-8")
    return path


def test_a_session_with_thoughts_calls_and_results(tmp_path: Path) -> None:
    call = {"type": "function_call", "name": "shell", "arguments": '{"command":["make"]}', "call_id": "call_1"}
    patch = {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin", "call_id": "call_2"}
    path = write(
        tmp_path,
        meta(),
        line("event_msg", {"type": "user_message", "message": "Run the tests 测试"}),
        said("user", "Run the tests 测试 🐈", id="msg_1"),
        line("turn_context", {"cwd": "/src/app", "model": "gpt-5-codex"}),
        line("response_item", {"type": "reasoning", "summary": [], "encrypted_content": "sealed"}),
        line("response_item", {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}),
        line("response_item", call),
        line("response_item", {"type": "function_call_output", "call_id": "call_1", "output": "3 passed"}),
        line("response_item", patch),
        line(
            "response_item",
            {"type": "custom_tool_call_output", "call_id": "call_2", "output": '{"output":"Done","metadata":{}}'},
        ),
        said("assistant", "All pass", phase="final_answer"),
    )
    found = read("codex", path)
    assert list(found.sessions) == [f"codex:{ID}"]
    assert [(each["role"], each["content"]) for each in found.only] == [
        ("user", "Run the tests 测试 🐈"),
        ("assistant", [{"type": "thinking", "thinking": "hm"}]),
        (
            "assistant",
            [{"type": "tool-call", "id": "call_1", "name": "shell", "arguments": {"command": ["make"]}}],
        ),
        ("tool", "3 passed"),
        ("assistant", [{"type": "tool-call", "id": "call_2", "name": "apply_patch", "arguments": "*** Begin"}]),
        ("tool", "Done"),
        ("assistant", "All pass"),
    ]
    assert found.only[0]["id"] == "msg_1"
    assert found.only[0]["ts"] == "2026-05-01T10:00:01.500Z"
    assert found.only[0]["meta"] == {"cwd": "/src/app", "gitBranch": "main"}
    assert found.only[3]["toolCallId"] == "call_1"
    assert len({each["id"] for each in found.only}) == 7
    assert found.left_out() == {
        "lines of kind session_meta": 1,
        "lines of kind event_msg": 1,
        "lines of kind turn_context": 1,
        "empty messages": 1,
    }


def test_what_codex_says_under_the_users_name_is_left_out(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        meta(),
        said("developer", "<permissions instructions>…</permissions instructions>"),
        said(
            "user",
            "# AGENTS.md instructions for /src/app\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>",
            "<environment_context>\n<cwd>/src/app</cwd>\n</environment_context>",
        ),
        said("user", "<turn_aborted>\nThe user interrupted\n</turn_aborted>"),
        said("user", "<image name=[Image #1]>", "</image>", "What is in it?"),
        said("user", "<environment_context> is a tag that I typed myself"),
        said("user", "<user_shell_command>\n<command>\nls\n</command>\n</user_shell_command>"),
    )
    found = read("codex", path)
    assert texts(found.only) == [
        "What is in it?",
        "<environment_context> is a tag that I typed myself",
        "<user_shell_command>\n<command>\nls\n</command>\n</user_shell_command>",
    ]
    assert found.only[2]["origin"] == "codex:command"
    assert found.left_out() == {
        "lines of kind session_meta": 1,
        "instructions": 1,
        "context that Codex adds": 2,
    }


def test_a_folder_of_sessions_without_those_of_sub_agents(tmp_path: Path) -> None:
    other = ID.replace("0199", "0200")
    write(tmp_path / "2026/05/01", meta(), said("user", "One"))
    source = {"subagent": {"thread_spawn": {"parent_thread_id": ID}}}
    write(tmp_path / "2026/05/01", meta(other, source=source), said("user", "Do it"), name="rollout-b.jsonl")
    write(tmp_path / "2026/05/02", said("user", "No first line"), name=f"rollout-2026-05-02T00-00-00-{other}.jsonl")
    (tmp_path / "2026/05/02/rollout-old.jsonl.zst").write_bytes(b"x")
    found = read("codex", tmp_path)
    assert {key: texts(each) for key, each in found.sessions.items()} == {
        f"codex:{ID}": ["One"],
        f"codex:{other}": ["No first line"],
    }
    assert found.left_out()["sessions of sub-agents"] == 1
    assert found.left_out()["compressed sessions"] == 1


@pytest.mark.parametrize("folders", [("a", "b/05/02", "b/05/03"), ("b/05/01", "b/05/02", "a")])
def test_of_several_files_of_a_session_the_newest_is_read(tmp_path: Path, folders: tuple[str, ...]) -> None:
    for day, folder in zip(("01", "02", "03"), folders, strict=True):
        name = f"{folder}/rollout-2026-05-{day}T10-00-00-{ID}.jsonl"
        write(tmp_path, meta(), said("user", f"day {day}"), name=name)
    found = read("codex", tmp_path)
    assert [each["content"] for each in found.only] == ["day 03"]
    assert found.left_out()["files of a session that is there already"] == 2


def test_the_first_versions_wrote_items_without_an_envelope(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"id": ID, "timestamp": "2025-05-01T10:00:00Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
    )
    found = read("codex", path)
    assert texts(found.only) == ["Hello"]
    assert found.only[0]["ts"] == "2025-05-01T10:00:00.000Z"


def test_damage_costs_only_itself(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        meta(),
        "{not json",
        "[1]",
        line("response_item", {"type": "message", "role": "user"}),
        said("user", "Still here\0"),
        line("response_item", {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text"}]}),
    )
    found = read("codex", path)
    assert texts(found.only) == ["Still here\0", ""]
    assert len(found.damages) == 3


def test_a_file_of_something_else_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, {"type": "user", "uuid": "x"}, name="other.jsonl")
    found = read("codex", path)
    assert found.only == []
    assert any(damage.is_whole for damage in found.damages)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert read("codex", empty).report.unreadable == 1


def test_ids_do_not_depend_on_what_was_read_before(tmp_path: Path) -> None:
    path = write(tmp_path, meta(), said("user", "One"), said("user", "One"))
    again = read("codex", path)
    assert [each["id"] for each in again.only] == [each["id"] for each in read("codex", path).only]
    assert len(again.only) == 2


PARENT, FORK = ID, ID.replace("0199", "0200")


def turn(at: str) -> dict[str, Any]:
    """As Codex names turns: by the time they began."""
    milliseconds = int(datetime.fromisoformat(at).timestamp() * 1000)
    name = f"{milliseconds:012x}"
    return line("event_msg", {"type": "task_started", "turn_id": f"{name[:8]}-{name[8:]}-7000-8000-000000000000"}, at)


def at(time: str, *lines: dict[str, Any]) -> list[dict[str, Any]]:
    return [each | {"timestamp": time} for each in lines]


def a_fork(tmp_path: Path, *own: dict[str, Any]) -> Path:
    """Of a session that goes on after it."""
    first = [turn("2026-05-01T10:00:00Z"), said("user", "go on"), said("assistant", "One"), said("user", "go on")]
    second = [turn("2026-05-01T10:05:00Z"), said("assistant", "Two 说 \ud83d")]
    later = at("2026-05-03T10:00:00Z", said("user", "go on"), said("assistant", "After the fork"))
    write(tmp_path / "05/01", meta(), *at("2026-05-01T10:00:01Z", *first, *second), *later)
    begun = "2026-05-02T10:00:00Z"
    head = meta(FORK, forked_from_id=PARENT, timestamp=begun)
    copied = at("2026-05-02T10:00:00.040Z", head, meta(), *first, *second)
    return write(tmp_path / "05/02", *copied, *own, name=f"rollout-2026-05-02T10-00-00-{FORK}.jsonl")


def test_what_a_fork_took_over_is_left_out_where_the_other_session_is_there(tmp_path: Path) -> None:
    own_turn = turn("2026-05-02T10:00:00.500Z")
    own = at("2026-05-02T10:00:01Z", own_turn, said("user", "go on"), said("assistant", "Three"))
    fork = a_fork(tmp_path, *own)
    found = read("codex", tmp_path)
    assert {key: texts(each) for key, each in found.sessions.items()} == {
        f"codex:{PARENT}": ["go on", "One", "go on", "Two 说 \ufffd", "go on", "After the fork"],
        f"codex:{FORK}": ["go on", "Three"],
    }
    assert found.left_out()["messages of other sessions"] == 4
    assert [each["id"] for each in found.sessions[f"codex:{FORK}"]] == [
        each["id"] for each in read("codex", fork).only
    ][4:]
    assert len(read("codex", fork).only) == 6  # alone it is all there is


def test_what_a_fork_says_itself_is_never_taken_for_a_copy(tmp_path: Path) -> None:
    """Of older versions, whose turns have no such names: the user's message comes first, and the context behind it."""
    own = at("2026-05-02T10:00:00.300Z", said("user", "go on"), said("assistant", "After the fork"))
    later = at("2026-05-02T10:00:30Z", said("assistant", "One"), said("assistant", "Two"))
    a_fork(tmp_path, *own, *later)
    assert texts(read("codex", tmp_path).sessions[f"codex:{FORK}"]) == ["go on", "After the fork", "One", "Two"]


def test_a_turn_may_be_named_after_a_year_that_no_calendar_has(tmp_path: Path) -> None:
    far = line("event_msg", {"type": "task_started", "turn_id": "ffffffff-ffff-7000-8000-000000000000"})
    a_fork(tmp_path, *at("2026-05-02T10:00:01Z", far, said("user", "go on")))
    assert texts(read("codex", tmp_path).sessions[f"codex:{FORK}"]) == ["go on"]


@pytest.mark.parametrize("forked_from", [FORK, 7, None, "", "../" + PARENT, "no-such-session"])
def test_a_fork_of_nothing_that_is_there_is_stored_whole(tmp_path: Path, forked_from: Any) -> None:
    write(tmp_path, meta(), said("user", "One"))
    write(tmp_path, meta(FORK, forked_from_id=forked_from), said("user", "One"), name="rollout-b.jsonl")
    assert texts(read("codex", tmp_path).sessions[f"codex:{FORK}"]) == ["One"]


def test_a_kind_that_is_no_text_costs_only_its_line(tmp_path: Path) -> None:
    odd: list[Any] = [line(["response_item"], {"type": "message"}), line("response_item", {"type": ["message"]})]  # type: ignore[arg-type]
    found = read("codex", write(tmp_path, meta(), *odd, said("user", "Go")))
    assert texts(found.only) == ["Go"]
    assert found.left_out() == {
        "lines of kind session_meta": 1,
        "lines of kind ['response_item']": 1,
        "items of kind ['message']": 1,
    }


def test_times_in_milliseconds_are_understood_and_others_are_told(tmp_path: Path) -> None:
    odd = [line("response_item", {**said("user", at)["payload"]}, at=at) for at in ("1777629601500", "soon")]
    found = read("codex", write(tmp_path, meta(), *odd))
    assert [each.get("ts") for each in found.only] == ["2026-05-01T10:00:01.500Z", None]
    assert found.left_out()["times that are not understood"] == 1
