"""Records as files: the same bytes for the same records, and nothing is read that is not as it was written."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.model.errors import InvalidInput
from offbook.model.record import AgentRecord, MarkRecord, MessageRecord, Record, SessionRecord
from offbook.model.types import Content, Message
from offbook.transfer.record_files import (
    LONGEST_STRING_BYTES,
    ExportedAgent,
    batches,
    brought_back,
    line_of,
    moved_out,
    read_records,
    sources,
    write_agent,
    write_index,
)

AT = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)
LONG = "漢" * LONGEST_STRING_BYTES


def message(seq: int, content: Content = "Hello.", session: str = "chat", **fields: Any) -> MessageRecord:
    said = Message(role="user", content=content, ts=AT, **fields)
    return MessageRecord(session_id=session, seq=seq, message=said)


def memory(agent_id: str = "main", *more: Record) -> list[Record]:
    return [AgentRecord(agent_id=agent_id), SessionRecord(session_id="chat", started_at=AT), message(1), *more]


def written(root: Path, *memories: list[Record]) -> list[ExportedAgent]:
    root.mkdir()
    agents = []
    for records in memories:
        assert isinstance(records[0], AgentRecord)
        agents.append(write_agent(root, records[0].agent_id, records))
    write_index(root, agents)
    return agents


def read(root: Path) -> list[list[Record]]:
    return [list(read_records(source)) for source in sources(root)]


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


# ── out and in ────────────────────────────────────────────────────────────────────────────────


def test_what_was_written_is_read_and_written_the_same(tmp_path: Path) -> None:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": LONG}, {"type": "x", "x": {"$part": "x", "y": [LONG]}}]
    memories = [memory(), memory("../x", message(2, LONG)), memory("CON"), memory("漢🦉", message(2, blocks))]
    agents = written(tmp_path / "one", *memories)
    assert read(tmp_path / "one") == memories
    written(tmp_path / "two", *read(tmp_path / "one"))
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert len({agent.folder for agent in agents}) == 4
    for name in contents(tmp_path / "one"):
        assert ".." not in name.split("/")
        assert name.isascii()
    part = tmp_path / "one" / agents[1].folder / "parts" / sha256(LONG.encode()).hexdigest()
    assert part.read_text() == LONG
    assert max(map(len, (tmp_path / "one" / agents[1].folder / "memory.jsonl").read_bytes().split(b"\n"))) < 1_000


def test_it_is_for_its_owner_only(tmp_path: Path) -> None:
    written(tmp_path / "one", memory("main", message(2, LONG)))
    for path in (tmp_path / "one").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["$part", "$$part", "$$$part", "part", "$", "a"]), inner, max_size=2)
    ),
    max_leaves=12,
)


@given(value=JSON, long=st.booleans())
def test_what_is_moved_out_is_brought_back_whatever_it_looks_like(value: Any, long: bool) -> None:
    parts: dict[str, bytes] = {}
    given_value = {"$part": LONG, "x": value} if long else value
    moved = msgspec.json.decode(msgspec.json.encode(moved_out(given_value, parts.__setitem__)))
    assert brought_back(moved, lambda name: parts[name].decode()) == given_value
    assert len(parts) == long


def test_a_line_is_one_line() -> None:
    line = line_of(message(1, "one\ntwo\u2028three\x00"), lambda name, data: None)
    assert line.count(b"\n") == 1


# ── what is not as it was written ─────────────────────────────────────────────────────────────


def _without_index(root: Path) -> None:
    (root / "export.json").unlink()


def _of_tomorrow(root: Path) -> None:
    (root / "export.json").write_text('{"format": 2, "agents": []}')


def _nested(root: Path) -> None:
    (root / "export.json").write_text('{"agents":' + "[" * 100_000)


def _no_json(root: Path) -> None:
    (root / "export.json").write_bytes(b"\xff{")


def _pointing_outside(root: Path) -> None:
    index = json.loads((root / "export.json").read_text())
    index["agents"][0]["folder"] = "agents/.."
    (root / "export.json").write_text(json.dumps(index))


def _cut(root: Path) -> None:
    path = root / "agents" / "main" / "memory.jsonl"
    path.write_bytes(path.read_bytes()[:-20])


def _a_line_less(root: Path) -> None:
    path = root / "agents" / "main" / "memory.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def _changed(root: Path) -> None:
    path = root / "agents" / "main" / "memory.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Hello.", b"Hullo."))


def _without_memory(root: Path) -> None:
    (root / "agents" / "main" / "memory.jsonl").unlink()


def _without_part(root: Path) -> None:
    for path in (root / "agents" / "main" / "parts").iterdir():
        path.unlink()


def _changed_part(root: Path) -> None:
    for path in (root / "agents" / "main" / "parts").iterdir():
        path.write_text("something else")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_without_index, "no export.json"),
        (_of_tomorrow, "format 2"),
        (_no_json, "cannot be read"),
        (_nested, "cannot be read"),
        (_pointing_outside, "not in agents"),
        (_cut, "line 4"),
        (_a_line_less, "changed or cut"),
        (_changed, "changed or cut"),
        (_without_memory, "memory.jsonl is missing"),
        (_without_part, "is missing"),
        (_changed_part, "changed or cut"),
    ],
)
def test_damage_is_found(tmp_path: Path, damage: Callable[[Path], None], told: str) -> None:
    written(tmp_path / "one", memory("main", message(2, LONG)))
    damage(tmp_path / "one")
    with pytest.raises(InvalidInput, match=told):
        read(tmp_path / "one")


@pytest.mark.parametrize("name", ["../../../secret", "x", "0" * 63, "A" * 64])
def test_a_part_is_looked_for_among_the_parts_only(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("secret")
    document = msgspec.to_builtins(message(1))
    document["message"]["content"] = {"$part": name}
    path = tmp_path / "memory.jsonl"
    path.write_bytes(msgspec.json.encode(AgentRecord(agent_id="main")) + b"\n" + msgspec.json.encode(document) + b"\n")
    with pytest.raises(InvalidInput, match="no part's name"):
        read(path)


@pytest.mark.parametrize("content", [b"", b"{}\n", b"[" * 100_000, b"\x00\xff", b'{"type":"mark"}\n'])
def test_a_file_that_is_none_of_ours_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "memory.jsonl"
    path.write_bytes(content)
    with pytest.raises(InvalidInput):
        read(path)


# ── on the way ────────────────────────────────────────────────────────────────────────────────


@given(sizes=st.lists(st.integers(1, 30), max_size=20), most=st.integers(1, 9))
def test_batches_hold_everything_once_in_order_and_say_what_they_follow(sizes: list[int], most: int) -> None:
    records: list[Record] = [AgentRecord(agent_id="main")]
    for number, size in enumerate(sizes):
        records.append(SessionRecord(session_id=f"s{number}", started_at=AT))
        records += [message(seq, "x" * size, session=f"s{number}") for seq in range(1, size)]
        records.append(MarkRecord(session_id=f"s{number}", seq=size - 1, kind="end", at=AT))
    found = list(batches(iter(records), most_records=most, most_bytes=600))
    assert [record for batch in found for record in batch.records] == records
    place = 0
    for batch in found:
        assert len(batch.records) <= most
        first, before = batch.records[0], records[place - 1] if place else None
        goes_on = isinstance(first, MessageRecord | MarkRecord) and isinstance(before, MessageRecord)
        if goes_on:
            assert isinstance(before, MessageRecord)
            assert batch.follows is not None
            assert (batch.follows.session_id, batch.follows.seq) == (before.session_id, before.seq)
        if isinstance(first, SessionRecord | AgentRecord):
            assert batch.follows is None
        place += len(batch.records)
