from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from offbook.client.history import files
from tests.unit.contrib.importers.foreign_files import code_line
from tests.unit.contrib.importers.reading_files import read, texts

RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "3 passed"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make test"}}


def write(path: Path, *lines: dict[str, Any] | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    told = [each if isinstance(each, str) else json.dumps(each, separators=(",", ":")) for each in lines]
    path.write_text("\n".join(told) + "\n", encoding="utf-8")
    return path


def test_a_session_with_thoughts_calls_and_results(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s1.jsonl",
        {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}, "isSnapshotUpdate": False},
        code_line("u1", "user", "Run the tests 测试"),
        code_line("a0", "assistant", [{"type": "thinking", "thinking": "", "signature": "sealed"}], "u1"),
        code_line("a1", "assistant", [{"type": "thinking", "thinking": "hm", "signature": "sealed"}], "u1"),
        code_line("a2", "assistant", [CALL], "a1"),
        code_line("u2", "user", [RESULT], "a2", toolUseResult={"stdout": "3 passed"}),
        code_line("a3", "assistant", [{"type": "text", "text": "All pass"}], "u2"),
        {"type": "ai-title", "aiTitle": "Tests", "sessionId": "s1"},
    )
    found = read("claude-code", path)
    assert list(found.sessions) == ["claude-code:s1"]
    assert [(each["id"], each["role"], each["content"]) for each in found.only] == [
        ("u1", "user", "Run the tests 测试"),
        ("a1", "assistant", [{"type": "thinking", "thinking": "hm"}]),
        ("a2", "assistant", [CALL]),
        ("u2", "tool", [RESULT]),
        ("a3", "assistant", "All pass"),
    ]
    assert found.only[0]["meta"] == {"title": "Tests", "cwd": "/src/app", "gitBranch": "main"}
    assert found.only[3]["toolCallId"] == "toolu_1"
    assert found.only[4]["model"] == "claude-sonnet-4-5"
    assert found.only[4]["meta"]["parentUuid"] == "u2"
    assert found.only[4]["ts"] == "2026-01-05T08:00:00.123Z"
    assert found.left_out().keys() == {
        "lines of kind file-history-snapshot",
        "lines of kind ai-title",
        "empty messages",
    }


def test_what_the_program_told_itself_is_left_out(tmp_path: Path) -> None:
    notice = {"role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": "API Error"}]}
    path = write(
        tmp_path / "s1.jsonl",
        {"type": "summary", "summary": "Earlier work", "leafUuid": "x"},
        code_line("m", "user", "Caveat: the messages below", isMeta=True),
        code_line(
            "k", "user", "This session is being continued", isCompactSummary=True, isVisibleInTranscriptOnly=True
        ),
        code_line("n", "assistant", "x", message=notice, isApiErrorMessage=True),
        code_line("b", "user", "prompt of a sub-agent", isSidechain=True),
        {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "uuid": "y"},
        code_line("u", "user", "Hello"),
    )
    found = read("claude-code", path)
    assert texts(found.only) == ["Hello"]
    assert found.left_out() == {
        "summaries": 1,
        "meta messages": 1,
        "summaries of what was compacted": 1,
        "notices of errors": 1,
        "messages of side chains": 1,
        "lines of kind system": 1,
    }


def test_what_was_typed_while_the_agent_worked_is_taken(tmp_path: Path) -> None:
    def queued(name: str, **fields: Any) -> dict[str, Any]:
        return {"type": "attachment", "uuid": name, "sessionId": "s1", "timestamp": "2026-01-05T08:00:00Z"} | {
            "attachment": {"type": "queued_command", "commandMode": "prompt"} | fields
        }

    path = write(
        tmp_path / "s1.jsonl",
        queued("q1", prompt="also check the logs", origin={"kind": "human"}),
        queued("q2", prompt=[{"type": "text", "text": "and the docs"}]),
        queued("q3", prompt="<task-notification/>", commandMode="task-notification"),
        queued("q4", prompt="done", origin={"kind": "task-notification"}),
        {"type": "attachment", "uuid": "h", "attachment": {"type": "hook_success", "content": "x"}},
    )
    found = read("claude-code", path)
    assert texts(found.only) == ["also check the logs", "and the docs"]
    assert found.left_out() == {"attachments of the program": 3}


