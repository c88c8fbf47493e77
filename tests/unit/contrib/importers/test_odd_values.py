"""Whatever stands in a field of another program's record, the import goes on: each record is taken, or told of."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from offbook.client.history.conversations import Damage, ImportReport
from offbook.client.recorder import encoded
from offbook.openclaw.catalogue import Catalogue, conversation_of
from offbook.openclaw.places import Agent
from tests.unit.contrib.importers.continuity_state import EXCHANGES, day_file
from tests.unit.contrib.importers.continuity_state import said as archived
from tests.unit.contrib.importers.foreign_files import Lcm, chatgpt, claude, claude_message, code_line, node
from tests.unit.contrib.importers.openclaw_state import State
from tests.unit.contrib.importers.openclaw_state import said as host_said
from tests.unit.contrib.importers.reading_files import Read, read, write_json
from tests.unit.contrib.importers.summaries_state import entry, summaries
from tests.unit.contrib.importers.test_codex import meta
from tests.unit.contrib.importers.test_codex import said as codex_said

ODD = [
    None,
    True,
    -1.5,
    10**25,
    -(10**400),
    float("inf"),
    "",
    "\0",
    "half a character: \ud83d",
    "x" * 600,
    "0001-01-01T00:00:00+14:00",
    [],
    ["user"],
    {"type": ["text"]},
]
WORDS = ("sourdough", "lighthouse", "raincoat")
"""One in each record."""
Record = Any
Place = tuple[str | int, ...]


class Shape(NamedTuple):
    records: list[Record]
    write: Callable[[Path, Any, list[Record]], Path]
    """What is said of all of them together, and the records, into one file of the format under a folder."""
    head: Any = None


def _lines(name: str) -> Callable[[Path, Any, list[Record]], Path]:
    def write(folder: Path, head: Any, records: list[Record]) -> Path:
        lines = records if head is None else [head, *records]
        (folder / name).write_text("\n".join(map(json.dumps, lines)))
        return folder / name

    return write


def _continuity_db(folder: Path, _: Any, records: list[Record]) -> Path:
    file = folder / "continuity.db"
    file.unlink(missing_ok=True)
    connection = apsw.Connection(str(file))
    connection.execute(f"PRAGMA synchronous = OFF; {EXCHANGES.replace(' NOT NULL', '')}")
    for record in records:
        _insert(connection, "exchanges", record)
    connection.close()
    return file


def _lcm(folder: Path, _: Any, records: list[Record]) -> Path:
    file = folder / "lcm.db"
    file.unlink(missing_ok=True)
    database = Lcm(file)
    database.execute("PRAGMA synchronous = OFF")
    database.conversation("s", "agent:main:main")
    database.close()
    connection = apsw.Connection(str(file))
    connection.execute("DROP TABLE messages; DROP TABLE message_parts")
    connection.execute("CREATE TABLE messages (message_id, conversation_id, seq, role, content, created_at)")
    parts = "message_id, ordinal, part_type, text_content, tool_call_id, tool_name, tool_input, tool_output, metadata"
    connection.execute(f"CREATE TABLE message_parts ({parts})")
    for number, record in enumerate(records):
        fields = dict(record)
        _insert(connection, "message_parts", {"message_id": number, "ordinal": 0, **fields.pop("part", {})})
        _insert(connection, "messages", {"message_id": number, "conversation_id": 1, "seq": number, **fields})
    connection.close()
    return file


def _insert(connection: apsw.Connection, table: str, record: Record) -> None:
    """What SQLite has no value for goes in as JSON does: as a text."""
    values = [
        each
        if isinstance(each, str | float | None) or (isinstance(each, int) and abs(each) < 2**63)
        else json.dumps(each)
        for each in record.values()
    ]
    values = [each.encode(errors="replace").decode() if isinstance(each, str) else each for each in values]
    marks = ", ".join("?" for _ in values)
    connection.execute(f"INSERT INTO {table} ({', '.join(record)}) VALUES ({marks})", values)


def _summaries(folder: Path, head: Any, records: list[Record]) -> Path:
    summaries(folder, *((entry("L1", number, []), word) for number, word in enumerate(WORDS)))
    write_json(folder / "index.json", _holding(head, "levels", {"L1": records}))
    return folder


def _holding(head: Any, name: str, records: Any) -> Any:
    return head | {name: records} if isinstance(head, dict) else head


def _openclaw(folder: Path, _: Any, records: list[Record]) -> Path:
    state = folder / "state"
    sessions = state / "agents" / "main" / "sessions"
    if not sessions.exists():
        State(state)
    (sessions / "s.jsonl").write_text("\n".join(map(json.dumps, records)))
    return state


def _without(fields: dict[str, Any], name: str) -> dict[str, Any]:
    return {each: value for each, value in fields.items() if each != name}


SHAPES = {
    "swap-jsonl": Shape(
        [
            {"id": word, "ts": 1_715_000_000_000, "role": "user", "content": word, "sessionKey": "agent:main:a"}
            | {"embeddedAt": 1_715_000_000_000, "embedding": None, "pinned": False}
            for word in WORDS
        ],
        _lines("swap.jsonl"),
    ),
    "archive": Shape(
        [archived(f"08:00:0{number}", "user", word, sessionId="a", id=word) for number, word in enumerate(WORDS)],
        lambda folder, _, records: day_file(folder, records),
    ),
    "continuity-db": Shape(
        [
            {"id": word, "date": "2026-05-10", "exchange_index": number, "user_text": word, "agent_text": ""}
            | {"metadata": {"timestamp": f"2026-05-10T08:00:0{number}Z", "hasUser": True, "hasAgent": False}}
            | {"topic_tags": "[]", "thread_id": "t"}
            for number, word in enumerate(WORDS)
        ],
        _continuity_db,
    ),
    "summaries": Shape(
        [entry("L1", number, ["e1"]) for number in range(len(WORDS))],
        _summaries,
        {"version": 1, "agentId": "main", "worker": {"lastRunAt": 1_778_461_200_123}},
    ),
    "mem0": Shape(
        [
            {"id": word, "memory": word, "user_id": "ann", "created_at": "2026-05-10", "updated_at": 1_715_000_000}
            | {"categories": ["food"], "metadata": {"a": 1}}
            for word in WORDS
        ],
        lambda folder, head, records: write_json(folder / "m.json", _holding(head, "results", records)),
        {"count": 3, "relations": []},
    ),
    "chatgpt": Shape(
        [
            node(word, before, "user", word, at=1_700_000_000.5, metadata={"attachments": [], "model_slug": "m"})
            for before, word in zip(("root", *WORDS), WORDS, strict=False)
        ],
        lambda folder, head, records: write_json(
            folder / "conversations.json",
            [_holding(head, "mapping", {"root": {"id": "root"}} | dict(zip(WORDS, records, strict=True)))],
        ),
        _without(chatgpt(current=WORDS[-1]), "mapping"),
    ),
    "claude": Shape(
        [
            claude_message(word, "human", word, **({"parent": before} if before else {}))
            for before, word in zip(("", *WORDS), WORDS, strict=False)
        ],
        lambda folder, head, records: write_json(
            folder / "conversations.json", [_holding(head, "chat_messages", records)]
        ),
        _without(claude(), "chat_messages"),
    ),
    "claude-code": Shape(
        [code_line(word, "assistant", [{"type": "text", "text": word}]) for word in WORDS],
        _lines("s1.jsonl"),
        {"type": "custom-title", "customTitle": "Baking"},
    ),
    "codex": Shape(
        [codex_said("user", word, id=word) for word in WORDS],
        _lines("rollout-2026-05-01T10-00-00-x.jsonl"),
        meta(),
    ),
    "lcm": Shape(
        [
            {"role": "user", "content": word, "created_at": "2026-02-03 04:05:06"}
            | {"part": {"part_type": "text", "text_content": word, "tool_call_id": "c", "tool_name": "n"}}
            for word in WORDS
        ],
        _lcm,
    ),
    "openclaw": Shape([json.loads(host_said(word, word, model="m")) for word in WORDS], _openclaw),
}
NO_FIELDS: dict[str, tuple[Place, ...]] = {
    "openclaw": ((), ("type",)),  # what is no message there is bookkeeping of the host, of many kinds
    "chatgpt": ((), ("message",)),  # a node may hold no message
    "continuity-db": ((),),  # a row is a row
    "lcm": ((), ("part",)),
}
TOLD_ANYHOW = ("times", "lines of kind session_meta", "lines of kind custom-title")
"""What is no record, or is taken without it."""


def _places(value: Any, place: Place = ()) -> Iterator[Place]:
    yield place
    inside: Sequence[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value))
    for name, each in inside:
        yield from _places(each, (*place, name))


def _with(value: Any, place: Place, odd: Any) -> Any:
    """A copy that holds the odd value at that place."""
    if not place:
        return odd
    changed = copy.deepcopy(value)
    inside = changed
    for name in place[:-1]:
        inside = inside[name]
    inside[place[-1]] = odd
    return changed


def _read(form: str, path: Path) -> Read:
    if form != "openclaw":
        return read(form, path, agent_id="main")
    catalogue = Catalogue(path, Agent("main", path / "agents" / "main"))
    damages: list[Damage] = []
    found = [conversation_of(session) for session in catalogue.sessions()]
    sessions = {each.key: [ready.wire for ready in each.messages(damages.append)] for each in found}
    damages += catalogue.damages
    catalogue.close()
    return Read(sessions, {}, ImportReport(state=str(path), is_dry_run=True), damages)


def _unaccounted(found: Read) -> list[str]:
    """Those of the words that nothing was taken for or told of."""
    wires = [encoded(wire).decode() for wires in found.sessions.values() for wire in wires]
    missing = [word for word in WORDS if not any(word in wire for wire in wires)]
    told = found.report.total("skipped") + len(found.damages)
    told += sum(left.count for left in found.report.left_out if not left.what.startswith(TOLD_ANYHOW))
    is_whole = found.report.unreadable > 0 or any(damage.is_whole for damage in found.damages)
    taken_under_other_words = len(wires) - (len(WORDS) - len(missing))
    return [] if is_whole else missing[told + taken_under_other_words :]


@pytest.mark.parametrize("form", SHAPES)
def test_the_records_as_they_should_be_are_all_taken(tmp_path: Path, form: str) -> None:
    records, write, head = SHAPES[form]
    found = _read(form, write(tmp_path, head, records))
    assert (found.damages, found.report.problems) == ([], [])
    assert all(left.what.startswith(TOLD_ANYHOW[1:]) for left in found.report.left_out)
    assert sum(map(len, found.sessions.values())) == len(WORDS)


@pytest.mark.parametrize("form", SHAPES)
def test_an_odd_value_in_a_record_costs_at_most_that_record(tmp_path: Path, form: str) -> None:
    records, write, head = SHAPES[form]
    for place in _places(records[1]):
        if place in NO_FIELDS.get(form, ()):
            continue
        for odd in ODD:
            changed = [records[0], _with(records[1], place, odd), records[2]]
            assert _unaccounted(_read(form, write(tmp_path, head, changed))) == [], (place, odd)


@pytest.mark.parametrize("form", [form for form, shape in SHAPES.items() if shape.head is not None])
def test_an_odd_value_in_what_is_said_of_all_costs_no_record(tmp_path: Path, form: str) -> None:
    records, write, head = SHAPES[form]
    for place in _places(head):
        for odd in ODD if place else ():
            found = _read(form, write(tmp_path, _with(head, place, odd), records))
            assert _unaccounted(found) == [], (place, odd)
