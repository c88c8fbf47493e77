from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import click
import pytest

from offbook.cli.sessions import pretty
from offbook.client.blocking import Client
from offbook.model.types import LogLine, Message
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


@pytest.mark.parametrize(
    "answer", [{}, {"messages": [1], "lastSeq": 1}, {"messages": [{}], "lastSeq": 1, "sessions": []}]
)
@pytest.mark.parametrize(
    "arguments", [["status"], ["log"], ["log", "--json"], ["log", "chat"], ["audit"], ["audit", "--json"]]
)
def test_an_answer_of_another_shape_is_told_in_one_line(
    answer: dict[str, Any], arguments: list[str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for verb in ("status", "log", "audit"):
        monkeypatch.setattr(Client, verb, lambda *_, **__: answer)
    result = run(*arguments)
    assert result.exit_code == 3
    told = result.stdout if "--json" in arguments else result.stderr
    assert "is this a memory provider?" in told
    assert "--json" in arguments or len(told.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [(["--after", "0"], range(1, 451)), (["-n", "300"], range(151, 451)), (["--after", "9", "-n", "5"], range(10, 15))],
)
def test_short_pages_do_not_end_it(
    arguments: list[str], shown: range, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def log(
        self: Client, session: str, after_seq: int = 0, limit: int = 100, wait_ms: int = 0, *, newest: bool = False
    ) -> dict[str, Any]:
        if newest:
            return {"messages": [], "lastSeq": 450}
        found = range(after_seq + 1, min(after_seq + min(limit, 7), 450) + 1)
        lines = [
            {"seq": seq, "receivedAt": AT.isoformat(), "message": {"role": "user", "content": "x"}} for seq in found
        ]
        return {"messages": lines, "lastSeq": found[-1] if found else after_seq}

    monkeypatch.setattr(Client, "log", log)
    output = run("log", "chat", "--json", *arguments).stdout
    assert [json.loads(line)["seq"] for line in output.splitlines()] == list(shown)
