"""Files of the swap-memory plugin: as it writes them, and as nobody should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from offbook.client.history.conversations import Damage
from offbook.ingest.scope import resolve_agent
from offbook.transfer.documents.swap_jsonl import conversations
from tests.unit.contrib.importers.exported_history import History, messages_of, owner, read, report

LINE: dict[str, Any] = {
    "id": "5f0c6a7e-3a63-4b0e-8a55-0c2f0d6f1a01",
    "ts": "2026-05-10T12:00:00.000Z",
    "role": "user",
    "content": "The sourdough rests for 72 hours.",
    "embedding": [0.25] * 1536,
    "embeddedAt": "2026-05-10T12:00:01.000Z",
    "sessionKey": "agent:main:direct:42",
    "contentLength": 33,
    "sourcePlugin": "swap-memory",
}


def swap_file(folder: Path, *lines: dict[str, Any] | bytes) -> Path:
    file = folder / "swap.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(
        b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    )
    return file


def described(history: History) -> list[tuple[str, str | None, object]]:
    return [(each.session_id, each.message.id, each.message.content) for each in history.messages()]


def test_each_session_is_a_conversation_and_embeddings_stay_behind(tmp_path: Path) -> None:
    other = {**LINE, "id": "b", "sessionKey": "agent:main:direct:43", "content": "二号会话 🐾", "embedding": None}
    answer = {**LINE, "id": "c", "role": "assistant", "content": "Noted.", "logRef": "session-main-2026-05-10"}
    history, report_ = read(conversations, swap_file(tmp_path, LINE, other, answer))
    assert described(history) == [
        ("agent:main:direct:42", LINE["id"], LINE["content"]),
        ("agent:main:direct:42", "c", "Noted."),
        ("agent:main:direct:43", "b", "二号会话 🐾"),
    ]
    first = next(history.messages()).message
    assert (first.role, str(first.ts)) == ("user", "2026-05-10 12:00:00+00:00")
    assert [(left.what, left.why, left.count) for left in report_.left_out] == [
        ("embeddings", "of another model: made anew", 2)
    ]


def test_the_file_is_found_in_the_folder_of_an_agent_and_of_the_host(tmp_path: Path) -> None:
    swap_file(tmp_path / "agents" / "main" / "swap", LINE)
    swap_file(tmp_path / "agents" / "helper" / "swap", {**LINE, "sessionKey": None})
    found = conversations(tmp_path, report(), lambda key: resolve_agent(key, None, "somebody"))
    assert [(each.agent_id, each.key) for each in found] == [
        ("helper", "swap:helper"),
        ("main", "agent:main:direct:42"),
    ]
    assert len(conversations(tmp_path / "agents" / "main", report(), owner)) == 1


def test_a_line_without_id_or_session_has_the_same_ones_each_time(tmp_path: Path) -> None:
    bare = {"role": "user", "content": "Something worth keeping.", "ts": LINE["ts"]}
    first, _ = read(conversations, swap_file(tmp_path / "a", bare))
    second, _ = read(conversations, swap_file(tmp_path / "b", LINE, bare))  # another place in the file
    assert described(first) == described(second)[1:]
    assert described(first)[0][0] == "swap:main"


def test_what_cannot_be_read_is_named_and_the_rest_is_taken(tmp_path: Path) -> None:
    file = swap_file(
        tmp_path,
        b'{"id": "x", "content": ',
        b"[1, 2]",
        b"\xff\xfe\x00",
        b"",
        {**LINE, "id": "no role", "role": "chorus"},
        {**LINE, "id": "no text", "content": None},
        {**LINE, "id": "no time", "ts": "yesterday", "embeddedAt": None},
        b'{"id": "half", "role": "user", "content": "a cat \\ud83d half", "sessionKey": "s"}',
        {**LINE, "id": "long", "sessionKey": "k" * 600},
        {**LINE, "id": "nul", "sessionKey": "a\x00b"},
    )
    report_ = report()
    damages: list[Damage] = []
    found = conversations(file, report_, owner)
    messages = [message for each in found for message in messages_of(each, damages)]
    assert [problem.where.rpartition(" ")[2] for problem in report_.problems] == ["1", "2", "3"]
    assert report_.agent("main").skipped == 3
    assert [damage.where.rpartition(" ")[2] for damage in damages] == ["5", "6"]
    assert [message.id for message in messages] == ["no time", "half", "long", "nul"]
    assert messages[0].ts is None
    assert messages[1].content == "a cat \ufffd half"
    assert all(len(each.key.encode()) <= 512 and "\x00" not in each.key for each in found)


def test_a_large_text_and_many_sessions(tmp_path: Path) -> None:
    large = "猫" * 1_700_000
    lines = [{**LINE, "id": str(number), "sessionKey": f"s{number % 50}", "embedding": None} for number in range(500)]
    history, report_ = read(conversations, swap_file(tmp_path, *lines, {**LINE, "id": "large", "content": large}))
    assert len(history.sessions) == 51
    assert history.sessions["agent:main:direct:42"][0].content == large
    assert not report_.problems


def test_the_time_of_embedding_stands_for_a_missing_one_and_a_pin_is_taken(tmp_path: Path) -> None:
    file = swap_file(tmp_path, {**LINE, "ts": None, "embedding": None, "pinned": True}, LINE)
    history, report_ = read(conversations, file)
    assert str(next(history.messages()).message.ts) == "2026-05-10 12:00:01+00:00"
    assert [left.what for left in report_.left_out] == ["embeddings"]
    (found,) = conversations(file, report(), owner)
    assert [ready.pinned for ready in found.messages(lambda damage: None)] == [True, False]


def test_a_line_that_is_of_another_session_by_now_is_told_of(tmp_path: Path) -> None:
    file = swap_file(tmp_path, LINE)
    (found,) = conversations(file, report(), owner)
    swap_file(tmp_path, {**LINE, "sessionKey": "agent:main:direct:44"})
    damages: list[Damage] = []
    assert messages_of(found, damages) == []
    assert "run this again" in damages[0].reason


def test_a_file_that_was_pruned_while_it_was_read_is_told_of(tmp_path: Path) -> None:
    file = swap_file(tmp_path, LINE, {**LINE, "id": "b", "sessionKey": "other"})
    (_, other) = conversations(file, report(), owner)
    swap_file(tmp_path, *[{**LINE, "id": str(number)} for number in range(3)])
    damages: list[Damage] = []
    assert messages_of(other, damages) == []
    assert "run this again" in damages[0].reason


def test_a_folder_without_the_file_says_what_to_give(tmp_path: Path) -> None:
    report_ = report()
    assert conversations(tmp_path, report_, owner) == []
    assert report_.unreadable == 1
    assert "give the plugin's swap.jsonl" in report_.problems[0].reason


def test_an_odd_role_costs_its_line(tmp_path: Path) -> None:
    (found,) = conversations(swap_file(tmp_path, {**LINE, "role": ["user"]}, {**LINE, "id": "b"}), report(), owner)
    damages: list[Damage] = []
    assert [each.id for each in messages_of(found, damages)] == ["b"]
    assert "its role is ['user']" in damages[0].reason


def test_times_in_any_unit_are_understood_and_others_are_told(tmp_path: Path) -> None:
    noon = 1_778_414_400
    times = [noon, noon * 1000, str(noon * 1000), 10**400, "soon", None]
    lines = [{**LINE, "id": str(number), "ts": ts, "embedding": None} for number, ts in enumerate(times)]
    history, report_ = read(conversations, swap_file(tmp_path, *lines))
    told_at = [str(each.message.ts) for each in history.messages()]
    assert told_at == ["2026-05-10 12:00:00+00:00"] * 3 + ["2026-05-10 12:00:01+00:00"] * 3
    assert [(left.what, left.count) for left in report_.left_out] == [("times that are not understood", 2)]
