"""Faults of a context, as sentences."""

from __future__ import annotations

from offbook.contrib.conformance.check import pair_faults
from offbook.model.types import Message

CALL = {"type": "server_tool_use", "id": "x", "name": "web_search", "input": {"query": "ferries"}}
RESULT = {"type": "web_search_tool_result", "tool_use_id": "x", "content": []}


def test_a_providers_own_tool_answers_in_the_message_that_calls_it() -> None:
    assert list(pair_faults([Message(role="assistant", content=[CALL, RESULT])])) == []
    apart = [Message(role="assistant", content=[CALL]), Message(role="assistant", content=[RESULT])]
    assert list(pair_faults(apart)) == []


def test_a_result_without_its_call_before_it_is_a_fault() -> None:
    alone = Message(role="assistant", content=[RESULT])
    assert list(pair_faults([alone])) == ["message 0 answers the call 'x', which is not before it"]
    assert len(list(pair_faults([alone, Message(role="assistant", content=[CALL])]))) == 1
    tool = Message(role="tool", content="ok", tool_call_id="y")
    assert len(list(pair_faults([Message(role="assistant", content=[CALL]), tool]))) == 1


def test_a_tools_message_names_its_call() -> None:
    (fault,) = pair_faults([Message(role="tool", content="ok")])
    assert "names no call" in fault
