from __future__ import annotations

from typing import Any

import msgspec
import pytest

from offbook.api.verbs import VERBS
from offbook.api.wire import capture_claim, decode_request, encode_answer
from offbook.model.errors import InvalidInput, WrongShape
from offbook.model.types import Message, Receipt

OF_A_SESSION: dict[str, Any] = {"sessionId": "s"}
SMALLEST: dict[str, dict[str, Any]] = {
    "onMessage": {**OF_A_SESSION, "message": {"role": "user", "content": "x"}},
    "getCompressedContext": {**OF_A_SESSION, "maxChars": 9},
    "swap": {**OF_A_SESSION, "usedTokens": 1, "contextWindow": 2},
    "replay": {**OF_A_SESSION, "at": "2026-01-01T00:00:00Z"},
    "jobs/complete": {"jobId": "j", "text": "x", "usage": {}},
    "jobs/fail": {"jobId": "j"},
    "recall": {**OF_A_SESSION, "query": "x"},
    "prepareTurn": {**OF_A_SESSION, "prompt": "x"},
    "enrich": {**OF_A_SESSION, "query": "x"},
    "unlink": {"entryId": "m1"},
    "lessons/judge": {"lessonId": "lesson-0001", "verdict": "accept"},
    "forget": {"reason": "", "matching": "x"},
    "import": {"records": []},
    "hooks/pre-compaction": OF_A_SESSION,
    "hooks/post-compaction": OF_A_SESSION,
    "hooks/session-start": OF_A_SESSION,
    "hooks/session-end": OF_A_SESSION,
    "log": OF_A_SESSION,
    "missing": {**OF_A_SESSION, "ids": ["1"]},
}
"""What each verb must be given; the others need nothing."""


def test_field_names_are_camel_case_and_nothing_is_sent_for_nothing() -> None:
    request = decode_request("onMessage", b'{"sessionId":"s","message":{"role":"tool","content":"x","toolCallId":"c"}}')
    assert request.arguments()["messages"] == [Message(role="tool", content="x", tool_call_id="c")]
    assert encode_answer(request.arguments()["messages"][0]) == b'{"role":"tool","content":"x","toolCallId":"c"}'
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


def test_the_byte_that_is_no_utf8_is_counted_in_the_body() -> None:
    body = b'{"sessionId":"s","message":{"role":"user","content":"caf\xff"}}'
    with pytest.raises(InvalidInput, match=f"not valid UTF-8 at byte {body.index(0xFF)}:"):
        decode_request("onMessage", body)


@pytest.mark.parametrize("verb", VERBS)
def test_null_for_a_field_that_may_be_left_out_is_the_field_left_out(verb: str) -> None:
    shape = VERBS[verb].request
    given = SMALLEST.get(verb, {})
    optional = [field.encode_name for field in msgspec.structs.fields(shape) if not field.required]
    nulls = {name: None for name in optional if name not in given}
    expected = decode_request(verb, msgspec.json.encode(given))
    assert decode_request(verb, msgspec.json.encode({**given, **nulls})) == expected


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("recall", b'{"sessionId":null,"query":"x","limit":null}'),
        ("getCompressedContext", b'{"sessionId":"s","maxChars":null}'),
        ("onMessage", b'{"sessionId":"s","message":{"role":"user","content":null}}'),
        ("recall", b'{"sessionId":"s","query":"x","limt":null}'),
        ("recall", b'{"sessionId":"s","query":"x","limit":null,"explain":"yes"}'),
    ],
)
def test_null_for_a_field_that_is_needed_or_unknown_is_refused(verb: str, body: bytes) -> None:
    with pytest.raises(WrongShape):
        decode_request(verb, body)


def test_nulls_within_fields_are_left_out_and_those_that_a_host_keeps_stay() -> None:
    job = decode_request("jobs/complete", b'{"jobId":"j","text":"x","usage":{"inputTokens":3,"dollars":null}}')
    assert (job.usage.input_tokens, job.usage.dollars) == (3, 0.0)
    record = (
        b'{"type":"message","sessionId":"s","seq":1,"redactions":null,"message":{"role":"tool","name":null,'
        b'"content":[{"type":"tool-result","toolCallId":"c","content":null}],"meta":{"redactions":null}}}'
    )
    (taken,) = decode_request("import", b'{"done":null,"records":[' + record + b"]}").records
    assert taken.redactions == {}
    assert taken.message.content == [{"type": "tool-result", "toolCallId": "c", "content": None}]
    assert taken.message.meta == {"redactions": None}


@pytest.mark.parametrize("context", [b"5", b"1.5", b"true", b"false"])
def test_a_new_context_of_the_wrong_type_is_refused(context: bytes) -> None:
    with pytest.raises(WrongShape, match="newContext"):
        decode_request("hooks/post-compaction", b'{"sessionId":"s","newContext":' + context + b"}")


@pytest.mark.parametrize("context", ["a text", [{"role": "user", "content": "x"}], {"text": "x"}, None])
def test_a_new_context_is_a_text_messages_or_an_object(context: object) -> None:
    body = msgspec.json.encode({"sessionId": "s", "newContext": context})
    assert decode_request("hooks/post-compaction", body).new_context == context


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
        decode_request("onMessage", body).arguments()


def test_ping_needs_no_body() -> None:
    assert decode_request("ping", b"") == VERBS["ping"].request()


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
