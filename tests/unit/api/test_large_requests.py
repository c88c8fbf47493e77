"""Requests of very many JSON values: a content is kept as text, whatever else is refused."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from offbook.api import wire
from offbook.api.http import HttpSurface
from offbook.api.large_requests import MOST_VALUES, MOST_VALUES_OF_A_CONTEXT, values_in
from offbook.api.messages import Request
from offbook.api.metrics import Metrics
from offbook.ingest.fair_threads import LARGE_BYTES
from offbook.model.errors import TooLarge, WrongShape
from offbook.model.types import Message, Receipt

MANY = b"[" + b"1, " * MOST_VALUES + b"2]"
BLOCKS = b'[{"type": "tool-result", "toolCallId": "c", "content": ' + MANY + b"}]"


def on_message(*contents: bytes, more: bytes = b"") -> bytes:
    messages = b",".join(b'{"role":"tool","toolCallId":"c","content":%b%b}' % (each, more) for each in contents)
    return b'{"sessionId":"s","messages":[%b]}' % messages


def decoded(body: bytes, verb: str = "onMessage") -> list[Message]:
    messages: list[Message] = wire.decode_request(verb, body).arguments()["messages"]
    return messages


def test_values_are_counted_outside_of_texts() -> None:
    assert values_in(rb'{"a,[{\"": ["b\\", 1, {}], "c": "\\\\"}') == 6
    assert values_in(b'"' + b"," * 1_000 + b'"') == 0
    assert values_in(MANY) > MOST_VALUES


def test_a_content_of_too_many_values_is_kept_as_its_text() -> None:
    large, small = decoded(on_message(BLOCKS, b'"done"'))
    assert isinstance(large.content, str)
    assert json.loads(large.content) == json.loads(BLOCKS)
    assert (large.role, large.tool_call_id, small.content) == ("tool", "c", "done")
    assert type(large) is type(small) is Message
    assert decoded(on_message(BLOCKS.replace(b" ", b"\n")))[0] == large


@pytest.mark.parametrize("field", ["message", "messages"])
def test_it_is_the_same_message_however_it_is_sent(field: str) -> None:
    message = b'{"role":"user","content":%b,"meta":{"a":[null]},"name":null}' % BLOCKS
    given = message if field == "message" else b"[%b]" % message
    (read,) = decoded(b'{"sessionId":"s","%b":%b}' % (field.encode(), given))
    assert read.meta == {"a": [None]}
    (saved,) = decoded(b'{"sessionId":"s","messages":[%b]}' % message, "hooks/pre-compaction")
    assert saved == read


def test_a_long_text_is_a_text_whatever_stands_in_it() -> None:
    text = ',[{"\\' * MOST_VALUES
    (read,) = decoded(on_message(json.dumps(text).encode()))
    assert read.content == text


def test_messages_that_are_too_many_together_are_to_be_sent_apart() -> None:
    half = b'[{"type":"x","of":[%b1]}]' % (b"1," * (MOST_VALUES // 2 + 10))
    assert isinstance(decoded(on_message(half))[0].content, list)
    with pytest.raises(TooLarge, match="send fewer messages at a time"):
        decoded(on_message(half, half))


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        (on_message(b'"x"', more=b',"meta":{"a":%b}' % MANY), TooLarge),
        (on_message(MANY), WrongShape),
        (on_message(b'{"a":%b}' % MANY), WrongShape),
        (on_message(BLOCKS, more=b',"unknown":1'), WrongShape),
        (on_message(BLOCKS, more=b',"name":null,"ts":7'), WrongShape),
    ],
)
def test_what_cannot_be_kept_is_refused(body: bytes, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        decoded(body)


def test_other_verbs_take_so_many_values_at_the_most() -> None:
    with pytest.raises(TooLarge):
        wire.decode_request("recall", b'{"sessionId":"s","query":%b}' % MANY)
    too_many = b"[" + b"1, " * MOST_VALUES_OF_A_CONTEXT + b"2]"
    with pytest.raises(TooLarge):
        wire.decode_request("hooks/post-compaction", b'{"sessionId":"s","newContext":%b}' % too_many)


def test_a_whole_context_may_have_more_of_them() -> None:
    one = b'{"role":"tool","content":[{"type":"x","of":[%b1]}]}' % (b"1," * 150)
    context = b",".join([one] * (MOST_VALUES // 100))
    saved = decoded(b'{"sessionId":"s","messages":[%b]}' % context, "hooks/pre-compaction")
    assert isinstance(saved[-1].content, list)
    wire.decode_request("hooks/post-compaction", b'{"sessionId":"s","newContext":[%b]}' % context)


async def test_from_64_kb_on_a_request_is_decoded_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    decode_request = wire.decode_request

    def noting(verb: str, body: bytes) -> Any:
        threads.append(threading.get_ident())
        return decode_request(verb, body)

    class Recording:
        default_agent = "main"

        async def on_message(self, scope: Any, messages: list[Message], **_given: Any) -> Receipt:
            return Receipt(accepted=len(messages), duplicates=0, first_seq=1, last_seq=1)

    monkeypatch.setattr(wire, "decode_request", noting)
    memory: Any = Recording()
    surface = HttpSurface(memory, Metrics("0", lambda: 0), dict, is_socket=True, allowed_hosts=None)
    for size in (LARGE_BYTES - 1, LARGE_BYTES):
        empty = on_message(b'""')
        body = on_message(b'"%b"' % (b"x" * (size - len(empty))))
        assert len(body) == size
        assert (await surface(Request("POST", "/v1/onMessage", {}, body))).status == 200
    assert threads[0] == threading.get_ident() != threads[1]
