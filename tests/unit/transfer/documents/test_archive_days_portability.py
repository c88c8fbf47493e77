"""Archives of the continuity plugin: as it writes them, and as nobody should."""

from __future__ import annotations

from pathlib import Path

from offbook.ingest.scope import resolve_agent
from offbook.transfer.documents.archive_days import conversations
from tests.unit.contrib.importers.continuity_state import day_file, said
from tests.unit.contrib.importers.exported_history import History, read, report

TALK = [
    said("08:00:00.000", "user", "How long does the sourdough rest?"),
    said("08:00:04.250", "agent", "72 hours."),
    said("08:01:00.000", "agent", "冷藏 🥖"),
]


def described(history: History) -> list[tuple[str, str | None, str, object]]:
    return [(each.session_id, each.message.id, each.message.role, each.message.content) for each in history.messages()]


def test_messages_of_an_older_plugin_have_no_session(tmp_path: Path) -> None:
    day_file(tmp_path, TALK)
    day_file(tmp_path, [{**TALK[0], "timestamp": "2026-05-11T09:00:00.000Z"}], day="2026-05-11")
    (tmp_path / "archive" / "notes.json").write_text("{}")
    history, report_ = read(conversations, tmp_path)
    assert described(history) == [
        ("archive:main", "2026-05-10T08:00:00.000Z_user", "user", "How long does the sourdough rest?"),
        ("archive:main", "2026-05-10T08:00:00.000Z_agent", "assistant", "72 hours."),
        ("archive:main", "2026-05-10T08:01:00.000Z_agent", "assistant", "冷藏 🥖"),
        ("archive:main", "2026-05-11T09:00:00.000Z_user", "user", "How long does the sourdough rest?"),
    ]
    assert str(list(history.messages())[1].message.ts) == "2026-05-10 08:00:04.250000+00:00"
    assert not report_.problems


def test_the_session_is_the_one_that_the_file_names(tmp_path: Path) -> None:
    file = day_file(
        tmp_path, [{**TALK[0], "sessionId": "s1"}, {**TALK[1], "sessionId": "s1"}, {**TALK[2], "sessionId": None}]
    )
    history, _ = read(conversations, file)
    assert [each[0] for each in described(history)] == ["s1", "s1", "archive:main"]


def test_two_messages_of_one_moment_are_two(tmp_path: Path) -> None:
    day_file(tmp_path, [TALK[0], TALK[0], TALK[0]])
    history, _ = read(conversations, tmp_path)
    assert len(history.sessions["archive:main"]) == 3


def test_a_day_that_grew_keeps_the_ids_it_had(tmp_path: Path) -> None:
    day_file(tmp_path, TALK[:2])
    before, _ = read(conversations, tmp_path)
    day_file(tmp_path, TALK)
    after, _ = read(conversations, tmp_path)
    assert described(after)[:2] == described(before)


def test_the_folder_of_another_agent_names_it(tmp_path: Path) -> None:
    data = tmp_path / "data" / "agents" / "helper"
    day_file(data, TALK)
    (found,) = conversations(data, report(), lambda key: resolve_agent(key, None, "main"))
    assert (found.agent_id, found.key) == ("helper", "archive:helper")
    (found,) = conversations(data, report(), lambda key: resolve_agent(key, "chosen", "main"))
    assert (found.agent_id, found.key) == ("chosen", "archive:chosen")


def test_what_cannot_be_read_is_named_and_the_rest_is_taken(tmp_path: Path) -> None:
    day_file(tmp_path, [7, {**TALK[0], "sender": ["x"]}, {**TALK[0], "text": None}, {**TALK[0], "text": ""}, TALK[0]])
    day_file(tmp_path, [{**TALK[0], "timestamp": "soon"}], day="2026-05-12")
    (tmp_path / "archive" / "2026-05-11.json").write_text('{"messages": [')
    (tmp_path / "archive" / "2026-05-13.json").write_text("[]")
    history, report_ = read(conversations, tmp_path)
    assert len(described(history)) == 2
    assert str(list(history.messages())[1].message.ts) == "2026-05-12 00:00:00+00:00"
    assert (report_.unreadable, report_.agent("main").skipped) == (2, 3)
    assert [(left.what, left.count) for left in report_.left_out] == [
        ("messages without text", 1),
        ("times that are not understood", 1),
    ]


def test_a_message_without_a_time_is_of_the_one_before_it(tmp_path: Path) -> None:
    day_file(tmp_path, [TALK[0], {**TALK[1], "timestamp": None}])
    history, _ = read(conversations, tmp_path)
    first, second = history.messages()
    assert first.message.ts == second.message.ts


def test_a_folder_without_archives_says_what_to_give(tmp_path: Path) -> None:
    history, report_ = read(conversations, tmp_path)
    assert not history.sessions
    assert (report_.unreadable, "give the folder" in report_.problems[0].reason) == (1, True)


def test_times_in_seconds_are_understood(tmp_path: Path) -> None:
    day_file(tmp_path, [{**TALK[0], "timestamp": 1_778_400_000}])
    history, report_ = read(conversations, tmp_path)
    assert str(next(history.messages()).message.ts) == "2026-05-10 08:00:00+00:00"
    assert not report_.left_out
