from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from offbook.client.messages import message_of
from offbook.content import tool_calls, tool_results
from offbook.errors import WrongShape
from offbook.types import Message

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
