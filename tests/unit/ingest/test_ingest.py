from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from offbook.ingest.entries import check, in_utc, prepare
from offbook.log.audit_chain import fingerprint
from offbook.model.errors import WrongShape
from offbook.model.types import Message

KEY = b"k" * 32


def nested(levels: int) -> list[dict[str, object]]:
    value: object = "x"
    for _ in range(levels):
        value = [value]
    return [{"type": "odd", "value": value}]


@pytest.mark.parametrize(
    ("message", "named"),
    [
        (Message(role="user", content="x", id="a\x00b"), "message.id"),
        (Message(role="user", content="x", id="é" * 300), "message.id"),
        (Message(role="user", content="\ud800"), "surrogate"),
        (Message(role="user", content=[{"type": "text", "text": "\udfff"}]), "surrogate"),
        (Message(role="user", content=nested(200)), "message.content"),
        (Message(role="user", content="x", meta={"deep": nested(200)}), "message.meta"),
        (Message(role="user", content="x", name="a\x00"), "message.name"),
        (Message(role="user", content=[{"x": object()}]), "JSON"),
        (Message(role="user", content="x", ts=datetime(1, 1, 1)), "message.ts"),
        (Message(role="boss", content="x"), "role"),
        (Message(role="tool", content="x", meta="text"), "meta"),
        (Message(role="user", content=["x"]), "content"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name(message: Message, named: str) -> None:
    with pytest.raises(WrongShape, match=named):
        check(message)


def test_times_are_brought_to_utc() -> None:
    east = timezone(timedelta(hours=9))
    assert in_utc(datetime(2026, 11, 15, 9, tzinfo=east)) == datetime(2026, 11, 15, 0, tzinfo=UTC)
    assert in_utc(datetime(2026, 11, 15, 9)) == datetime(2026, 11, 15, 9, tzinfo=UTC)


def test_a_retry_has_the_same_fingerprint_whatever_its_time_and_meta() -> None:
    first = Message(role="user", content=[{"b": 1, "a": 2}], ts=datetime(2026, 1, 1, tzinfo=UTC), meta={"try": 1})
    again = Message(role="user", content=[{"a": 2, "b": 1}], meta={"try": 2})
    assert fingerprint(first) == fingerprint(again)
    assert fingerprint(first) != fingerprint(Message(role="assistant", content=[{"a": 2, "b": 1}]))


def test_an_ordinary_message_is_kept_as_it_came() -> None:
    message = Message(role="user", content=[{"type": "text", "text": "My cat is called Ada."}], id="1", meta={"a": 1})
    prepared = prepare(message, frame_key=KEY, externalise_over=65_536)
    assert prepared.entry.message == message
    assert (prepared.entry.noise, prepared.entry.redactions, prepared.large) == (None, {}, [])
    assert prepared.entry.chars == 21


def test_redaction_can_be_switched_off() -> None:
    secret = "AKIA" + "ABCDEFGHIJKLMNOP"
    message = Message(role="user", content=f"my key is {secret}")
    assert prepare(message, frame_key=KEY, externalise_over=100, redacts=False).entry.message == message
