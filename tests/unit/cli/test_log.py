from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest

from offbook.cli.log import pretty
from offbook.types import LogLine, Message
from tests.unit.cli.conftest import Run

AT = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def shown(message: Message, **fields: object) -> str:
    return click.unstyle(pretty(LogLine(seq=7, received_at=AT, message=message, **fields)))  # type: ignore[arg-type]


def test_a_line_has_number_role_and_text() -> None:
    line = shown(Message(role="user", content="hello", ts=AT))
    assert line.endswith("#7     user       hello")


def test_further_lines_stand_under_the_first() -> None:
    first, second = shown(Message(role="assistant", content="one\ntwo")).split("\n")
    assert first.index("one") == second.index("two")


def test_marks_names_and_calls_are_shown() -> None:
    line = shown(Message(role="assistant", content="tick", name="bot"), noise="heartbeat", redactions={"key": 1})
    assert "assistant bot [noise: heartbeat] [redacted: key] tick" in line
    call = {"type": "tool-call", "id": "c1", "name": "search", "arguments": {"q": "cat"}}
    assert '[call search({"q":"cat"})]' in shown(Message(role="assistant", content=[call]))


def test_what_a_message_says_does_not_steer_the_terminal() -> None:
    assert "\x1b" not in shown(Message(role="tool", content="\x1b]0;owned\x07", name="\x1b[2J"))


@pytest.mark.parametrize("arguments", [["-f"], ["-n", "3"], ["--after", "1"]])
def test_the_session_is_asked_for(arguments: list[str], run: Run) -> None:
    result = run("log", *arguments)
    assert result.exit_code == 2
    assert "SESSION" in result.stderr
