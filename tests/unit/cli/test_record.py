from __future__ import annotations

import json
from io import BytesIO

import pytest

from offbook.cli import record
from offbook.cli.record import batches
from offbook.errors import WrongShape
from tests.unit.cli.conftest import Run


def lines(*contents: str) -> BytesIO:
    return BytesIO("".join(json.dumps({"role": "user", "content": each}) + "\n" for each in contents).encode())


def test_messages_come_in_portions_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MESSAGES_AT_A_TIME", 3)
    found = list(batches(lines(*"abcdefgh")))
    assert [[message.content for message in batch.messages] for batch in found] == [
        ["a", "b", "c"],
        ["d", "e", "f"],
        ["g", "h"],
    ]
    assert [(batch.first_line, batch.last_line) for batch in found] == [(1, 3), (4, 6), (7, 8)]


def test_large_messages_make_small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "BYTES_AT_A_TIME", 1_000)
    assert [len(batch.messages) for batch in batches(lines("x" * 2_000, "y", "z"))] == [1, 2]


def test_blank_lines_are_passed_over() -> None:
    (batch,) = batches(BytesIO(b'\n{"role":"user","content":"a"}\n   \n{"role":"user","content":"b"}'))
    assert [message.content for message in batch.messages] == ["a", "b"]


@pytest.mark.parametrize(
    "line", [b"nonsense", b"[]", b'{"role":"nobody","content":"x"}', b'{"role":"user"}', b"\xff\xfe", b'{"x":1}']
)
def test_a_line_that_is_no_message_is_named_after_what_precedes_it(line: bytes) -> None:
    given = batches(BytesIO(b'{"role":"user","content":"a"}\n' + line + b"\n"))
    assert len(next(given).messages) == 1
    with pytest.raises(WrongShape, match="line 2 is no message"):
        next(given)


@pytest.mark.parametrize(
    ("arguments", "text", "told"),
    [
        (["chat", "--role", "nobody", "x"], "", "nobody"),
        (["chat", "--ts", "yesterday", "x"], "", "no message"),
        (["chat"], "", "no text"),
        (["chat", "-"], "  \n", "no text"),
        (["chat", "--jsonl", "-", "--role", "user"], "", "leave out --role"),
        (["chat", "text", "--jsonl", "-"], "", "leave out TEXT"),
        (["chat", "--jsonl", "missing.jsonl"], "", "missing.jsonl"),
        ([], "", "SESSION"),
    ],
)
def test_a_wrong_command_line_is_told(arguments: list[str], text: str, told: str, run: Run) -> None:
    result = run("record", *arguments, input=text)
    assert result.exit_code == 2
    assert told in result.stderr


def test_text_that_is_not_utf_8_is_told(run: Run) -> None:
    result = run("record", "chat", input=b"caf\xe9")
    assert result.exit_code == 2
    assert "not valid UTF-8 at byte 3" in result.stderr