def test_commands_and_their_output_are_not_the_persons_words(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s1.jsonl",
        code_line("1", "user", "<command-name>/clear</command-name>"),
        code_line("2", "user", "<local-command-stdout>ok</local-command-stdout>"),
        code_line("3", "user", "a task ended", origin={"kind": "task-notification"}),
        code_line("4", "user", [{"type": "text", "text": "see"}, {"type": "image", "source": {"type": "base64"}}]),
    )
    assert [each.get("origin") for each in read("claude-code", path).only] == [
        "claude-code:command",
        "claude-code:command",
        "claude-code:task-notification",
        None,
    ]


def test_a_folder_gives_every_session_without_copies_and_sub_agents(tmp_path: Path) -> None:
    write(tmp_path / "app" / "s1.jsonl", code_line("1", "user", "first"))
    write(
        tmp_path / "app" / "s2.jsonl", code_line("1", "user", "first"), code_line("2", "user", "second", sessionId="s2")
    )
    write(tmp_path / "app" / "agent-7.jsonl", code_line("3", "user", "sub"))
    write(tmp_path / "app" / "s1" / "subagents" / "agent-8.jsonl", code_line("4", "user", "sub"))
    found = read("claude-code", tmp_path)
    assert {key: texts(messages) for key, messages in found.sessions.items()} == {
        "claude-code:s1": ["first"],
        "claude-code:s2": ["second"],
    }
    assert found.left_out() == {"transcripts of sub-agents": 2, "messages of other sessions": 1}
    alone = read("claude-code", tmp_path / "app" / "s2.jsonl")
    assert texts(alone.only) == ["first", "second"]


def test_what_a_fork_took_over_is_left_out_where_the_other_session_is_there(tmp_path: Path) -> None:
    def forked(line: dict[str, Any]) -> dict[str, Any]:
        return line | {"sessionId": "s2", "forkedFrom": {"sessionId": "s1", "messageUuid": line["uuid"]}}

    typed = {"type": "queued_command", "prompt": "typed meanwhile", "commandMode": "prompt"}
    lines = [
        code_line("1", "user", "first"),
        {"type": "attachment", "uuid": "2", "sessionId": "s1", "attachment": typed},
        code_line("3", "assistant", [{"type": "text", "text": "second"}]),
    ]
    own = code_line("4", "user", "in the fork", sessionId="s2")
    damaged = own | {"uuid": "5", "forkedFrom": "s1"}
    write(tmp_path / "s1.jsonl", *lines)
    fork = write(tmp_path / "s2.jsonl", *(forked(line) for line in lines), own, damaged)
    write(tmp_path / "s3.jsonl", lines[1], code_line("6", "user", "goes on", sessionId="s3"))
    found = read("claude-code", tmp_path)
    assert {key: texts(messages) for key, messages in found.sessions.items()} == {
        "claude-code:s1": ["first", "typed meanwhile", "second"],
        "claude-code:s2": ["in the fork", "in the fork"],
        "claude-code:s3": ["goes on"],
    }
    assert found.left_out() == {"messages of other sessions": 4}
    assert len(read("claude-code", fork).only) == 5  # alone it is all there is


def test_a_bad_line_costs_only_itself(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(files, "LONGEST_EVENT_BYTES", 2_000)
    path = write(
        tmp_path / "s1.jsonl",
        code_line("1", "user", "one"),
        '{"type":"user","mess',
        "[]",
        code_line("2", "user", "x" * 5_000),
        code_line("3", "user", None),
        code_line("4", "user", "two\x00 and \ud83d half"),
        code_line("4", "user", "the same id again"),
    )
    found = read("claude-code", path)
    assert texts(found.only) == ["one", "two\x00 and \ufffd half"]
    assert [each.where for each in found.damages] == [f"s1.jsonl line {number}" for number in (2, 3, 4, 5)]


def test_another_file_of_lines_says_that_it_is_none(tmp_path: Path) -> None:
    found = read("claude-code", write(tmp_path / "history.jsonl", {"display": "x", "timestamp": 1}))
    assert [each.is_whole for each in found.damages] == [True]


def test_a_folder_without_sessions_says_what_to_give(tmp_path: Path) -> None:
    assert "~/.claude/projects" in read("claude-code", tmp_path).report.problems[0].reason


def test_a_title_of_an_odd_kind_is_none(tmp_path: Path) -> None:
    odd = {"type": ["custom-title"], "customTitle": "x"}
    path = tmp_path / "s1.jsonl"
    path.write_text("\n".join(map(json.dumps, [odd, code_line("a", "user", "Hello", timestamp="soon")])))
    found = read("claude-code", path)
    assert texts(found.only) == ["Hello"]
    assert "title" not in found.only[0]["meta"]
    assert found.left_out()["times that are not understood"] == 1
