from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.contrib.importers.foreign_files import AT, chatgpt, node
from tests.unit.contrib.importers.reading_files import read, texts, write_json, write_zip


def image() -> dict[str, object]:
    return {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1", "size_bytes": 9}


def talk() -> dict[str, object]:
    return chatgpt(
        node("sys", "root", "system", "", metadata={"is_visually_hidden_from_conversation": True}),
        node("q", "sys", "user", "Plan a trip 🧳", at=AT + 1),
        node("old", "q", "assistant", "An abandoned plan", at=AT + 2),
        node("new", "q", "assistant", "Take the 去 train", at=AT + 3, metadata={"model_slug": "gpt-4o"}),
        node("more", "new", "user", {"content_type": "multimodal_text", "parts": [image(), "What is this?"]}),
        node("end", "more", "assistant", "A tram"),
        current="end",
    )


def test_the_branch_that_is_shown_is_taken_in_its_order(tmp_path: Path) -> None:
    found = read("chatgpt", write_json(tmp_path / "conversations.json", [talk()]))
    assert list(found.sessions) == ["chatgpt:c1"]
    assert texts(found.only) == ["Plan a trip 🧳", "Take the 去 train", "What is this?", "A tram"]
    assert [each["role"] for each in found.only] == ["user", "assistant", "user", "assistant"]
    assert [each["id"] for each in found.only] == ["q", "new", "more", "end"]
    assert found.only[1]["model"] == "gpt-4o"
    assert [each.get("meta") for each in found.only] == [{"title": "Trip to Lisbon"}, None, None, None]
    assert found.left_out() == {"messages on other branches": 1, "hidden messages": 1, "pictures": 1}
    assert found.report.unreadable == 0


def test_a_message_without_a_time_has_that_of_the_one_before(tmp_path: Path) -> None:
    whole = chatgpt(
        node("a", "root", "user", "one"),
        node("b", "a", "assistant", "two", at=AT + 60),
        node("c", "b", "user", "three"),
        current="c",
    )
    times = [each["ts"] for each in read("chatgpt", write_json(tmp_path / "conversations.json", [whole])).only]
    assert times == ["2023-11-14T22:13:20.250Z", "2023-11-14T22:14:20.250Z", "2023-11-14T22:14:20.250Z"]


def test_a_call_of_a_tool_and_what_it_answered(tmp_path: Path) -> None:
    whole = chatgpt(
        node("q", "root", "user", "2+2?"),
        node(
            "call", "q", "assistant", {"content_type": "code", "language": "python", "text": "2+2"}, recipient="python"
        ),
        node("out", "call", "tool", {"content_type": "execution_output", "text": "4"}, author={"name": "python"}),
        node(
            "t", "out", "assistant", {"content_type": "thoughts", "thoughts": [{"summary": "Sum", "content": "easy"}]}
        ),
        node("r", "t", "assistant", {"content_type": "reasoning_recap", "content": "Thought for 2s"}),
        node("a", "r", "assistant", {"content_type": "code", "language": "python", "text": "print(4)"}),
        current="a",
    )
    found = read("chatgpt", write_json(tmp_path / "conversations.json", [whole]))
    _, call, out, thought, answer = found.only
    assert call["content"] == [{"type": "tool-call", "id": "call", "name": "python", "arguments": "2+2"}]
    assert (out["role"], out["content"], out["name"], out["toolCallId"]) == ("tool", "4", "python", "call")
    assert thought["content"] == [{"type": "thinking", "thinking": "Sum\neasy"}]
    assert answer["content"] == "print(4)"
    assert found.left_out() == {"notes of how long ChatGPT thought": 1}


def test_speech_custom_instructions_and_attachments(tmp_path: Path) -> None:
    spoken = {"content_type": "audio_transcription", "text": "Good morning", "direction": "in"}
    whole = chatgpt(
        node(
            "i",
            "root",
            "user",
            {"content_type": "user_editable_context", "user_profile": "p", "user_instructions": "q"},
        ),
        node(
            "a",
            "i",
            "user",
            {"content_type": "multimodal_text", "parts": [spoken, {"content_type": "audio_asset_pointer"}]},
        ),
        node("b", "a", "user", "see file", metadata={"attachments": [{"id": "f", "name": "plan.pdf"}]}),
        node("w", "b", "tool", {"content_type": "tether_quote", "title": "T", "url": "u", "text": "x"}),
        current="w",
    )
    found = read("chatgpt", write_json(tmp_path / "conversations.json", [whole]))
    assert texts(found.only) == ["Good morning", "see file", "T\nu\nx"]
    assert found.only[1]["meta"]["attachments"] == ["plan.pdf"]
    assert found.left_out().keys() == {"custom instructions", "recordings", "attached files"}


@pytest.mark.parametrize("current", [None, "nowhere"])
def test_without_a_leaf_the_newest_branch_is_taken(tmp_path: Path, current: str | None) -> None:
    whole = chatgpt(
        node("q", "root", "user", "?"),
        node("late", "q", "assistant", "late", at=AT + 9),
        node("early", "q", "assistant", "early", at=AT + 1),
        current=current,
    )
    assert texts(read("chatgpt", write_json(tmp_path / "conversations.json", [whole])).only) == ["?", "late"]


def test_a_tree_that_bites_its_tail_ends(tmp_path: Path) -> None:
    whole = chatgpt(node("a", "b", "user", "one"), node("b", "a", "assistant", "two"), current="b")
    assert texts(read("chatgpt", write_json(tmp_path / "conversations.json", [whole])).only) == ["one", "two"]


def test_the_zip_the_folder_and_several_files_give_the_same(tmp_path: Path) -> None:
    second = chatgpt(node("z", "root", "user", "later"), current="z", name="c2", create_time=AT + 1000)
    folder = tmp_path / "export"
    write_json(folder / "conversations-000.json", [second])
    write_json(folder / "conversations-001.json", [talk()])
    write_json(folder / "user.json", {})
    (folder / "file-1.png").write_bytes(b"png")
    members: dict[str, str | bytes] = {f"export/{each.name}": each.read_bytes() for each in folder.iterdir()} | {
        "__MACOSX/export/._conversations-000.json": b"junk"
    }
    of_folder = read("chatgpt", folder)
    of_zip = read("chatgpt", write_zip(tmp_path / "export.zip", members))
    assert list(of_folder.sessions) == ["chatgpt:c1", "chatgpt:c2"]  # the oldest first
    assert of_zip.sessions == of_folder.sessions
    beside = {"pictures, recordings and files beside the conversations": 1, "other files of the export": 1}
    assert beside.items() <= of_zip.left_out().items()


def test_a_file_that_breaks_off_gives_what_stands_before(tmp_path: Path) -> None:
    whole = json.dumps([talk(), chatgpt(node("z", "root", "user", "lost"), current="z", name="c2")])
    path = tmp_path / "conversations.json"
    path.write_text(whole[:-40], encoding="utf-8")
    found = read("chatgpt", path)
    assert list(found.sessions) == ["chatgpt:c1"]
    assert found.report.unreadable == 1
    assert found.report.problems[0].where == "conversations.json after #1"


def test_half_a_character_and_nan_are_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    whole = json.dumps([chatgpt(node("a", "root", "user", "cut \ud83d"), current="a", plugin=float("nan"))])
    path.write_text(whole, encoding="utf-8")
    found = read("chatgpt", path)
    assert texts(found.only) == ["cut \ufffd"]
    assert found.report.unreadable == 0


@pytest.mark.parametrize("content", ["", "nonsense", "{}", '[{"chat_messages": []}]', "[1]", "[" * 100_000])
def test_what_is_no_export_says_so(tmp_path: Path, content: str) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(content, encoding="utf-8")
    found = read("chatgpt", path)
    assert found.sessions == {}
    assert found.report.unreadable == 1
    assert found.report.problems


def test_a_conversation_with_a_bad_node_loses_only_that(tmp_path: Path) -> None:
    whole = chatgpt(
        node("a", "root", "user", "one"), node("b", "a", "alien", "two"), node("c", "b", "user", "three"), current="c"
    )
    whole["mapping"]["d"] = "not a node"
    found = read("chatgpt", write_json(tmp_path / "conversations.json", [whole]))
    assert texts(found.only) == ["one", "three"]
    assert [each.where[-9:] for each in found.damages] == ["message d", "message b"]


def test_a_folder_without_conversations_says_what_to_give(tmp_path: Path) -> None:
    found = read("chatgpt", tmp_path)
    assert found.report.unreadable == 1
    assert "give the zip of ChatGPT's export" in found.report.problems[0].reason


def test_times_that_are_not_understood_are_told(tmp_path: Path) -> None:
    whole = chatgpt(
        node("a", "root", "user", "one", at=AT * 1000), node("b", "a", "user", "two", at="soon"), current="b"
    )
    found = read("chatgpt", write_json(tmp_path / "conversations.json", [whole | {"create_time": "soon"}]))
    assert [each["ts"] for each in found.only] == ["2023-11-14T22:13:20.250Z"] * 2
    assert found.left_out() == {"times that are not understood": 2}
