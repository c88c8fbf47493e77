from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import IO

import pytest

from offbook.cli import record
from offbook.cli.audit import seq_or_time
from offbook.cli.record import batches
from offbook.client.blocking import Client
from offbook.model.errors import ProviderUnavailable, WrongShape
from offbook.model.types import Message, Receipt
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
        (["chat", "--ts", "yesterday", "x"], "", "is not a time"),
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


def ids(source: IO[bytes]) -> list[str | None]:
    return [message.id for batch in batches(source) for message in batch.messages]


def test_a_line_without_an_id_gets_the_same_one_each_time(tmp_path: Path) -> None:
    content = lines("yes", "yes", "no").read() + b'{"role":"user","content":"x","id":"own"}\n'
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    one.write_bytes(content)
    other.write_bytes(content + lines("more").read())
    with one.open("rb") as first, one.open("rb") as again, other.open("rb") as longer:
        found = ids(first)
        assert found == ids(again)
        assert not set(found[:3]) & set(ids(longer))
    assert len(set(found)) == 4
    assert found[3] == "own"


def test_what_comes_through_a_pipe_gets_the_same_ids_as_far_as_it_is_the_same() -> None:
    first, longer, other = ids(lines("yes", "yes")), ids(lines("yes", "yes", "no")), ids(lines("no", "yes"))
    assert longer[:2] == first
    assert len(set(first)) == 2
    assert not set(first) & set(other)


@pytest.mark.parametrize(
    ("error", "exit_code"), [(ProviderUnavailable("nobody answers"), 3), (KeyboardInterrupt(), 130)]
)
def test_a_load_that_breaks_off_tells_what_is_stored(
    error: BaseException, exit_code: int, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []

    def on_message(self: Client, session: str, *messages: Message) -> Receipt:
        if len(sent) == 2:
            raise error
        sent.append(len(messages))
        return Receipt(accepted=len(messages), duplicates=0, first_seq=1, last_seq=1)

    monkeypatch.setattr(Client, "on_message", on_message)
    monkeypatch.setattr(record, "MESSAGES_AT_A_TIME", 2)
    result = run("record", "chat", "--jsonl", "-", input=lines(*"abcdefgh").read())
    assert result.exit_code == exit_code
    assert "lines 1 to 4 are stored; 5 to 6 may be" in result.stderr
    sent[:] = [0, 0]
    assert "lines 1 to 2 may be" in run("record", "chat", "--jsonl", "-", input=lines(*"abcd").read()).stderr


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("2026-01-31T12:00", "2026-01-31T17:00:00+00:00"),
        ("2026-01-31", "2026-01-31T05:00:00+00:00"),
        ("2026-01-31T12:00Z", "2026-01-31T12:00:00+00:00"),
    ],
)
def test_a_time_without_a_zone_is_local_for_record_and_for_audit(
    given: str, meant: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[datetime] = []

    def on_message(self: Client, session: str, message: Message) -> Receipt:
        times.append(message.ts)  # type: ignore[arg-type]
        return Receipt(accepted=1, duplicates=0, first_seq=1, last_seq=1)

    monkeypatch.setattr(Client, "on_message", on_message)
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert run("record", "chat", "hello", "--ts", given).exit_code == 0
        since = datetime.fromisoformat(str(seq_or_time(given)))
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    assert [moment.astimezone(UTC).isoformat() for moment in (*times, since)] == [meant] * 2
