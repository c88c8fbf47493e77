"""Does anything grow with history? The start, and what every request does, with few messages and with very many."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any

from tests.acceptance.daemon import Daemon

from benchmarks.exchange import BlockingConnection, request
from benchmarks.provider import (
    cpu_seconds,
    drop_from_page_cache,
    end,
    kill,
    running_in,
    spawn,
    wait_for_ping,
)
from benchmarks.results import Bar, Findings
from benchmarks.run import Run
from benchmarks.samples import flat, middle_ratio, percentile
from benchmarks.stores import AGENT, MAIN_SESSION, store_with
from benchmarks.texts import KILOBYTE, text

TITLE = "From spawn to the first ping, and the latency of reads, with a short history and with a long one"

FEW = 1_000
MOST_TIMES_START = 2.0
MOST_TIMES_REQUEST = 2.0
WAL_BYTES = 12_000_000
"""Left behind by the kill: under the 16 MB at which a checkpoint would begin to move it."""
LARGEST_IN_LOG = 60_000
"""Under the 65,536 characters from which a string is stored apart: few messages fill the WAL."""
BLOCK = 20
CONTEXT_CHARS = 40_000
OWNER = {"sessionId": MAIN_SESSION.session_id, "agentId": AGENT}

Row = dict[str, Any]


def measure(run: Run) -> Findings:
    many = run.choose(100_000, 1_000_000)
    homes = [store_with(run, FEW), store_with(run, many)]
    sizes = [f"{(home / 'offbook.db').stat().st_size / 1e6:,.1f} MB" for home in homes]
    # The starts after a kill come last: what they leave in the WAL makes the short history longer.
    requests, request_ratios = _requests(run, homes)
    starts, start_ratios = _starts(run, homes)
    worst = max(request_ratios, key=lambda name: request_ratios[name])
    return Findings(
        bars=[
            *(
                Bar(
                    f"start, {state}: {many:,} / {FEW:,} messages",
                    f"< {MOST_TIMES_START:g}",
                    f"{ratio:.2f}",
                    ratio < MOST_TIMES_START,
                )
                for state, ratio in start_ratios.items()
            ),
            *(
                Bar(
                    f"{name} p50: {many:,} / {FEW:,} messages",
                    f"≤ {MOST_TIMES_REQUEST:g}",
                    f"{ratio:.2f}",
                    ratio <= MOST_TIMES_REQUEST,
                )
                for name, ratio in request_ratios.items()
            ),
        ],
        rows=[*starts, *requests],
        notes=[
            f"Few is {FEW:,} messages ({sizes[0]}), many {many:,} ({sizes[1]}); both have 20 sessions of one agent, "
            "one of them with 60 % of the messages, and an audit event for each message.",
            f"Alternating runs; the most that grew is {worst}.",
        ],
    )


# ── the start ─────────────────────────────────────────────────────────────────────────────────


def _starts(run: Run, homes: list[Path]) -> tuple[list[Row], dict[str, float]]:
    states: dict[str, Callable[[Path], None]] = {
        "after a clean stop": lambda home: None,
        "after a clean stop, files not cached": drop_from_page_cache,
        "after kill -9 with a WAL of 12 MB": _leave_wal,
    }
    rows, ratios = [], {}
    times = run.choose(4, 8)
    for state, prepare in states.items():
        run.say(f"starting {state}")
        wall: list[list[float]] = [[], []]
        cpu: list[list[float]] = [[], []]
        for number in range(times):
            # In turn the other one first: whoever follows the end of the large store finds a busy disk.
            for which in (0, 1) if number % 2 else (1, 0):
                prepare(homes[which])
                seconds, cpu_taken = _start_once(homes[which])
                wall[which].append(seconds * 1_000)
                cpu[which].append(cpu_taken * 1_000)
        ratios[state] = median(wall[1]) / median(wall[0])
        rows.append(_row(f"start {state}", wall[0], wall[1], ratios[state], median(cpu[1]) / median(cpu[0])))
    return rows, ratios


def _start_once(home: Path) -> tuple[float, float]:
    started = time.perf_counter()
    daemon = spawn(home)
    try:
        wait_for_ping(daemon)
        return time.perf_counter() - started, cpu_seconds(daemon)
    finally:
        end(daemon)


def _leave_wal(home: Path) -> None:
    daemon = spawn(home)
    try:
        wait_for_ping(daemon)
        connection = BlockingConnection(daemon.socket)
        wal = home / "offbook.db-wal"
        while not wal.exists() or wal.stat().st_size < WAL_BYTES:
            message = {"role": "user", "content": text("wal", LARGEST_IN_LOG)}
            assert connection.ask("onMessage", sessionId="wal", agentId=AGENT, message=message).status == 200
        connection.close()
    finally:
        kill(daemon)


# ── requests ──────────────────────────────────────────────────────────────────────────────────


def _requests(run: Run, homes: list[Path]) -> tuple[list[Row], dict[str, float]]:
    rounds = run.choose(5, 25)
    rows, ratios = [], {}
    with ExitStack() as stack:
        daemons = [stack.enter_context(running_in(home)) for home in homes]
        connections = [BlockingConnection(daemon.socket) for daemon in daemons]
        for name, prepared in _prepared(connections).items():
            run.say(f"asking for {name}")
            wall, cpu = _asked(daemons, connections, prepared, rounds)
            ratios[name] = middle_ratio(wall[1], wall[0])
            milliseconds = [[sample / 1_000 for sample in flat(samples)] for samples in wall]
            rows.append(_row(name, *milliseconds, ratios[name], cpu[1] / cpu[0]))
    return rows, ratios


def _prepared(connections: list[BlockingConnection]) -> dict[str, list[bytes]]:
    """Each request for each of the stores: only the end of the log is at another place."""
    last = [connection.ask("getCompressedContext", **OWNER, maxChars=1).json() for connection in connections]
    ends = [answer["covers"]["lastSeq"] for answer in last]
    message = {"role": "user", "content": text("grow", KILOBYTE)}
    return {
        # First: every request after it adds an event to the short history's few.
        "audit(limit 100)": [request("audit", {"agentId": AGENT, "limit": 100})] * 2,
        "ping": [request("ping")] * 2,
        "onMessage": [request("onMessage", {**OWNER, "message": message})] * 2,
        "getCompressedContext(40,000)": [request("getCompressedContext", {**OWNER, "maxChars": CONTEXT_CHARS})] * 2,
        "log(after = last - 10)": [request("log", {**OWNER, "afterSeq": end_ - 10, "limit": 10}) for end_ in ends],
        "status": [request("status", {"agentId": AGENT})] * 2,
    }


def _asked(
    daemons: list[Daemon], connections: list[BlockingConnection], prepared: list[bytes], rounds: int
) -> tuple[list[list[list[float]]], list[float]]:
    """Microseconds by store and round, and the CPU seconds of each daemon."""
    wall: list[list[list[float]]] = [[], []]
    for connection, sent in zip(connections, prepared, strict=True):
        connection.exchange(sent)
    before = [cpu_seconds(daemon) for daemon in daemons]
    for _ in range(rounds):
        for which, (connection, sent) in enumerate(zip(connections, prepared, strict=True)):
            wall[which].append([_timed(connection, sent) for _ in range(BLOCK)])
    return wall, [cpu_seconds(daemon) - start for daemon, start in zip(daemons, before, strict=True)]


def _timed(connection: BlockingConnection, sent: bytes) -> float:
    started = perf_counter_ns()
    answer = connection.exchange(sent)
    taken = (perf_counter_ns() - started) / 1_000
    assert answer.status == 200, answer
    return taken


def _row(what: str, few: list[float], many: list[float], ratio: float, cpu_ratio: float) -> Row:
    return {
        "what": what,
        "few p50 ms": percentile(few, 50),
        "few p99 ms": percentile(few, 99),
        "many p50 ms": percentile(many, 50),
        "many p99 ms": percentile(many, 99),
        "ratio": ratio,
        "CPU ratio": cpu_ratio,
    }
