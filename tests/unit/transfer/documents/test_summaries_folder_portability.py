"""Folders of the hierarchical memory plugin: as it writes them, and as nobody should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from offbook.client.history.conversations import Damage
from offbook.ingest.scope import resolve_agent
from offbook.transfer.documents.summaries_folder import conversations, write
from tests.unit.contrib.importers.exported_history import files_under, messages_of, owner, read, report
from tests.unit.contrib.importers.summaries_state import FIRST, MERGED, NIGHT_MS, SECOND, entry, page, summaries


def test_each_summary_is_a_message_and_keeps_what_is_known_of_it(tmp_path: Path) -> None:
    history, report_ = read(conversations, summaries(tmp_path / "summaries", FIRST, SECOND, MERGED))
    messages = history.sessions["summaries:main"]
    assert [(each.id, each.role, each.origin) for each in messages] == [
        ("L1-0001", "assistant", "memory:summaries"),
        ("L1-0002", "assistant", "memory:summaries"),
        ("L2-0001", "assistant", "memory:summaries"),
    ]
    assert [each.content for each in messages] == [FIRST[1], SECOND[1], MERGED[1]]
    assert messages[0].meta is not None
    assert messages[0].meta["summary"] == FIRST[0]
    assert messages[0].ts is not None
    assert messages[0].ts.timestamp() * 1000 == NIGHT_MS + 60_000
    assert not report_.problems


def test_the_folder_is_found_in_that_of_its_agent_who_is_named_in_the_index(tmp_path: Path) -> None:
    summaries(tmp_path / "memory" / "summaries", FIRST)
    (found,) = conversations(tmp_path, report(), lambda key: resolve_agent(key, None, "somebody"))
    assert (found.agent_id, found.key) == ("main", "summaries:main")
    (found,) = conversations(tmp_path, report(), lambda key: resolve_agent(key, "chosen", "somebody"))
    assert (found.agent_id, found.key) == ("chosen", "summaries:chosen")


def test_pages_speak_for_themselves_where_the_index_is_missing_or_broken(tmp_path: Path) -> None:
    folder = summaries(tmp_path, FIRST)
    for broken in (b"{", None):
        (folder / "index.json").unlink() if broken is None else (folder / "index.json").write_bytes(broken)
        history, report_ = read(conversations, folder)
        (message,) = history.sessions["summaries:main"]
        assert message.meta is not None
        known = {name: value for name, value in FIRST[0].items() if name != "mergedInto"}
        assert message.meta["summary"] == known
        assert report_.unreadable == (broken is not None)


def test_the_end_of_what_it_covers_is_its_time_where_that_is_said(tmp_path: Path) -> None:
    late = entry("L1", 1, [], lastAt=NIGHT_MS - 1_000)
    history, _ = read(conversations, summaries(tmp_path, (late, "Something of the day before.")))
    (message,) = history.sessions["summaries:main"]
    assert message.ts is not None
    assert message.ts.timestamp() * 1000 == NIGHT_MS - 1_000


def test_our_own_folder_is_read_as_well(tmp_path: Path) -> None:
    (tmp_path / "L1").mkdir()
    comment = json.dumps({"id": "L1-0001", "level": 1, "lastAt": "2026-05-10T12:00:00Z", "sources": []}, indent=2)
    (tmp_path / "L1" / "0001.md").write_text(f"<!--\n{comment}\n-->\n\nWe baked.\n")
    (tmp_path / "index.json").write_text('{"agentId": "main", "updatedAt": "2026-05-10T12:00:00Z", "summaries": [{}]}')
    history, _ = read(conversations, tmp_path)
    (message,) = history.sessions["summaries:main"]
    assert (message.id, message.content, str(message.ts)) == ("L1-0001", "We baked.\n", "2026-05-10 12:00:00+00:00")


def test_what_cannot_be_read_is_named_and_the_rest_is_taken(tmp_path: Path) -> None:
    empty = entry("L1", 3, [])
    summaries(tmp_path, FIRST, SECOND, (empty, " \n"))
    (tmp_path / "L1" / "0002.md").unlink()
    (tmp_path / "L1" / "0004.md").write_bytes(b"no comment, and \xff bytes")
    (tmp_path / "L1" / "0005.md").write_text(
        page(entry("L1", 5, []), "broken sources").replace("sourceIds: []", "sourceIds: [x")
    )
    (tmp_path / "L1" / ".0001.md.0a1b2c3d").write_text("unfinished")
    (tmp_path / "L1" / "a copy.md").write_text("a copy")
    (tmp_path / "L1" / "0006.md").mkdir()
    report_ = report()
    (found,) = conversations(tmp_path, report_, owner)
    damages: list[Damage] = []
    messages = messages_of(found, damages)
    assert sorted(each.id or "" for each in messages) == ["L1-0001", "L1-0004", "L1-0005"]
    assert [Path(damage.where).name for damage in damages] == ["0003.md"]
    assert [Path(problem.where).name for problem in report_.problems] == ["0006.md", "0002.md"]
    assert {left.what: left.count for left in report_.left_out} == {"files": 1, "summaries": 1}


def test_a_folder_without_summaries_says_what_to_give(tmp_path: Path) -> None:
    report_ = report()
    assert conversations(tmp_path, report_, owner) == []
    assert (report_.unreadable, "give the plugin's folder" in report_.problems[0].reason) == (1, True)


def test_times_in_seconds_are_understood_and_others_are_told(tmp_path: Path) -> None:
    seconds = entry("L1", 1, [], lastAt="soon", createdAt=NIGHT_MS // 1000)
    history, report_ = read(conversations, summaries(tmp_path, (seconds, "We baked.")))
    (message,) = history.sessions["summaries:main"]
    assert message.ts is not None
    assert message.ts.timestamp() * 1000 == NIGHT_MS
    assert [(left.what, left.count) for left in report_.left_out] == [("times that are not understood", 1)]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_page_that_an_editor_saved_goes_there_and_back(tmp_path: Path, mark: str, line_end: str) -> None:
    folder = summaries(tmp_path / "theirs" / "summaries", FIRST, SECOND)
    for file in folder.glob("L1/*.md"):
        file.write_bytes((mark + file.read_text().replace("\n", line_end)).encode())
    (folder / "L1" / "0003.md").write_bytes((mark + "no comment").encode())
    history, _ = read(conversations, folder)
    said = {each.id: each.content for each in history.sessions["summaries:main"]}
    assert said == {"L1-0001": FIRST[1], "L1-0002": SECOND[1].replace("\n", line_end), "L1-0003": "no comment"}
    write(history, tmp_path / "again")
    again = files_under(tmp_path / "again")
    assert {name: again[name] for name in again if name.endswith(".md")} == {
        name: content for name, content in files_under(tmp_path / "theirs").items() if name.endswith(".md")
    }
