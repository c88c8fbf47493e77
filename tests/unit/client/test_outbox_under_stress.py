"""What must not cost a record that was accepted: failing reads, interruptions, and calls from within."""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offbook.client import segment as segment_module
from offbook.client.outbox import Outbox, OutboxElsewhere
from offbook.client.outbox_folder import OutboxFolder
from offbook.client.segment import Queued, Segment, queued_of

PLENTY = 10_000_000


def opened(folder: Path, max_bytes: int = PLENTY, **options: Any) -> Outbox:
    return Outbox(folder, max_bytes=max_bytes, **options)


def record_of(number: int) -> bytes:
    return b'{"n":%d}' % number


def records(start: int, stop: int) -> list[bytes]:
    return [record_of(number) for number in range(start, stop)]


def everything(outbox: Outbox) -> list[bytes]:
    return [queued.record for queued in outbox.peek(10**6, 10**9)]


def filled(folder: Path, count: int, **options: Any) -> Outbox:
    outbox = opened(folder, **options)
    for record in records(0, count):
        assert outbox.append(record)
    return outbox


def fails_with(code: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise OSError(code, os.strerror(code))

    return fail


# ── reads that fail ──


def test_a_read_that_fails_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outbox = filled(tmp_path / "box", 20, segment_bytes=50)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", fails_with(errno.EIO))
        with pytest.raises(OSError):
            outbox.peek(10, PLENTY)
    assert outbox.waiting == 20
    assert everything(outbox) == records(0, 20)


def test_what_was_peeked_before_a_read_failed_is_delivered_and_the_rest_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = filled(tmp_path / "box", 20, segment_bytes=50)
    second = outbox._segments[1]
    read = Segment._read

    def fail_in_second(segment: Segment, offset: int, size: int) -> bytes:
        if segment is second:
            raise OSError(errno.EIO, "bad sector")
        return read(segment, offset, size)

    with monkeypatch.context() as patch:
        patch.setattr(Segment, "_read", fail_in_second)
        first = outbox.peek(20, PLENTY)
        assert 0 < len(first) < 20
        outbox.advance(first[-1].ordinal)
        with pytest.raises(OSError):
            outbox.peek(20, PLENTY)
    assert everything(outbox) == records(len(first), 20)


def test_what_cannot_be_read_at_opening_is_left_for_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "box", 20).abandon()
    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", fails_with(errno.EIO))
        outbox = opened(tmp_path / "box")
        assert outbox.append(b'"new"')
    assert everything(outbox) == [b'"new"']
    outbox.tend()
    assert outbox.in_memory_bytes == 0
    assert outbox.folder.name.startswith("box~")
    outbox.close()
    assert everything(opened(tmp_path / "box")) == records(0, 20)
    assert everything(opened(outbox.folder)) == [b'"new"']


def test_files_without_a_record_are_renamed_and_never_deleted(tmp_path: Path) -> None:
    outbox = filled(tmp_path / "box", 5)
    [path] = outbox.folder.glob("0*.jsonl")
    spoilt = b"\x00" * (path.stat().st_size - 1) + b"\n"
    with path.open("r+b") as file:
        file.write(spoilt)
    assert outbox.peek(10, PLENTY) == []
    assert (outbox.waiting, outbox.status()["damaged"]) == (0, 5)
    assert path.with_suffix(".damaged").read_bytes() == spoilt


def test_a_file_that_holds_more_than_was_read_is_not_deleted(tmp_path: Path) -> None:
    outbox = filled(tmp_path / "box", 1)
    segment = outbox._segments[0]
    with segment.path.open("ab") as file:
        file.write(b'[2,2,"",{"n":1}]\n')
    segment.remove()
    assert segment.path.with_suffix(".damaged").exists()


def test_a_first_segment_that_holds_more_than_was_counted_is_counted_again(tmp_path: Path) -> None:
    outbox = filled(tmp_path / "box", 2)
    with outbox._segments[0].path.open("ab") as file:
        file.write(b'[3,3,"",{"n":2}]\n')
    outbox._segments[0].is_sealed = True
    outbox._state.asked = 3
    outbox.append(record_of(3))
    outbox.peek(2, PLENTY)
    outbox.advance(2)
    assert everything(outbox) == [record_of(2), record_of(3)]
    assert outbox.waiting == 2


# ── interruptions ──


class Interruption(BaseException):
    pass


@pytest.mark.parametrize("is_written", [True, False])
def test_an_interrupted_append_leaves_the_books_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    outbox = filled(tmp_path / "box", 3)
    write = os.write

    def interrupted(descriptor: int, data: bytes) -> int:
        if is_written:
            write(descriptor, data)
        raise Interruption

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", interrupted)
        with pytest.raises(Interruption):
            outbox.append(record_of(3))
    outbox.append(record_of(4))
    expected = [*records(0, 3), *([record_of(3)] if is_written else []), record_of(4)]
    assert everything(outbox) == expected
    assert outbox.waiting == outbox.asked == outbox.asked_in("") == len(expected)
    [path] = outbox.folder.glob("0*.jsonl")
    assert outbox.status()["waiting_bytes"] == path.stat().st_size


