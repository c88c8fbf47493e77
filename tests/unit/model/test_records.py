"""Records are what they were made of, and say in their first field which kind they are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.model.lesson import Lesson, LessonSource
from offbook.model.record import (
    AgentRecord,
    LessonRecord,
    MarkRecord,
    MessageRecord,
    Record,
    RecordedSpan,
    SessionRecord,
    lesson_of,
    lesson_record,
    name_of,
    summary_record,
)
from offbook.model.summary import Loss, SourceSpan, Summary, SummaryDraft, Usage
from offbook.model.types import Message

AT = datetime(2026, 5, 10, 12, 0, 0, 123_456, tzinfo=UTC)
SPAN = RecordedSpan(session_id="chat", first_seq=1, last_seq=9, first_at=AT, last_at=AT)


def decoded(line: bytes) -> Record:
    record: Record = msgspec.json.decode(line, type=Record)
    return record


def lesson(**fields: Any) -> Lesson:
    given = {
        "id": "lesson-0007",
        "agent_id": "main",
        "kind": "fact",
        "text": "The cat is Ada.",
        "status": "edited",
        "confidence": 0.75,
        "first_seen": AT,
        "last_seen": AT,
        "times": 3,
        "sources": [LessonSource(session_id="chat", seq=2, at=AT)],
        "learnt_by": "rules",
        "about": "猫",
        "learnt_text": "The cat is Eve.",
        "replaced_by": "lesson-0009",
        "key": "cat",
    }
    return Lesson(**(given | fields))


def summary() -> Summary:
    draft = SummaryDraft(
        level=2,
        spans=[SourceSpan(session_id="chat", first_seq=1, last_seq=9)],
        text="Ada is the cat.\nBob is the dog.",
        rank=[1, 0],
        brief="Ada.",
        source_messages=9,
        source_tokens=99,
        tokens=9,
        first_at=AT,
        last_at=AT,
        summarizer="extractive",
        prompt_version="1",
        fingerprint="f",
        usage=Usage(input_tokens=3, dollars=0.125),
        sources=["L1-0001", "L1-0002"],
        kept=[Loss(kind="name", text="Ada", session_id="chat", seq=1)],
        losses=[Loss(kind="name", text="Eve", session_id="chat", seq=2)],
        lost=4,
    )
    return Summary(id="L2-0001", agent_id="main", made_at=AT, draft=draft)


@pytest.mark.parametrize(
    ("record", "type_", "name"),
    [
        (AgentRecord(agent_id="main"), "agent", "agent main"),
        (SessionRecord(session_id="chat", started_at=AT), "session", "session chat"),
        (
            MessageRecord(session_id="chat", seq=3, message=Message(role="user", content="x", ts=AT)),
            "message",
            "message chat#3",
        ),
        (MarkRecord(session_id="chat", seq=0, kind="start", at=AT), "mark", "mark chat#0 start"),
        (summary_record(summary(), [SPAN]), "summary", "summary L2-0001"),
        (lesson_record(lesson()), "lesson", "lesson-0007"),
    ],
)
def test_a_record_says_what_it_is_and_is_read_as_it_was(record: Record, type_: str, name: str) -> None:
    line = msgspec.json.encode(record)
    assert line.startswith(f'{{"type":"{type_}"'.encode())
    assert decoded(line) == record
    assert name_of(record) == name


def test_nothing_of_a_summary_is_lost_but_when_it_was_made() -> None:
    record = summary_record(summary(), [SPAN])
    for name in SummaryDraft.__struct_fields__:
        if name != "spans":
            assert getattr(record, name) == getattr(summary().draft, name), name
    assert b"madeAt" not in msgspec.json.encode(record)


def test_nothing_of_a_lesson_is_lost() -> None:
    assert lesson_of(lesson_record(lesson()), "main") == lesson()
    bare = lesson(about=None, learnt_text=None, replaced_by=None, sources=[], key="")
    assert lesson_of(lesson_record(bare), "other") == msgspec.structs.replace(bare, agent_id="other")


@given(text=st.text(), at=st.datetimes(datetime(1901, 1, 1), datetime(8999, 1, 1)), seq=st.integers(1, 2**32 - 1))
def test_whatever_was_said_comes_back(text: str, at: datetime, seq: int) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    message = Message(role="user", content=text, ts=at.replace(tzinfo=UTC), meta={text: [text]})
    record = MessageRecord(session_id="chat", seq=seq, message=message, redactions={"token": 1})
    line = msgspec.json.encode(record)
    assert decoded(line) == record
    assert msgspec.json.encode(decoded(line)) == line


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b'{"type":"other"}',
        b'{"type":"message","sessionId":"s","seq":0,"message":{"role":"user","content":"x"}}',
        b'{"type":"message","sessionId":"s","seq":4294967296,"message":{"role":"user","content":"x"}}',
        b'{"type":"message","sessionId":"","seq":1,"message":{"role":"user","content":"x"}}',
        b'{"type":"agent","agentId":"x","surplus":1}',
        b'{"type":"lesson","id":"../x"}',
    ],
)
def test_what_is_no_record_is_refused(line: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        decoded(line)


def test_a_lesson_without_more_is_short() -> None:
    line = msgspec.json.encode(
        lesson_record(lesson(about=None, learnt_text=None, replaced_by=None, sources=[], key=""))
    )
    assert set(msgspec.json.decode(line)) == {"type"} | {
        field.encode_name for field in msgspec.structs.fields(LessonRecord) if field.required
    }
