from __future__ import annotations

import pytest

from offbook.errors import InvalidInput, WrongShape
from offbook.surfaces.wire import SHAPES, capture_claim, decode_request, encode_answer
from offbook.types import Message, Receipt


def test_field_names_are_camel_case_and_nothing_is_sent_for_nothing() -> None:
    request = decode_request("onMessage", b'{"sessionId":"s","message":{"role":"tool","content":"x","toolCallId":"c"}}')
    assert request.given() == [Message(role="tool", content="x", tool_call_id="c")]
    assert encode_answer(request.given()[0]) == b'{"role":"tool","content":"x","toolCallId":"c"}'
    receipt = Receipt(accepted=0, duplicates=0, first_seq=0, last_seq=0)
    assert encode_answer(receipt) == b'{"accepted":0,"duplicates":0,"firstSeq":0,"lastSeq":0}'


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b'{"sessionId":"s","mesage":{}}', "mesage"),
        (b'{"sessionId":"s","message":{"role":"user","content":"x","colour":1}}', "colour"),
        (b'{"message":{"role":"user","content":"x"}}', "sessionId"),
        (b'{"sessionId":7,"message":{"role":"user","content":"x"}}', "sessionId"),
        (b'{"sessionId":"s","message":{"role":"king","content":"x"}}', "role"),
        (b'{"sessionId":"s","message":{"role":"user","content":[1]}}', "content"),
        (b"[]", "object"),
    ],
)
def test_the_field_at_fault_is_named(body: bytes, named: str) -> None:
    with pytest.raises(WrongShape, match=named):
        decode_request("onMessage", body)


@pytest.mark.parametrize("body", [b"", b"  ", b"{", b'{"sessionId":"\xff"}', b'{"sessionId":"\\ud800"}', b"nonsense"])
def test_what_is_not_json_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode_request("onMessage", body)


def test_deep_nesting_is_refused() -> None:
    body = b'{"sessionId":"s","message":{"role":"user","content":[{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}}"
    with pytest.raises(InvalidInput):
        decode_request("onMessage", body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"sessionId":"s"}',
        b'{"sessionId":"s","message":{"role":"user","content":"x"},"messages":[{"role":"user","content":"x"}]}',
    ],
)
def test_one_of_message_and_messages(body: bytes) -> None:
    with pytest.raises(WrongShape, match="either"):
        decode_request("onMessage", body).given()


def test_ping_needs_no_body() -> None:
    assert decode_request("ping", b"") == SHAPES["ping"][0]()


def test_a_capture_claim_is_read() -> None:
    claim = capture_claim("client=laptop-1; first=12; last=20; sent=25", 9)
    assert (claim.client, claim.first, claim.last, claim.sent) == ("laptop-1", 12, 20, 25)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "client=a",
        "client=a; first=x; last=2; sent=2",
        "client=a; first=2; last=1; sent=9",
        "client=; first=1; last=1; sent=1",
        "client=a; first=1; last=1; sent=0",
        "client=a; first=0; last=0; sent=0",
        "client=a; first=1; last=5; sent=5",
    ],
)
def test_a_claim_that_cannot_be_is_refused(header: str) -> None:
    with pytest.raises(InvalidInput, match="Offbook-Capture"):
        capture_claim(header, 1)
