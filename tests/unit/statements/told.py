"""Messages for the tests of what is noted of a session."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from offbook.model.types import Message
from offbook.statements.turns import Turn, read_turn

AT = datetime(2026, 5, 8, 10, tzinfo=UTC)


def turns(*said: tuple[str, Any], first_seq: int = 1) -> list[Turn]:
    """Role and content of each, a minute apart."""
    return [
        read_turn(seq, AT + timedelta(minutes=seq), _message(role, content), is_noise=False)
        for seq, (role, content) in enumerate(said, first_seq)
    ]


def _message(role: str, content: Any) -> Message:
    if role == "tool":
        call_id, text = content
        return Message(role="tool", content=text, tool_call_id=call_id)
    return Message(role=role, content=content)  # type: ignore[arg-type]


def call(call_id: str, name: str, **arguments: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": call_id, "name": name, "input": arguments}]