def test_an_interruption_as_a_segment_begins_leaves_no_name_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = filled(tmp_path / "box", 3, segment_bytes=1)
    create = segment_module._new_file

    def interrupted(path: Path) -> int:
        os.close(create(path))
        raise Interruption

    with monkeypatch.context() as patch:
        patch.setattr(segment_module, "_new_file", interrupted)
        with pytest.raises(Interruption):
            outbox.append(record_of(9))
    with monkeypatch.context() as patch:
        patch.setattr(Segment, "append", lambda *_: (_ for _ in ()).throw(Interruption))
        with pytest.raises(Interruption):
            outbox.append(record_of(9))
    outbox.append(record_of(3))
    assert outbox.in_memory_bytes == 0
    outbox.append(record_of(4))
    assert everything(outbox) == records(0, 5)
    outbox.advance(3)
    outbox.abandon()
    assert everything(opened(outbox.folder)) == records(3, 5)


# ── calls from within ──


def within(seconds: float, work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "it hangs"


@pytest.mark.parametrize("place", ["_write", "_is_done"])
def test_an_append_from_within_the_outbox_neither_hangs_nor_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    outbox = filled(tmp_path / "box", 1, segment_bytes=1)
    original = getattr(Outbox, place)
    nested = [record_of(number) for number in range(100, 103)]
    pending = list(nested)
    delivered: list[bytes] = []

    def reenter(*arguments: Any) -> Any:
        if pending:
            assert outbox.append(pending.pop(0))
        return original(*arguments)

    def work() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Outbox, place, reenter)
            for number in range(1, 5):
                outbox.append(record_of(number))
            for queued in outbox.peek(4, PLENTY):
                outbox.advance(queued.ordinal)
                delivered.append(queued.record)

    within(10, work)
    found = outbox.peek(100, PLENTY)
    assert sorted(delivered + [each.record for each in found]) == sorted(records(0, 5) + nested)
    assert len({each.ordinal for each in found}) == len(found) == outbox.waiting
    assert outbox.asked == outbox.asked_in("") == 8


# ── what the caller waits for ──


def test_opening_reads_no_further_back_than_the_state_reaches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_module, "READ_BYTES", 64)
    outbox = filled(tmp_path / "box", 500, segment_bytes=2000)
    for number in range(500, 510):
        outbox.append(record_of(number), "lane")
    outbox.tend()
    outbox.append(record_of(510), "lane")
    outbox.abandon()
    decoded: list[bytes] = []

    def counted(line: bytes) -> Queued | None:
        decoded.append(line)
        return queued_of(line)

    monkeypatch.setattr("offbook.client.outbox_folder.queued_of", counted)
    outbox = opened(outbox.folder, segment_bytes=2000)
    assert len(decoded) < 5
    assert (outbox.asked, outbox.asked_in("lane"), outbox.asked_in("")) == (511, 11, 500)
    assert outbox.waiting >= 511
    outbox.append(record_of(511), "lane")
    assert everything(outbox) == records(0, 512)
    assert outbox.waiting == 512


def test_a_full_outbox_writes_no_state_in_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outbox = opened(tmp_path / "box", max_bytes=30)
    saved: list[bytes] = []
    monkeypatch.setattr(OutboxFolder, "save", lambda _, state, **__: saved.append(state))
    assert [outbox.append(record_of(number)) for number in range(5)] == [True, *[False] * 4]
    assert saved == []
    assert outbox.needs_tending
    outbox.tend()
    assert len(saved) == 1
    assert not outbox.needs_tending


def test_memory_is_said_once_and_left_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    outbox = filled(tmp_path / "box", 1)
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "offbook.client"):
        patch.setattr(os, "write", fails_with(errno.ENOSPC))
        outbox.append(record_of(1))
        outbox.append(record_of(2))
    assert [message for message in caplog.messages if "kept in memory only: [Errno 28]" in message] == caplog.messages
    assert len(caplog.messages) == 1
    assert outbox.needs_tending
    outbox.peek(3, PLENTY)
    outbox.advance(3)
    assert outbox.in_memory_bytes == 0 or outbox.needs_tending
    outbox.tend()
    outbox.append(record_of(3))
    assert outbox.in_memory_bytes == 0


def test_what_is_in_memory_at_the_end_is_counted_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    outbox = filled(tmp_path / "file" / "box", 3)
    outbox.close()
    assert (outbox.status()["dropped"], outbox.waiting) == (3, 0)
    assert any("3 messages" in message and "lost" in message for message in caplog.messages)


def test_what_waits_for_another_endpoint_is_left_alone(tmp_path: Path) -> None:
    filled(tmp_path / "box", 1, endpoint="unix:///a").close()
    with pytest.raises(OutboxElsewhere, match="unix:///a"):
        opened(tmp_path / "box", endpoint="unix:///b")
    outbox = opened(tmp_path / "box", endpoint="unix:///a")
    outbox.peek(1, PLENTY)
    outbox.advance(1)
    outbox.close()
    opened(tmp_path / "box", endpoint="unix:///b").close()
