"""What is found, under which key, in which order, in every form that the host keeps it in."""

from __future__ import annotations

import json
import os

from offbook.openclaw.catalogue import Catalogue, messages
from offbook.openclaw.places import Agent
from offbook.openclaw.transcripts import Damage
from tests.unit.contrib.importers.openclaw_state import AT_MS, State, cold, compressed, head, said, text

WHEN = "2025-10-09T09-00-00.000Z"


def messages_of(state: State, damages: list[Damage] | None = None) -> dict[str, list[str]]:
    """The ids of every session's messages."""
    catalogue = Catalogue(state.folder, Agent("main", state.agent))
    found = damages if damages is not None else []
    try:
        sessions = catalogue.sessions()
        ids = {session.key: [ready.wire["id"] for ready in messages(session, found.append)] for session in sessions}
    finally:
        catalogue.close()
    found += catalogue.damages
    assert damages is not None or not found
    return ids


def test_the_database_is_told_in_the_order_written_with_all_branches(state: State) -> None:
    change = json.dumps({"type": "model_change", "id": "x"})
    state.store("s", "agent:main:main", head("s"), said("1", "a"), change, said("2", "b"), said("3", "other branch"))
    assert messages_of(state) == {"agent:main:main": ["1", "2", "3"]}


def test_incognito_sessions_are_left_out_and_counted(state: State) -> None:
    state.store("s", "agent:main:main", said("1", "a"))
    state.store("p", "agent:main:dashboard:incognito-7", said("2", "b"))
    state.list_sessions({"agent:main:subagent:incognito-8": {"sessionId": "q"}})
    (state.sessions / "q.jsonl").write_text(text(head("q"), said("3", "c")))
    state.store("r", "agent:main:dashboard:7", said("4", "d"))
    catalogue = Catalogue(state.folder, Agent("main", state.agent))
    assert [session.key for session in catalogue.sessions()] == ["agent:main:dashboard:7", "agent:main:main"]
    assert catalogue.incognito == 2
    catalogue.close()


def test_compressed_rows_are_read(state: State) -> None:
    state.store("s", "agent:main:main", said("1", "a" * 5_000_000), said("2", "b"), packed=True)
    assert messages_of(state) == {"agent:main:main": ["1", "2"]}


def test_windows_of_one_key_are_told_in_order_of_time(state: State) -> None:
    state.store("a-later", "agent:main:main", said("2", "b"), at_ms=AT_MS + 1)
    state.store("b-earlier", "agent:main:main", said("1", "a"), at_ms=AT_MS)
    assert messages_of(state) == {"agent:main:main": ["1", "2"]}


def test_more_rows_than_are_read_at_a_time(state: State) -> None:
    ids = [str(number) for number in range(1_000)]
    state.store("s", "agent:main:main", *(said(each, "a") for each in ids))
    assert messages_of(state) == {"agent:main:main": ids}


def test_files_of_older_hosts_are_told_under_the_keys_of_their_lists(state: State) -> None:
    topic = {"sessionId": "t", "sessionFile": "/elsewhere/sessions/t-topic-9.jsonl"}
    state.list_sessions(
        {"main": {"sessionId": "s2", "usageFamilySessionIds": ["s1"]}, "agent:main:telegram:group:7": topic}
    )
    (state.sessions / f"s1.jsonl.reset.{WHEN}").write_text(text(head("s1", 1), said("1", "a")))
    (state.sessions / "s2.jsonl").write_text(text(head("s2", 2), said("2", "b")))
    (state.sessions / "t-topic-9.jsonl").write_text(text(head("t", 3), said("3", "c")))
    assert messages_of(state) == {"agent:main:main": ["1", "2"], "agent:main:telegram:group:7": ["3"]}


def test_a_list_kept_as_a_backup_still_knows_keys_but_the_newest_holds(state: State) -> None:
    state.list_sessions(
        {"agent:main:old": {"sessionId": "a"}, "agent:main:b": {"sessionId": "b"}}, "sessions.json.bak.1"
    )
    backup = state.sessions / "sessions.json.bak.1"
    os.utime(backup, (backup.stat().st_mtime + 60,) * 2)  # copied about later: its time says nothing
    state.list_sessions({"agent:main:new": {"sessionId": "a"}})
    (state.sessions / "a.jsonl").write_text(text(head("a"), said("1", "a")))
    (state.sessions / "b.jsonl").write_text(text(head("b"), said("2", "b")))
    assert messages_of(state) == {"agent:main:new": ["1"], "agent:main:b": ["2"]}


