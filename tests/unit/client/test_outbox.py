from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from offbook.client import outbox as outbox_module
from offbook.client import outbox_folder, outbox_intake
from offbook.client.outbox import Outbox, OutboxBusy, OutboxClosed, Queued
from offbook.client.outbox_folder import OutboxFolder
from offbook.client.outboxes import waiting_in
from offbook.client.segment import line_of, queued_of

PLENTY = 10_000_000


def opened(folder: Path, max_bytes: int = PLENTY, **options: Any) -> Outbox:
    return Outbox(folder, max_bytes=max_bytes, **options)


def record_of(number: int) -> bytes:
    return b'{"n":%d}' % number


def everything(outbox: Outbox) -> list[bytes]:
    return [queued.record for queued in outbox.peek(10**6, 10**9)]


def crashed(outbox: Outbox, **options: Any) -> Outbox:
    """As after kill -9: the lock is gone, and nobody tidied up."""
    outbox.abandon()
    return opened(outbox.folder, **options)


# ── the queue ──


def test_records_come_out_in_the_order_they_went_in(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box")
    assert all(outbox.append(record_of(number)) for number in range(5))
    assert [(each.ordinal, each.record) for each in outbox.peek(3, PLENTY)] == [
        (number + 1, record_of(number)) for number in range(3)
    ]
    outbox.advance(3)
    assert everything(outbox) == [record_of(3), record_of(4)]
    assert outbox.waiting == 2


def test_at_least_one_record_is_given_however_large_it_is(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box")
    large = b'"%b"' % (b"x" * 3_000_000)
    outbox.append(large)
    outbox.append(large)
    assert [each.record for each in outbox.peek(10, 10)] == [large]


def test_lanes_are_counted_each_on_its_own(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box")
    for lane in ["a", "b", "a", "é\n", "a"]:
        outbox.append(record_of(0), lane)
    assert [(each.lane, each.lane_ordinal) for each in outbox.peek(9, PLENTY)] == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
        ("é\n", 1),
        ("a", 3),
    ]
    assert (outbox.asked_in("a"), outbox.asked_in("b"), outbox.asked_in("none")) == (3, 1, 0)


def test_a_full_outbox_says_so_and_counts_durably(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box", max_bytes=100)
    kept = [outbox.append(record_of(number), "a") for number in range(20)]
    assert kept == sorted(kept, reverse=True)
    assert 0 < sum(kept) < 20
    outbox.tend()
    outbox = crashed(outbox, max_bytes=100)
    assert outbox.status()["dropped"] == 20 - sum(kept)
    assert outbox.asked_in("a") == 20
    outbox.peek(20, PLENTY)
    outbox.advance(sum(kept))
    assert outbox.append(record_of(20), "a")
    assert [(each.ordinal, each.lane_ordinal) for each in outbox.peek(1, PLENTY)] == [(21, 21)]


def test_segments_are_deleted_once_delivered(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box", segment_bytes=50)
    for number in range(30):
        outbox.append(record_of(number))
    segments = len(list(outbox.folder.glob("0*.jsonl")))
    assert segments > 5
    outbox.peek(15, PLENTY)
    outbox.advance(15)
    assert len(list(outbox.folder.glob("0*.jsonl"))) <= segments // 2 + 1
    assert everything(outbox) == [record_of(number) for number in range(15, 30)]
    outbox.advance(30)
    outbox.close()
    assert list(outbox.folder.glob("0*.jsonl")) == []


def test_a_large_segment_is_left_behind_when_all_of_it_has_arrived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "DRAINED_BYTES", 50)
    outbox = opened(tmp_path / "box")
    for number in range(10):
        outbox.append(record_of(number))
    outbox.peek(10, PLENTY)
    outbox.advance(10)
    assert list(outbox.folder.glob("0*.jsonl")) == []
    outbox.append(record_of(10))
    assert everything(crashed(outbox)) == [record_of(10)]


def test_a_closed_outbox_takes_nothing(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box")
    outbox.close()
    outbox.close()
    with pytest.raises(OutboxClosed):
        outbox.append(record_of(1))


def test_threads_append_together(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box", segment_bytes=1000)

    def work(name: str) -> None:
        for number in range(200):
            outbox.append(b'["%b",%d]' % (name.encode(), number), name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    taken: list[Queued] = []
    while len(taken) < 800:
        for queued in outbox.peek(50, PLENTY):
            taken.append(queued)
            outbox.advance(queued.ordinal)
    for thread in threads:
        thread.join()
    assert [each.ordinal for each in taken] == list(range(1, 801))
    for name in "abcd":
        mine = [msgspec.json.decode(each.record)[1] for each in taken if each.lane == name]
        assert mine == list(range(200))


def test_a_refused_record_is_set_aside_with_the_reason(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box")
    outbox.append(record_of(7))
    [queued] = outbox.peek(1, PLENTY)
    outbox.reject(queued, "no such role")
    outbox.advance(1, rejected=1)
    [line] = (outbox.folder / "rejected.jsonl").read_bytes().splitlines()
    kept = msgspec.json.decode(line)
    assert (kept["reason"], kept["record"]) == ("no such role", {"n": 7})
    outbox.close()
    assert opened(outbox.folder).status()["rejected"] == 1


def set_aside(folder: Path) -> list[Any]:
    lines = (line for path in OutboxFolder(folder).rejected_paths() for line in path.read_bytes().splitlines())
    return [msgspec.json.decode(line)["record"]["n"] for line in lines]


def test_what_was_refused_goes_on_in_another_file_when_one_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = opened(tmp_path / "box")
    outbox.reject(Queued(1, record_of(1), "", 1), "no")
    monkeypatch.setattr(outbox_folder, "REJECTED_MAX_BYTES", (outbox.folder / "rejected.jsonl").stat().st_size + 10)
    for number in range(2, 12):
        kept = outbox.reject(Queued(number, record_of(number), "", number), "no")
        assert kept == outbox.folder / f"rejected.{number - 1}.jsonl"
    assert set_aside(outbox.folder) == list(range(1, 12))
    assert outbox.last_error is None
    assert crashed(outbox).waiting == 0


@pytest.mark.parametrize("fault", ["error", "short"])
def test_a_refused_record_that_cannot_be_set_aside_waits(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = opened(tmp_path / "box")
    for number in (1, 2):
        outbox.append(record_of(number))
    first, second = outbox.peek(2, PLENTY)
    outbox.reject(first, "no")
    outbox.advance(1, rejected=1)
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(
            os, "write", fails_with(errno.ENOSPC) if fault == "error" else lambda fd, data: real(fd, data[:9])
        )
        with pytest.raises(OSError, match="No space"):
            outbox.reject(second, "no")
    assert set_aside(outbox.folder) == [1]
    assert everything(outbox) == [record_of(2)]
    outbox.reject(second, "no")
    assert set_aside(outbox.folder) == [1, 2]


def test_half_a_line_that_a_crash_left_costs_no_other(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box")
    path = outbox.reject(Queued(1, record_of(1), "", 1), "no")
    assert path is not None
    with path.open("ab") as file:
        file.write(b'{"at":"20')
    outbox.reject(Queued(2, record_of(2), "", 2), "no")
    first, torn, second = path.read_bytes().splitlines()
    assert torn == b'{"at":"20'
    assert [msgspec.json.decode(line)["record"]["n"] for line in (first, second)] == [1, 2]


def test_where_there_is_no_folder_a_refused_record_holds_nothing_up(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    outbox = opened(tmp_path / "file" / "box")
    outbox.append(record_of(1))
    assert outbox.reject(outbox.peek(1, PLENTY)[0], "no") is None


def test_a_refused_record_outlives_a_folder_that_was_deleted(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box")
    outbox.append(record_of(1))
    [queued] = outbox.peek(1, PLENTY)
    shutil.rmtree(outbox.folder)
    with pytest.raises(OSError, match="not held any more"):
        outbox.reject(queued, "no")
    outbox.reject(queued, "no")
    assert set_aside(outbox.folder) == [1]


@pytest.mark.parametrize("step", ["write", "fsync", "close", "pwrite"])
def test_a_kill_while_a_record_is_set_aside_leaves_it_in_one_of_both_places(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def kill(*_: Any) -> None:
        raise Killed

    def refused() -> None:
        outbox.reject(queued, "no")
        outbox.advance(1, rejected=1)

    outbox = opened(tmp_path / "box")
    outbox.append(record_of(7))
    [queued] = outbox.peek(1, PLENTY)
    with monkeypatch.context() as patch:
        patch.setattr(os, step, kill)
        with pytest.raises(Killed):
            refused()
    outbox = crashed(outbox)
    assert everything(outbox) == [record_of(7)]
    assert set_aside(outbox.folder) in ([], [7])


# ── lanes that are held ──


def test_a_lane_that_is_held_keeps_its_order_and_no_other_back(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box")
    for number, lane in enumerate(["bob", "ann", "bob", "ann", "carl"]):
        outbox.append(record_of(number), lane)
    assert [each.record for each in outbox.peek(9, PLENTY, {"bob"})] == [record_of(number) for number in (1, 3, 4)]
    outbox.advance(4)
    assert everything(outbox) == [record_of(number) for number in (0, 2, 4)]
    outbox.append(record_of(5), "ann")
    outbox = crashed(outbox)
    assert waiting_in(outbox.folder) == 4
    assert everything(outbox) == [record_of(number) for number in (0, 2, 4, 5)]
    assert (outbox.waiting, outbox.status()["delivered"], outbox.cursor) == (4, 2, 0)
    assert outbox.peek(9, PLENTY, {"bob", "ann", "carl"}) == []
    assert outbox.waiting == 4  # nothing was given up
    outbox.peek(9, PLENTY)
    outbox.advance(6)
    outbox.close()
    assert list(outbox.folder.glob("0*.jsonl")) == []
    assert opened(outbox.folder).status()["delivered"] == 6


# ── other processes ──


def test_one_process_at_a_time(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box")
    with pytest.raises(OutboxBusy):
        opened(tmp_path / "box")
    outbox.close()
    opened(tmp_path / "box").close()


def test_the_client_id_is_kept(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box")
    client_id, opening = outbox.client_id, outbox.opening
    assert client_id.startswith("box-")
    outbox = crashed(outbox)
    assert outbox.client_id == client_id
    assert outbox.opening != opening
    assert opened(tmp_path / "other").client_id != client_id


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "home" / "outbox" / "box")
    outbox.append(record_of(1))
    for path in [tmp_path / "home", *(tmp_path / "home").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_what_append_returned_for_survives_kill_9(tmp_path: Path) -> None:
    code = """
import os, sys
from pathlib import Path
from offbook.client.outbox import Outbox
outbox = Outbox(Path(sys.argv[1]), max_bytes=10**8, segment_bytes=5000)
for number in range(10**6):
    if not outbox.append(b'{"n":%d}' % number):
        break
    os.write(1, b"%d\\n" % number)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "box")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for _ in range(500):
            child.stdout.readline()
        child.kill()
        promised = 500 + len(child.stdout.read().splitlines())
    found = everything(opened(tmp_path / "box"))
    assert len(found) in (promised, promised + 1)
    assert found == [record_of(number) for number in range(len(found))]


# ── bad disks ──


def newest_segment(folder: Path) -> Path:
    return max(folder.glob("0*.jsonl"))


@pytest.mark.parametrize("torn", [b"[3", b'[3,3,"",{"n"', b"\x00" * 4096])
def test_a_torn_last_line_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    outbox = opened(tmp_path / "box")
    outbox.append(record_of(0))
    outbox.append(record_of(1))
    outbox.abandon()
    path = newest_segment(outbox.folder)
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    outbox = opened(outbox.folder)
    assert path.read_bytes() == whole
    outbox.append(record_of(2))
    assert [(each.ordinal, each.record) for each in outbox.peek(9, PLENTY)] == [
        (1, record_of(0)),
        (2, record_of(1)),
        (3, record_of(2)),
    ]


def test_a_line_that_cannot_be_read_is_passed_over_counted_and_kept(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box")
    for number in range(3):
        outbox.append(record_of(number))
    outbox.abandon()
    path = newest_segment(outbox.folder)
    path.write_bytes(path.read_bytes().replace(b'[2,2,"",{', b"\x00" * 9))
    outbox = opened(outbox.folder)
    assert everything(outbox) == [record_of(0), record_of(2)]
    outbox.advance(3)
    outbox.append(record_of(3))
    assert everything(outbox) == [record_of(3)]
    outbox.advance(4)
    assert outbox.status()["damaged"] == 1
    assert path.with_suffix(".damaged").exists()


@pytest.mark.parametrize(
    ("number", "arrives"),
    # One that could be a number of the outbox is taken for it: what lies before it then has arrived.
    [(b"4", [0, 1, 4]), (b"9" * 26, [0, 2, 3, 4]), (b"-2", [0, 2, 3, 4]), (b"0", [0, 2, 3, 4])],
)
def test_a_record_whose_number_was_damaged_does_not_stop_the_rest(
    tmp_path: Path, number: bytes, arrives: list[int]
) -> None:
    outbox = opened(tmp_path / "box")
    for each in range(5):
        outbox.append(record_of(each))
    outbox.abandon()
    path = newest_segment(outbox.folder)
    path.write_bytes(path.read_bytes().replace(b'[2,2,"",{', b'[%b,2,"",{' % number))
    outbox = opened(outbox.folder)
    arrived: list[bytes] = []
    for _ in range(5):
        queued = outbox.peek(2, PLENTY)
        if queued:
            arrived += [one.record for one in queued]
            outbox.advance(queued[-1].ordinal)
    assert outbox.waiting == 0
    assert arrived == list(map(record_of, arrives))


@pytest.mark.parametrize("damage", [b"", b"{", b'{"cursor":"x"}', b"\xff\x00", b"1 2"])
def test_without_its_cursor_everything_on_disk_is_delivered_again(tmp_path: Path, damage: bytes) -> None:
    outbox = opened(tmp_path / "box")
    for number in range(3):
        outbox.append(record_of(number), "a")
    outbox.peek(1, PLENTY)
    outbox.advance(1)
    outbox.abandon()
    (outbox.folder / "state.json").write_bytes(damage)
    (outbox.folder / "cursor").write_bytes(damage)
    outbox = opened(outbox.folder)
    assert everything(outbox) == [record_of(0), record_of(1), record_of(2)]
    assert (outbox.asked, outbox.asked_in("a")) == (3, 3)


def test_what_is_asked_after_the_state_was_lost_does_not_look_delivered(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box")
    for number in range(3):
        outbox.append(record_of(number))
    outbox.peek(3, PLENTY)
    outbox.advance(3)
    outbox.close()
    (outbox.folder / "state.json").unlink()
    outbox = opened(outbox.folder)
    outbox.append(record_of(3))
    assert [each.ordinal for each in outbox.peek(9, PLENTY)] == [4]


def test_a_segment_that_was_emptied_is_counted_and_does_not_stop_the_rest(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box")
    outbox.append(record_of(0))
    outbox = crashed(outbox)
    outbox.survey()
    os.truncate(newest_segment(outbox.folder), 0)
    assert outbox.peek(9, PLENTY) == []
    assert (outbox.waiting, outbox.status()["damaged"]) == (0, 1)
    outbox.append(record_of(1))
    assert everything(outbox) == [record_of(1)]


def test_a_deleted_folder_loses_nothing_that_this_process_recorded(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "home" / "box", segment_bytes=50)
    for number in range(10):
        outbox.append(record_of(number))
    outbox.peek(2, PLENTY)
    outbox.advance(2)
    shutil.rmtree(tmp_path / "home")
    for number in range(10, 20):
        assert outbox.append(record_of(number))
    assert everything(outbox) == [record_of(number) for number in range(2, 20)]
    outbox.advance(3)
    outbox.tend()
    assert outbox.status()["in_memory_bytes"] == 0
    assert everything(crashed(outbox)) == [record_of(number) for number in range(3, 20)]


def test_a_folder_that_somebody_else_made_meanwhile_is_left_alone(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "box")
    outbox.append(record_of(0))
    shutil.rmtree(tmp_path / "box")
    other = opened(tmp_path / "box")
    outbox.append(record_of(1))
    outbox.tend()
    assert everything(outbox) == [record_of(0), record_of(1)]
    outbox.advance(2)
    other.close()
    outbox.append(record_of(2))
    outbox.tend()
    assert everything(outbox) == [record_of(2)]
    outbox.close()
    assert everything(opened(tmp_path / "box")) == []


def fails_with(code: int) -> Callable[..., int]:
    def fail(*_: object, **__: object) -> int:
        raise OSError(code, os.strerror(code))

    return fail


def test_a_folder_that_cannot_be_made_means_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    outbox = opened(tmp_path / "file" / "box")
    assert outbox.append(record_of(0))
    assert everything(outbox) == [record_of(0)]
    assert outbox.last_error
    assert outbox.status()["in_memory_bytes"] > 0
    (tmp_path / "file").unlink()
    outbox.tend()
    assert outbox.status()["in_memory_bytes"] == 0
    assert everything(crashed(outbox)) == [record_of(0)]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT])
def test_a_disk_that_takes_no_more_means_memory_until_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    outbox = opened(tmp_path / "box")
    outbox.append(record_of(0))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fails_with(code))
        for number in range(1, 5):
            assert outbox.append(record_of(number))
        outbox.tend()
        assert everything(outbox) == [record_of(number) for number in range(5)]
        outbox.advance(2)
        assert outbox.status()["in_memory_bytes"] > 0
    outbox.tend()
    outbox.append(record_of(5))
    assert outbox.status()["in_memory_bytes"] == 0
    assert everything(crashed(outbox)) == [record_of(number) for number in range(2, 6)]


def test_a_write_that_the_disk_cut_short_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outbox = opened(tmp_path / "box")
    outbox.append(record_of(0))
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[: len(data) // 2]))
        assert outbox.append(record_of(1))
    assert newest_segment(outbox.folder).read_bytes().endswith(b"\n")
    outbox.tend()
    assert everything(crashed(outbox)) == [record_of(0), record_of(1)]


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_intake, "MEMORY_MAX_BYTES", 100)
    (tmp_path / "file").write_text("in the way")
    outbox = opened(tmp_path / "file" / "box")
    kept = [outbox.append(record_of(number)) for number in range(20)]
    assert 0 < sum(kept) < 20
    assert outbox.status()["dropped"] == 20 - sum(kept)


def test_saving_the_cursor_may_fail_without_anybody_noticing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outbox = opened(tmp_path / "box")
    outbox.append(record_of(0))
    outbox.append(record_of(1))
    outbox.peek(9, PLENTY)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fails_with(errno.EROFS))
        patch.setattr(Path, "replace", fails_with(errno.EROFS))
        outbox.advance(1)
        outbox.tend()
    assert "Read-only" in str(outbox.last_error)
    outbox.tend()
    assert everything(crashed(outbox)) == [record_of(1)]


# ── against a model ──


def test_a_line_is_read_as_it_was_written() -> None:
    queued = Queued(12, b'{"a":\n1}', 'la"ne\n\u2028', 3)
    line = line_of(queued)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert queued_of(line[:-1]) == queued._replace(record=b'{"a": 1}')


records = st.one_of(st.integers(), st.text(max_size=40), st.lists(st.text(max_size=5), max_size=5)).map(
    msgspec.json.encode
)
lanes = st.sampled_from(["", "main", "agent é"])


class OutboxAgainstModel(RuleBasedStateMachine):
    """The model is a list. The outbox is closed, killed, torn and reopened at any moment."""

    @initialize(max_bytes=st.integers(100, 2000), segment_bytes=st.integers(1, 500))
    def begin(self, max_bytes: int, segment_bytes: int) -> None:
        self.folder = Path(tempfile.mkdtemp()) / "box"
        self.options = {"max_bytes": max_bytes, "segment_bytes": segment_bytes}
        self.outbox = opened(self.folder, **self.options)
        self.model: list[Queued] = []
        self.asked = self.cursor = self.dropped = self.done = 0
        self.lanes: dict[str, int] = {}
        self.has_gone_ahead = False

    @rule(record=records, lane=lanes)
    def append(self, record: bytes, lane: str) -> None:
        self.asked += 1
        self.lanes[lane] = self.lanes.get(lane, 0) + 1
        queued = Queued(self.asked, record, lane, self.lanes[lane])
        size = self.outbox.status()["waiting_bytes"] + len(line_of(queued))
        is_kept = self.outbox.append(record, lane)
        assert is_kept == (size <= self.options["max_bytes"])
        if is_kept:
            self.model.append(queued)
        else:
            self.dropped += 1
            self.outbox.tend()

    @rule(limit=st.integers(1, 20), limit_bytes=st.integers(0, 300))
    def peek(self, limit: int, limit_bytes: int) -> None:
        expected: list[Queued] = []
        for queued in self.model[:limit]:
            if expected and sum(len(each.record) for each in [*expected, queued]) > limit_bytes:
                break
            expected.append(queued)
        assert self.outbox.peek(limit, limit_bytes) == expected

    @rule(count=st.integers(1, 10))
    def deliver(self, count: int) -> None:
        for queued in self.outbox.peek(count, PLENTY)[-1:]:
            self.outbox.advance(queued.ordinal)
            self.done += len([each for each in self.model if each.ordinal <= queued.ordinal])
            self.model = [each for each in self.model if each.ordinal > queued.ordinal]

    @rule(count=st.integers(1, 10), held=st.sets(lanes))
    def deliver_others(self, count: int, held: set[str]) -> None:
        others = self.outbox.peek(count, PLENTY, held)
        assert others == [each for each in self.model if each.lane not in held][:count]
        for queued in others[-1:]:
            self.outbox.advance(queued.ordinal)
            self.has_gone_ahead = self.has_gone_ahead or self.model[: len(others)] != others
            self.done += len(others)
            self.model = [each for each in self.model if each not in others]

    @rule()
    def tend(self) -> None:
        self.outbox.tend()

    @rule()
    def close_and_reopen(self) -> None:
        self.outbox.close()
        self.outbox = opened(self.folder, **self.options)

    @rule(torn=st.sampled_from([b"", b"[", b'[99,99,"",', b"\x00\x00"]))
    def kill_and_reopen(self, torn: bytes) -> None:
        self.outbox.abandon()
        if torn and list(self.folder.glob("0*.jsonl")):
            with newest_segment(self.folder).open("ab") as file:
                file.write(torn)
        self.outbox = opened(self.folder, **self.options)

    @precondition(lambda self: self.model)
    @rule()
    def delete_the_folder(self) -> None:
        if any(segment._descriptor is None for segment in self.outbox._segments):
            return  # what another process wrote, and this one has not opened yet, would be gone
        shutil.rmtree(self.folder)
        self.outbox.tend()

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "outbox"):
            return
        assert self.outbox.peek(10**6, 10**9) == self.model
        assert self.outbox.waiting == len(self.model)
        assert self.outbox.asked == self.asked
        assert {lane: self.outbox.asked_in(lane) for lane in self.lanes} == self.lanes
        status = self.outbox.status()
        assert (status["dropped"], status["delivered"], status["damaged"]) == (self.dropped, self.done, 0)
        size = sum(len(line_of(each)) for each in self.model)
        assert status["waiting_bytes"] >= size if self.has_gone_ahead else status["waiting_bytes"] == size

    def teardown(self) -> None:
        if hasattr(self, "outbox"):
            self.outbox.close()
            shutil.rmtree(self.folder.parent)


OutboxAgainstModel.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestOutboxAgainstModel = OutboxAgainstModel.TestCase
