"""How many durable messages a second 64 writers get through, one message a request."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from statistics import median
from time import perf_counter_ns
from typing import NamedTuple, cast

import uvloop
from tests.acceptance.daemon import Daemon

from benchmarks.exchange import answer_in, request
from benchmarks.provider import cpu_seconds, running_in
from benchmarks.results import Bar, Findings
from benchmarks.run import Run
from benchmarks.samples import percentile
from benchmarks.texts import KILOBYTE, text
from benchmarks.trials.reckoning import all_faults, logged_ids
from offbook.model.types import Scope

TITLE = "64 writers at once, one 1 KB message a request, each durable before its answer"

WRITERS = 64
AGENTS = 4
SESSIONS = 8
LEAST_PER_SECOND = 5_000


class Round(NamedTuple):
    per_second: float
    daemon_cpu_micros: float
    client_cpu_micros: float
    latencies_micros: list[float]


class Pump(asyncio.Protocol):
    """Sends the next request as soon as the last is answered; no task, no future, so that it costs little."""

    def __init__(self, requests: list[bytes], finished: asyncio.Future[None]) -> None:
        self.latencies_micros: list[float] = []
        self._requests = iter(requests)
        self._finished = finished
        self._sent_at = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def send_next(self) -> None:
        assert self._transport is not None
        following = next(self._requests, None)
        if following is None:
            self._finished.set_result(None)
            return
        self._sent_at = perf_counter_ns()
        self._transport.write(following)

    def data_received(self, data: bytes) -> None:
        self.latencies_micros.append((perf_counter_ns() - self._sent_at) / 1_000)
        # An acknowledgement is some 150 bytes: it comes in one piece or something is wrong.
        if not data.startswith(b"HTTP/1.1 200") or b'"accepted":1' not in data:
            self._finished.set_exception(AssertionError(f"no acknowledgement: {answer_in(data) or data!r}"))
            return
        self.send_next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._finished.done():
            self._finished.set_exception(ConnectionResetError("the provider hung up"))


def scope_of(writer: int) -> Scope:
    session = writer % SESSIONS
    return Scope(agent_id=f"agent-{session % AGENTS}", session_id=f"session-{session}")


def measure(run: Run) -> Findings:
    home = run.folder / "concurrent"
    rounds, each = run.choose(3, 8), run.choose(80, 400)
    with running_in(home) as daemon:
        measured = uvloop.run(_measure(run, daemon, rounds, each))
    expected = Counter(scope for writer in range(WRITERS) for scope in [scope_of(writer)] * rounds * each)
    return _findings(measured, uvloop.run(_faults(home, expected)))


async def _measure(run: Run, daemon: Daemon, rounds: int, each: int) -> list[Round]:
    measured = []
    content = text("concurrent", KILOBYTE)
    for number in range(rounds):
        prepared = [_requests(number, writer, each, content) for writer in range(WRITERS)]
        measured.append(await _round(daemon, prepared))
        run.progress("messages", (number + 1) * each * WRITERS, rounds * each * WRITERS)
    return measured


def _requests(number: int, writer: int, each: int, content: str) -> list[bytes]:
    scope = scope_of(writer)
    owner = {"sessionId": scope.session_id, "agentId": scope.agent_id}
    ids = [f"{number}-{writer}-{index:08}" for index in range(each)]
    return [request("onMessage", {**owner, "message": {"id": id_, "role": "user", "content": content}}) for id_ in ids]


async def _round(daemon: Daemon, prepared: list[list[bytes]]) -> Round:
    loop = asyncio.get_running_loop()
    finished = [loop.create_future() for _ in prepared]
    pumps = []
    for requests, future in zip(prepared, finished, strict=True):
        _, pump = await loop.create_unix_connection(lambda r=requests, f=future: Pump(r, f), str(daemon.socket))
        pumps.append(pump)
    cpu, own_cpu, started = cpu_seconds(daemon), time.process_time(), time.perf_counter()
    for pump in pumps:
        pump.send_next()
    await asyncio.gather(*finished)
    seconds = time.perf_counter() - started
    total = sum(len(requests) for requests in prepared)
    return Round(
        per_second=total / seconds,
        daemon_cpu_micros=(cpu_seconds(daemon) - cpu) * 1e6 / total,
        client_cpu_micros=(time.process_time() - own_cpu) * 1e6 / total,
        latencies_micros=[latency for pump in pumps for latency in pump.latencies_micros],
    )


async def _faults(home, expected: Counter[Scope]) -> list[str]:
    """All are there, each once, and the store is sound."""
    faults = await all_faults(home)
    for scope, count in expected.items():
        ids = await logged_ids(home, scope)
        if len(ids) != count or len(set(ids)) != count:
            faults.append(f"{scope.session_id}: {count} acknowledged, {len(ids)} stored, {len(set(ids))} ids")
    return faults


def _findings(measured: list[Round], faults: list[str]) -> Findings:
    per_second = median(each.per_second for each in measured)
    total = sum(len(each.latencies_micros) for each in measured)
    rows = [
        {
            "round": number,
            "messages/s": each.per_second,
            "p50 ms": percentile(each.latencies_micros, 50) / 1_000,
            "p99 ms": percentile(each.latencies_micros, 99) / 1_000,
            "daemon CPU µs": each.daemon_cpu_micros,
            "client CPU µs": each.client_cpu_micros,
        }
        for number, each in enumerate(measured, 1)
    ]
    cpu = median(each.daemon_cpu_micros for each in measured)
    return Findings(
        bars=[
            Bar(
                "durable messages a second (median of the rounds)",
                f"≥ {LEAST_PER_SECOND:,}",
                f"{per_second:,.0f}",
                per_second >= LEAST_PER_SECOND,
            ),
            Bar("daemon CPU for one message", "none", f"{cpu:.0f} µs", None),
            Bar("all there, each once, store sound", f"{total:,}", "; ".join(faults) or f"{total:,}", not faults),
        ],
        rows=rows,
        notes=[
            f"{WRITERS} connections, {SESSIONS} sessions of {AGENTS} agents; the load generator is one process on the "
            "same machine and takes its share of the cores.",
        ],
    )
