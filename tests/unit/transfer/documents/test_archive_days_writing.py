"""The archives of the continuity plugin, and the way there and back."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings

from offbook.model.types import Message
from offbook.transfer.documents.archive_days import conversations, write
from tests.unit.contrib.importers.exported_history import AT, History, files_under, histories, read

LATER = AT + timedelta(minutes=3)
ITS_OWN = "2026-05-11T00:01:00.000Z_agent"
"""The id that the reader gives it."""


def test_a_file_for_each_day_as_the_plugin_writes_it(tmp_path: Path) -> None:
    history = History()
    history.add("chat", Message(role="user", content="Is the bread done? 🥖", ts=AT, id="q"))
    history.add("archive:main", Message(role="assistant", content="明天早上。", ts=LATER, id=ITS_OWN))
    written = write(history, tmp_path)
    assert (written.files, written.records) == (2, 2)
    assert files_under(tmp_path) == {
        "archive/2026-05-10.json": """{
  "date": "2026-05-10",
  "messageCount": 1,
  "messages": [
    {
      "timestamp": "2026-05-10T23:58:00.000Z",
      "sender": "user",
      "text": "Is the bread done? 🥖",
      "sessionId": "chat",
      "id": "q"
    }
  ]
}""".encode(),
        "archive/2026-05-11.json": """{
  "date": "2026-05-11",
  "messageCount": 1,
  "messages": [
    {
      "timestamp": "2026-05-11T00:01:00.000Z",
      "sender": "agent",
      "text": "明天早上。",
      "sessionId": null
    }
  ]
}""".encode(),
    }


def test_a_short_answer_is_archived_too(tmp_path: Path) -> None:
    history = History(sessions={"chat": [Message(role="user", content="Yes", ts=AT)]})
    assert write(history, tmp_path).records == 1


def test_what_was_forgotten_is_no_word_of_anybody(tmp_path: Path) -> None:
    history = History(sessions={"chat": [Message(role="user", content="Is the bread done?", ts=AT)]})
    history.forgotten.add(("chat", 1))
    written = write(history, tmp_path)
    assert (written.files, written.records) == (0, 0)
    assert [(each.what, each.count) for each in written.left_out] == [("forgotten messages", 1)]


def test_no_message_gets_the_id_of_another(tmp_path: Path) -> None:
    history = History()
    history.add("chat", Message(role="user", content="first", ts=AT, id="other"))
    history.add("chat", Message(role="user", content="second", ts=AT))
    history.add("chat", Message(role="user", content="third", ts=AT, id="2026-05-10T23:58:00.000Z_user#2"))
    write(history, tmp_path)
    again, _ = read(conversations, tmp_path)
    assert [each.message.content for each in again.messages()] == ["first", "second", "third"]


def test_what_came_from_an_archive_goes_back_as_it_was(tmp_path: Path) -> None:
    day = tmp_path / "archive" / "2026-05-10.json"
    day.parent.mkdir()
    messages = [
        {"timestamp": "2026-05-10T08:00:00.000Z", "sender": "user", "text": "How long?", "sessionId": None},
        {"timestamp": "2026-05-10T08:00:04.250Z", "sender": "agent", "text": "72 hours.", "sessionId": None},
        {"timestamp": "2026-05-10T08:01:00.000Z", "sender": "agent", "text": "In the cold.", "sessionId": "s2"},
    ]
    document = {"date": "2026-05-10", "messageCount": 3, "messages": messages}
    day.write_text(json.dumps(document, indent=2))
    history, _ = read(conversations, tmp_path)
    write(history, tmp_path / "again")
    assert (tmp_path / "again/archive/2026-05-10.json").read_bytes() == day.read_bytes()


@settings(deadline=None)
@given(histories())
def test_written_read_and_written_again_is_the_same(history: History) -> None:
    with TemporaryDirectory() as folder:
        once, twice = Path(folder, "once"), Path(folder, "twice")
        written = write(history, once)
        if not written.records:
            return
        again, report = read(conversations, once)
        assert write(again, twice).records == written.records
        assert files_under(twice) == files_under(once)
        assert not report.problems
