"""The database of the continuity plugin, read without the extension that it was written with."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.client.history.conversations import Damage
from offbook.transfer.documents import archive_days, continuity_db
from offbook.transfer.documents.continuity_db import conversations
from tests.unit.contrib.importers.continuity_state import DAY, OLDER, database, day_file, said
from tests.unit.contrib.importers.exported_history import History, messages_of, owner, read, report

TALK = [
    said("08:00:00.000", "user", "How long does the sourdough rest?"),
    said("08:00:04.250", "agent", "72 hours."),
    said("08:01:00.000", "agent", "冷藏 🥖"),
    said("08:02:00.000", "user", "Thank you."),
]


def described(history: History) -> list[tuple[str, str | None, str, object]]:
    return [(each.session_id, each.message.id, each.message.role, each.message.content) for each in history.messages()]


def test_both_sides_of_each_exchange_and_no_vectors(tmp_path: Path) -> None:
    file = database(tmp_path, {DAY: TALK})
    history, report_ = read(conversations, file)
    assert described(history) == [
        ("archive:main", "2026-05-10T08:00:00.000Z_user", "user", "How long does the sourdough rest?"),
        ("archive:main", "2026-05-10T08:00:00.000Z_agent", "assistant", "72 hours."),
        ("archive:main", "2026-05-10T08:01:00.000Z_agent", "assistant", "冷藏 🥖"),
        ("archive:main", "2026-05-10T08:02:00.000Z_user", "user", "Thank you."),
    ]
    assert [(left.what, left.count) for left in report_.left_out] == [("vectors", 3)]
    assert next(history.messages()).message.meta == {"exchangeId": "exchange_2026-05-10_0"}


def test_nothing_is_written_beside_the_database(tmp_path: Path) -> None:
    file = database(tmp_path, {DAY: TALK})
    before = file.read_bytes()
    read(conversations, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["continuity.db"]
    assert file.read_bytes() == before


def test_while_the_plugin_has_it_open(tmp_path: Path) -> None:
    file = database(tmp_path, {DAY: TALK}, OLDER)
    plugin = apsw.Connection(str(file))
    plugin.execute("PRAGMA journal_mode = WAL")
    plugin.execute("UPDATE exchanges SET agent_text = 'Three days.' WHERE exchange_index = 0")
    history, _ = read(conversations, file)
    plugin.close()
    assert described(history)[1][3] == "Three days."


def test_the_database_of_an_older_plugin(tmp_path: Path) -> None:
    history, report_ = read(conversations, database(tmp_path, {DAY: TALK}, OLDER))
    assert len(described(history)) == 4
    assert not report_.left_out


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["user", "agent"])), min_size=1, max_size=12))
def test_a_message_has_one_id_in_the_archive_and_in_the_database(talk: list[tuple[int, str]]) -> None:
    messages: list[dict[str, Any]] = [
        said(f"08:0{minute}:00.000", sender, f"{number}")
        for number, (minute, sender) in enumerate(sorted(talk, key=lambda each: each[0]))
    ]
    with TemporaryDirectory() as folder:
        day_file(Path(folder, "a"), messages)
        database(Path(folder, "b"), {DAY: messages})
        archived, _ = read(archive_days.conversations, Path(folder, "a"))
        indexed, _ = read(continuity_db.conversations, Path(folder, "b"))
    assert sorted(described(archived), key=str) == sorted(described(indexed), key=str)


def test_the_archives_beside_it_say_the_session_and_the_time_of_the_answer(tmp_path: Path) -> None:
    messages = [{**message, "sessionId": "s1"} for message in TALK]
    database(tmp_path, {DAY: messages, "2026-05-09": [{**TALK[0], "timestamp": "2026-05-09T08:00:00.000Z"}]})
    day_file(tmp_path, messages)
    archived, _ = read(archive_days.conversations, tmp_path)
    indexed, _ = read(conversations, tmp_path)
    assert described(archived) == [each for each in described(indexed) if each[0] == "s1"]
    assert [each[0] for each in described(indexed)].count("archive:main") == 1
    assert [each.ts for each in archived.sessions["s1"]] == [each.ts for each in indexed.sessions["s1"]]


def test_what_cannot_be_read_is_named_and_the_rest_is_taken(tmp_path: Path) -> None:
    file = database(tmp_path, {DAY: TALK}, OLDER)
    plugin = apsw.Connection(str(file))
    plugin.execute("UPDATE exchanges SET metadata = '{', date = 'soon' WHERE exchange_index = 0")
    plugin.execute("UPDATE exchanges SET metadata = NULL, agent_text = x'00ff' WHERE exchange_index = 1")
    plugin.execute("UPDATE exchanges SET user_text = '' WHERE exchange_index = 2")
    plugin.execute("INSERT INTO exchanges (id, date, user_text, agent_text) VALUES ('x', '2026-05-11', 'a', 'b')")
    plugin.close()
    history, report_ = read(conversations, file)
    assert [each[3] for each in described(history)] == ["a", "b"]
    assert report_.agent("main").skipped == 2
    assert [(left.what, left.count) for left in report_.left_out] == [("texts", 2)]


def test_a_file_that_is_no_such_database_says_so(tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish.db"
    rubbish.write_bytes(b"not a database" * 500)
    other = tmp_path / "other.db"
    apsw.Connection(str(other)).execute("CREATE TABLE t (a)")
    for path in (rubbish, other, tmp_path):
        report_ = report()
        assert conversations(path, report_, owner) == []
        assert report_.unreadable == 1
    for path in (rubbish, other):
        assert "it lies in the plugin's data folder" in _reason(path)
    assert "is no SQLite database" in _reason(rubbish)


def _reason(path: Path) -> str:
    report_ = report()
    conversations(path, report_, owner)
    return report_.problems[0].reason


def test_a_database_that_goes_away_is_told_of(tmp_path: Path) -> None:
    file = database(tmp_path, {DAY: TALK}, OLDER)
    (found,) = conversations(file, report(), owner)
    file.unlink()
    damages: list[Damage] = []
    assert messages_of(found, damages) == []
    assert damages[0].is_whole


def test_a_time_that_is_not_understood_is_told_and_the_day_stands_for_it(tmp_path: Path) -> None:
    file = database(tmp_path, {DAY: TALK[:2]}, OLDER)
    plugin = apsw.Connection(str(file))
    plugin.execute("UPDATE exchanges SET metadata = '{\"timestamp\": 1778400000}'")
    assert str(next(read(conversations, file)[0].messages()).message.ts) == "2026-05-10 08:00:00+00:00"
    plugin.execute(f"UPDATE exchanges SET metadata = '{{\"timestamp\": 1{'0' * 400}}}'")
    plugin.close()
    history, report_ = read(conversations, file)
    assert {str(each.message.ts) for each in history.messages()} == {"2026-05-10 00:00:00+00:00"}
    assert [(left.what, left.count) for left in report_.left_out] == [("times that are not understood", 1)]
