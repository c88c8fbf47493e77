"""`swap.jsonl` as the swap-memory plugin writes it, and the way there and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings

from offbook.model.types import Message
from offbook.transfer.documents.swap_jsonl import conversations, write
from offbook.transfer.provider_export import ExportedMessage
from tests.unit.contrib.importers.exported_history import AT, History, files_under, histories, read

LATER = AT.replace(minute=59)


def described(history: History, folder: Path) -> list[dict[str, object]]:
    write(history, folder)
    return [json.loads(line) for line in (folder / "swap.jsonl").read_text().splitlines()]


def said(text: str, role: str = "user", **fields: object) -> Message:
    return Message(role=role, content=text, ts=AT, **fields)  # type: ignore[arg-type]


def test_a_line_has_the_shape_of_the_document(tmp_path: Path) -> None:
    history = History(sessions={"agent:main:x": [said("周五之前把预算表交给王小姐，好吗 🐾", id="m1")]})
    assert described(history, tmp_path) == [
        {
            "id": "m1",
            "ts": "2026-05-10T23:58:00.000Z",
            "role": "user",
            "content": "周五之前把预算表交给王小姐，好吗 🐾",
            "embedding": None,
            "embeddedAt": None,
            "sessionKey": "agent:main:x",
            "contentLength": 18,
            "sourcePlugin": "swap-memory",
        }
    ]


def test_lines_are_in_order_of_time_across_sessions(tmp_path: Path) -> None:
    history = History()
    history.add("a", Message(role="user", content="the second thing said", ts=LATER, id="2"))
    history.add("b", Message(role="user", content="the first thing said", ts=AT, id="1"))
    assert [line["id"] for line in described(history, tmp_path)] == ["1", "2"]


def test_a_message_without_an_id_gets_one_that_is_the_same_each_time(tmp_path: Path) -> None:
    history = History(sessions={"chat": [said("one thing worth keeping"), said("another thing worth keeping")]})
    first, second = ([line["id"] for line in described(history, tmp_path / name)] for name in ("a", "b"))
    assert first == second
    assert len(set(first)) == 2


def test_what_has_no_place_is_counted(tmp_path: Path) -> None:
    call = {"type": "tool-call", "id": "c", "name": "read", "arguments": {}}
    image = {"type": "image", "mediaType": "image/png", "data": "aGk="}
    history = History(
        sessions={
            "chat": [
                said("the result of a tool", role="tool"),
                said("ok"),
                Message(
                    role="assistant", content=[{"type": "text", "text": "I am reading the file now."}, call], ts=AT
                ),
                Message(role="assistant", content=[call], ts=AT),
                Message(role="user", content=[{"type": "text", "text": "this"}, image], ts=AT),
                said("a message with a name", name="Alice"),
            ]
        },
        pinned={("chat", 6)},
    )
    written = write(history, tmp_path)
    assert (written.files, written.records) == (1, 2)
    assert {left.what: left.count for left in written.left_out} == {
        "messages of role tool": 1,
        "noise": 2,
        "tool calls": 2,
        "images and files": 1,
        "details of messages (name, model, origin, meta)": 1,
    }
    lines = [json.loads(line) for line in (tmp_path / "swap.jsonl").read_text().splitlines()]
    assert [line.get("pinned") for line in lines] == [None, True]


def test_noise_is_what_the_memory_marked_as_such(tmp_path: Path) -> None:
    class Marked(History):
        def messages(self) -> Iterator[ExportedMessage]:
            return (each._replace(noise="command") for each in super().messages())

    written = write(Marked(sessions={"chat": [said("What the memory has marked.")]}), tmp_path)
    assert (written.records, [left.what for left in written.left_out]) == (0, ["noise"])


def test_summaries_from_elsewhere_were_said_by_nobody(tmp_path: Path) -> None:
    history = History(
        sessions={"s": [said("A summary that was imported.", role="assistant", origin="memory:summaries")]}
    )
    written = write(history, tmp_path)
    assert (written.records, [left.what for left in written.left_out]) == (0, ["imported summaries"])


def test_one_id_in_two_sessions_comes_back_as_two_messages(tmp_path: Path) -> None:
    history = History(sessions={name: [said(f"what {name} has to say", id="m1")] for name in ("a", "b")})
    write(history, tmp_path)
    again, _ = read(conversations, tmp_path)
    assert [(each.session_id, each.message.id) for each in again.messages()] == [("a", "m1"), ("b", "m1")]


def test_nothing_is_left_beside_the_file(tmp_path: Path) -> None:
    write(History(sessions={"chat": [said("a thing worth keeping")]}), tmp_path)
    write(History(), tmp_path)
    assert files_under(tmp_path) == {"swap.jsonl": b""}


@settings(deadline=None)
@given(histories())
def test_written_read_and_written_again_is_the_same(history: History) -> None:
    with TemporaryDirectory() as folder:
        once, twice = Path(folder, "once"), Path(folder, "twice")
        written = write(history, once)
        again, report = read(conversations, once)
        assert write(again, twice).records == written.records
        assert files_under(twice) == files_under(once)
        assert not report.problems
