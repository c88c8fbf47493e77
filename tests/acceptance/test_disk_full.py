"""A full disk refuses what is said, loses nothing, lets read and forget, and is over once there is room."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import pytest
from benchmarks.provider import kill, spawn, start, working_folder
from benchmarks.trials.full_disk import DISK_BYTES, FullDiskTrial
from benchmarks.trials.reckoning import all_faults
from benchmarks.trials.small_disk import MountRefused, SmallDisk, small_disk

from tests.acceptance.daemon import UNHURRIED, WITHOUT_MODEL, Daemon, Reply

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    with ExitStack() as stack:
        folder = stack.enter_context(working_folder())
        try:
            mounted = stack.enter_context(small_disk(folder / "home", DISK_BYTES))
        except MountRefused as refused:
            pytest.skip(str(refused))
        yield mounted


async def test_a_full_disk_refuses_loses_nothing_and_recording_resumes(disk: SmallDisk) -> None:
    report = await FullDiskTrial(disk, seed=1, spawn=partial(spawn, is_forked=True, **WITHOUT_MODEL)).run()
    assert report.faults == []
    assert report.reckoning.faults == []
    assert list(report.problems) == ["urn:offbook:problem:store-full 507 retryable=True"]
    assert {"ping 200", "recall 200", "prepareTurn 200", "getCompressedContext 200", "log 200", "status 200"} == set(
        report.reads_while_full
    )
    assert report.start_while_full == "it starts"
    assert report.reckoning.stored_unacknowledged == 0
    assert report.exit_code == 0


KEPT, GONE = {"agentId": "main", "sessionId": "kept"}, {"agentId": "main", "sessionId": "gone"}
LARGE_CHARS, LARGE_PARTS = 300_000, 3


async def test_on_a_full_disk_one_reads_and_forgets_and_the_chain_tells_of_it(disk: SmallDisk) -> None:
    daemon = start(disk.folder, is_forked=True, **WITHOUT_MODEL, **UNHURRIED)
    try:
        _talk(daemon)
        daemon.stop()  # so that what was said is in the index for good
        daemon = start(disk.folder, is_forked=True, **WITHOUT_MODEL, **UNHURRIED)
        await _until((disk.folder / "offbook.reserve").exists)
        _fill(disk, daemon)

        # Reading goes on; what is said is refused.
        assert "sailing boat" in _asked(daemon, "recall", **KEPT, query="What is my boat called?")["entries"][0]["text"]
        assert "Marigold" in str(_asked(daemon, "getCompressedContext", **KEPT, maxChars=10_000))
        assert "Marigold" in str(_asked(daemon, "prepareTurn", **KEPT, prompt="What is my boat called?"))
        assert len(_asked(daemon, "log", **KEPT, limit=500)["messages"]) == 101
        assert _asked(daemon, "status", agentId="main")["counts"]["messages"] >= 101 + LARGE_PARTS
        assert _asked(daemon, "audit", agentId="main")["verified"]
        refused = _say(daemon, "Is there any room?", {**KEPT, "sessionId": "new"})
        assert refused.status == 507
        assert refused.json()["retryable"]

        # Forgetting makes room.
        receipt = _asked(daemon, "forget", agentId="main", sessionId="gone", reason="room")["receipt"]
        assert receipt["reached"]["largeParts"] == LARGE_PARTS
        assert disk.free_bytes >= LARGE_PARTS * LARGE_CHARS // 2
        assert receipt["residue"] == []
        assert receipt["signature"]
        assert _say(daemon, "There is.", {**KEPT, "sessionId": "new"}).status == 200

        await _until(lambda: any(event["verb"] == "audit/held" for event in _events(daemon)))
        events = _events(daemon)
        assert {"recall", "getCompressedContext", "prepareTurn", "log", "status"} <= {one["verb"] for one in events}
        held = [one["details"] for one in events if one["verb"] == "audit/held"]
        late = [one["details"]["heldSince"] for one in events if "heldSince" in one["details"]]
        assert len(late) == sum(one["reads"] for one in held) == sum(one["written"] for one in held)
        assert held[0]["from"] <= min(late) <= max(late) <= held[-1]["to"]
        assert daemon.stop() == 0
    finally:
        if daemon.process.poll() is None:
            kill(daemon)
    assert await all_faults(disk.folder) == []


def _talk(daemon: Daemon) -> None:
    assert _say(daemon, "My sailing boat is called Marigold.", KEPT).status == 200
    for number in range(100):
        assert _say(daemon, f"{number} things are said of the weather.", KEPT).status == 200
    for number in range(LARGE_PARTS):
        assert _say(daemon, _large(number), GONE).status == 200


def _large(number: int) -> str:
    """Kept beside the log."""
    return f"{number} " + " ".join(f"{(number + 1) * each:08x}" for each in range(LARGE_CHARS // 9))


def _fill(disk: SmallDisk, daemon: Daemon) -> None:
    """All of it, and what the store had room for besides."""
    with (disk.folder / "ballast").open("wb", buffering=0) as ballast:
        for size in (1_000_000, 4_096):
            with suppress(OSError):
                while ballast.write(bytes(size)):
                    pass
    while _say(daemon, "Is there any room left? " * 500, {**KEPT, "sessionId": "filling"}).status == 200:
        pass


def _say(daemon: Daemon, text: str, scope: dict[str, str]) -> Reply:
    return daemon.ask("onMessage", over_socket=True, **scope, message={"role": "user", "content": text})


def _asked(daemon: Daemon, verb: str, **fields: Any) -> Any:
    reply = daemon.ask(verb, over_socket=True, **fields)
    assert reply.status == 200, (verb, reply.body, daemon.log.read_text()[-4_000:])
    return reply.json()


def _events(daemon: Daemon) -> list[dict[str, Any]]:
    return list(_asked(daemon, "audit", agentId="main", limit=1_000)["events"])


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.sleep(0.05)
