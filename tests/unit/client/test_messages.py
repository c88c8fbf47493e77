from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from offbook.client.messages import message_of
from offbook.client.recorder import outgoing
from offbook.model.content import tool_calls, tool_results
from offbook.model.errors import WrongShape
from offbook.model.types import Message

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def test_messages_of_every_kind_are_understood() -> None:
    said = Message(role="user", content="hi")
    assert message_of(said) is said
    assert message_of(("user", "hi")) == said
    assert message_of({"role": "user", "content": "hi", "id": None, "name": None}) == said
    dated = message_of({"role": "user", "content": "hi", "ts": "2026-01-02T03:04:05Z", "model": "m"})
    assert (dated.ts, dated.model) == (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "m")


def test_a_message_of_openai_is_taken_as_it_is() -> None:
    called = message_of({"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None})
    assert (called.content, tool_calls(called), called.meta) == ("", ["c1"], {"tool_calls": [CALL]})
    assert tool_results(message_of({"role": "tool", "tool_call_id": "c1", "content": "seen"})) == ["c1"]
    assert message_of({"role": "developer", "content": "Be brief."}).role == "system"
    kept = message_of({"role": "assistant", "content": "Hi.", "annotations": [], "meta": {"channel": "web"}})
    assert kept.meta == {"channel": "web", "annotations": []}


@pytest.mark.parametrize(
    "given",
    ["text", ("user",), 7, None, {"content": "x"}, {"role": "user"}, {"role": "nobody", "content": "x"}],
)
def test_what_is_no_message_is_refused(given: Any) -> None:
    with pytest.raises(WrongShape):
        message_of(given)


class Dumping:
    """As the models of an SDK are."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def model_dump(self) -> dict[str, Any]:
        return self._fields


class DumpingAsBefore(Dumping):
    model_dump = None  # type: ignore[assignment]

    def dict(self) -> dict[str, Any]:
        return self._fields


@pytest.mark.parametrize("kind", [Dumping, DumpingAsBefore])
def test_objects_of_an_sdk_become_what_they_dump(kind: type[Dumping]) -> None:
    function = kind(name="look", arguments="{}")
    called = message_of({"role": "assistant", "content": None, "tool_calls": [kind(**{**CALL, "function": function})]})
    assert (tool_calls(called), called.meta) == (["c1"], {"tool_calls": [CALL]})
    block = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    assert message_of({"role": "assistant", "content": [kind(**block)]}).content == [block]
    dated = datetime(2026, 1, 2, tzinfo=UTC)
    said = message_of(Message(role="user", content="hi", ts=dated, meta={"by": kind(age=7)}))
    assert (said.meta, said.ts) == ({"by": {"age": 7}}, dated)


@pytest.mark.parametrize("value", [object(), Dumping, Dumping(of=object()), {"deep": [object()]}])
def test_what_cannot_be_sent_is_refused(value: Any) -> None:
    for given in (
        {"role": "user", "content": "x", "meta": {"it": value}},
        {"role": "user", "content": "x", "it": value},
    ):
        with pytest.raises(WrongShape):
            message_of(given)
    with pytest.raises(WrongShape):
        message_of(Message(role="user", content="x", meta={"it": value}))


def test_what_comes_back_is_what_is_sent() -> None:
    for given in (
        Message(role="user", content="a\ud83d", id="m\ud83d"),
        {"role": "user", "content": "a\ud83d", "id": "m\ud83d"},
    ):
        said = message_of(given)
        assert (said.id, said.content) == ("m\ufffd", "a\ufffd")
        assert msgspec.json.decode(outgoing(said).content, type=Message) == said