def test_a_session_that_nobody_knows_the_key_of_goes_under_its_id(state: State) -> None:
    (state.sessions / f"gone.jsonl.deleted.{WHEN}.zst").write_bytes(compressed(head("gone"), said("1", "a")))
    assert messages_of(state) == {"agent:main:archived:gone": ["1"]}


def test_an_archive_may_be_compressed_in_several_frames(state: State) -> None:
    frames = compressed(head("s"), said("1", "a")) + compressed(said("2", "b"))
    (state.sessions / f"s.jsonl.reset.{WHEN}.zst").write_bytes(frames)
    assert messages_of(state) == {"agent:main:archived:s": ["1", "2"]}


def test_the_database_knows_the_key_of_what_was_deleted_and_keeps_what_has_no_file(state: State) -> None:
    names = [f"{each}.jsonl.deleted.{WHEN}.zst" for each in ("a", "b")]
    blobs = [compressed(head("a"), said("1", "in both")), compressed(head("b"), said("2", "in the database"))]
    (state.sessions / names[0]).write_bytes(blobs[0])
    connection = state.connect()
    for name, blob in zip(names, blobs, strict=True):
        row = (name[0], "g", f"agent:main:{name[0]}", "deleted", "zstd", blob, name, AT_MS)
        list(connection.execute("INSERT INTO session_transcript_archives VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row))
    connection.close()
    assert messages_of(state) == {"agent:main:a": ["1"], "agent:main:b": ["2"]}


def test_cold_transcripts_lie_in_files_or_in_the_database(state: State) -> None:
    names = [f"{each * 64}.jsonl.zst" for each in "ab"]
    (state.sessions / "cold" / names[0]).write_bytes(cold("k1", head("k1"), said("1", "a")))
    state.store("k1", "agent:main:one")
    state.store("k2", "agent:main:two")
    connection = state.connect()
    in_database = cold("k2", head("k2"), said("2", "b"))
    for row in [("k1", names[0], "file", None), ("k2", names[1], "sqlite", in_database)]:
        list(connection.execute("INSERT INTO session_transcript_cold_archives VALUES (?, ?, ?, ?)", row))
    connection.close()
    assert messages_of(state) == {"agent:main:one": ["1"], "agent:main:two": ["2"]}


def test_a_cold_transcript_whose_file_is_gone_is_named(state: State) -> None:
    state.store("k", "agent:main:one")
    connection = state.connect()
    row = ("k", f"{'a' * 64}.jsonl.zst", "file", None)
    list(connection.execute("INSERT INTO session_transcript_cold_archives VALUES (?, ?, ?, ?)", row))
    connection.close()
    damages: list[Damage] = []
    assert messages_of(state, damages) == {"agent:main:one": []}
    assert [damage.is_whole for damage in damages] == [True]
    assert "restore it from a backup" in damages[0].reason


def test_what_lies_in_several_places_is_told_once(state: State) -> None:
    """The file as it was when the host moved it into its database, and what came after."""
    imported = state.agent / "session-sqlite-import-archive"
    imported.mkdir()
    original = text(head("s"), said("1", "a"), said("2", "b"))
    (imported / "agent_main_main.s.jsonl.imported-1760000000000").write_text(original)
    state.store("s", "agent:main:main", said("1", "a"), said("2", "b"), said("3", "c"))
    assert messages_of(state) == {"agent:main:main": ["1", "2", "3"]}


def test_an_agent_without_anything(state: State) -> None:
    assert messages_of(state) == {}


def test_what_the_host_was_told_to_forget_is_left_out(state: State) -> None:
    state.store("s", "agent:main:main", said("1", "a"))
    state.store("t", "agent:main:main", said("2", "b"))
    (state.sessions / f"gone.jsonl.deleted.{WHEN}.zst").write_bytes(compressed(head("gone"), said("3", "c")))
    connection = state.connect()
    list(connection.execute("INSERT INTO memory_session_tombstones VALUES ('s'), ('gone'), ('long ago')"))
    connection.close()
    catalogue = Catalogue(state.folder, Agent("main", state.agent))
    assert [(each.key, len(each.transcripts)) for each in catalogue.sessions()] == [("agent:main:main", 1)]
    assert catalogue.forgotten == 2
    catalogue.close()
