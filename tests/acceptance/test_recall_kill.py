"""`kill -9` while it indexes and embeds: in the end everything is found, and everything once."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from benchmarks.provider import end, environ_of, kill, start, working_folder

from tests.acceptance.daemon import UNHURRIED, Daemon, running
from tests.processes import run_offbook

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

MESSAGES = 160
KILLS = 4
LONGEST_WAIT_SECONDS = 0.6
CAUGHT_UP_SECONDS = 90
SISTER = "My sister Clara moved to a small fishing village near Porto."
PLACES = ("garden", "harbour", "library", "kitchen", "market", "workshop", "station", "bakery")
THINGS = ("lantern", "bicycle", "umbrella", "violin", "ladder", "compass", "kettle", "telescope")


def said(number: int) -> str:
    if number == 17:
        return SISTER
    place, thing = PLACES[number % len(PLACES)], THINGS[number // len(PLACES) % len(THINGS)]
    return f"Entry{number}: somebody left the {thing} in the {place} on day {number}."


def asked(daemon: Daemon, verb: str, **fields: Any) -> Any:
    reply = daemon.ask(verb, over_socket=True, **fields)
    assert reply.status == 200, reply.body
    return reply.json()


def record(daemon: Daemon, first: int, last: int) -> None:
    """In batches of ten, each message with an id of its own."""
    for start_at in range(first, last, 10):
        numbers = range(start_at, min(start_at + 10, last))
        messages = [{"role": "user", "content": said(number), "id": f"m{number}"} for number in numbers]
        asked(daemon, "onMessage", sessionId=f"session-{start_at // 100}", messages=messages)


def wait_until_caught_up(daemon: Daemon) -> None:
    deadline = time.monotonic() + CAUGHT_UP_SECONDS
    while time.monotonic() < deadline:
        status = asked(daemon, "status")["index"]
        if status["waiting"] == 0 and status["embedded"] == MESSAGES and asked(daemon, "ping")["backlog"] == 0:
            return
        time.sleep(0.1)
    raise AssertionError(f"not caught up: {asked(daemon, 'status')['index']}, {daemon.log.read_text()[-3000:]}")


def test_kills_while_it_indexes_leave_everything_found_and_once() -> None:
    chance = random.Random(7)
    with working_folder() as folder:
        home = folder / "home"
        daemon = start(home, is_forked=True, **UNHURRIED)
        try:
            share = MESSAGES // KILLS + 1
            for turn in range(KILLS):
                record(daemon, turn * share, min((turn + 1) * share, MESSAGES))
                time.sleep(chance.uniform(0, LONGEST_WAIT_SECONDS))
                kill(daemon)
                daemon = start(home, is_forked=True, **UNHURRIED)
            wait_until_caught_up(daemon)
            check_recall(daemon)
            assert asked(daemon, "ping")["backlog"] == 0
            assert daemon.stop() == 0
        finally:
            end(daemon)
        check_log(home)


def test_kills_of_the_worker_cost_nothing_but_time() -> None:
    chance = random.Random(11)
    killed = 0
    with running() as daemon:
        for first in range(0, MESSAGES, 10):
            record(daemon, first, first + 10)
            time.sleep(chance.uniform(0, LONGEST_WAIT_SECONDS))
            for process in workers_of(daemon):
                os.kill(process, signal.SIGKILL)
                killed += 1
        assert killed
        wait_until_caught_up(daemon)
        check_recall(daemon)
        left = workers_of(daemon)
        assert left
        daemon.process.kill()
        daemon.process.wait()
        until = time.monotonic() + CAUGHT_UP_SECONDS
        while running_of(left):
            assert time.monotonic() < until, "the worker has outlived who started it"
            time.sleep(0.05)


def workers_of(daemon: Daemon) -> list[int]:
    """The processes that the daemon has started."""
    processes = [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]
    return [process for process in running_of(processes) if _about(process)[1] == str(daemon.process.pid)]


def running_of(processes: Iterable[int]) -> list[int]:
    """Also one that has ended stays listed until somebody asks how."""
    return [process for process in processes if _about(process)[0] not in ("", "Z", "X")]


def _about(process: int) -> tuple[str, str]:
    """Its state and its parent; nothing where it is gone."""
    with suppress(OSError):
        state, parent = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:2]
        return state, parent
    return "", ""


def check_recall(daemon: Daemon) -> None:
    found = asked(daemon, "recall", sessionId="session-0", query="Where does my sibling have her home?")
    assert found["entries"][0]["text"] == SISTER
    assert "vector" in found["entries"][0]["foundBy"] or "meaning" in found["entries"][0]["foundBy"]
    assert found["degraded"] == []
    for query in ("somebody left the lantern in the garden", "telescope", "on day 111"):
        entries = asked(daemon, "recall", sessionId="session-0", query=query, limit=100)["entries"]
        assert entries
        assert max(Counter(entry["id"] for entry in entries).values()) == 1
        assert max(Counter((entry["sessionId"], entry["span"]["firstSeq"]) for entry in entries).values()) == 1
    best = asked(daemon, "recall", sessionId="session-0", query="Entry111")["entries"][0]
    assert best["text"] == said(111)


def check_log(home: Path) -> None:
    verified = run_offbook("audit", "--verify", env=environ_of(home), text=True)
    assert verified.returncode == 0, verified.stdout + verified.stderr
