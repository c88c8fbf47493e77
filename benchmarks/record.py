"""What `record` costs the host that calls it, with the provider up and away."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any, NamedTuple

from benchmarks.provider import running_in
from benchmarks.results import Bar, Findings
from benchmarks.run import Run
from benchmarks.samples import percentile
from benchmarks.texts import KILOBYTE, text
from benchmarks.trials.reckoning import all_faults, logged_ids
from offbook.client.async_client import AsyncClient
from offbook.client.blocking import Client
from offbook.model.types import Scope

TITLE = "The caller's cost of fire-and-forget `record`, 1 KB, with the provider up and away"

PACE_PER_SECOND = 1_000
"""More than agents say in a second, and few enough that the delivery keeps up."""
MOST_MICROS = 1_000.0
CONTENT = text("record", KILOBYTE)
FLUSH_SECONDS = 120.0

Record = Callable[[str, tuple[str, str]], None]


class Case(NamedTuple):
    client: type[AsyncClient] | type[Client]
    is_up: bool
    is_paced: bool

    @property
    def session(self) -> str:
        return f"{self.client.__name__} {self.provider} {self.loop}"

    @property
    def provider(self) -> str:
        return "up" if self.is_up else "away"

    @property
    def loop(self) -> str:
        return f"{PACE_PER_SECOND:,} a second" if self.is_paced else "tight loop"


class Measured(NamedTuple):
    case: Case
    taken_micros: list[float]
    cpu_micros: float
    status: dict[str, Any]


CASES = [
    Case(client, is_up, paced) for client in (Client, AsyncClient) for is_up in (True, False) for paced in (True, False)
]


def measure(run: Run) -> Findings:
    home = run.folder / "record"
    calls = run.choose(4_000, 20_000)
    logging.getLogger("offbook.client").setLevel(logging.ERROR)  # it would tell that nobody answers
    with running_in(home):
        measured = [_measured(run, home, case, calls) for case in CASES if case.is_up]
    measured += [_measured(run, home, case, calls) for case in CASES if not case.is_up]
    with running_in(home):
        for case in (case for case in CASES if not case.is_up):
            _deliver(home, case)
    return _findings(measured, asyncio.run(_faults(home, calls)))


def _measured(run: Run, home: Path, case: Case, calls: int) -> Measured:
    run.say(f"{case.client.__name__}, provider {case.provider}, {case.loop}")
    name = _outbox_name(case)
    if case.client is Client:
        with Client(home=home, agent_id="main", client=name) as client:
            taken, cpu = _blocking_calls(client.record, case, calls)
            return Measured(case, taken, cpu, _flushed(case, client))
    return asyncio.run(_async_calls(home, case, calls, name))


def _flushed(case: Case, client: Client) -> dict[str, Any]:
    if case.is_up:
        client.flush(FLUSH_SECONDS)
    return client.outbox_status()


def _blocking_calls(record: Record, case: Case, calls: int) -> tuple[list[float], float]:
    taken: list[float] = []
    started, cpu = time.monotonic(), time.thread_time()
    for number in range(calls):
        if case.is_paced:
            time.sleep(max(0.0, started + number / PACE_PER_SECOND - time.monotonic()))
        taken.append(_timed(record, case))
    return taken, (time.thread_time() - cpu) * 1e6 / calls


async def _async_calls(home: Path, case: Case, calls: int, name: str) -> Measured:
    taken: list[float] = []
    async with AsyncClient(home=home, agent_id="main", client=name) as client:
        started, cpu = time.monotonic(), time.thread_time()
        for number in range(calls):
            if case.is_paced:
                await asyncio.sleep(max(0.0, started + number / PACE_PER_SECOND - time.monotonic()))
            taken.append(_timed(client.record, case))
        cpu = (time.thread_time() - cpu) * 1e6 / calls
        if case.is_up:
            await client.flush(FLUSH_SECONDS)
        return Measured(case, taken, cpu, client.outbox_status())


def _timed(record: Record, case: Case) -> float:
    started = perf_counter_ns()
    record(case.session, ("user", CONTENT))
    return (perf_counter_ns() - started) / 1_000


def _deliver(home: Path, case: Case) -> None:
    """The next client of the same name delivers what the last could not."""
    with Client(home=home, agent_id="main", client=_outbox_name(case)) as client:
        client.flush(FLUSH_SECONDS)


def _outbox_name(case: Case) -> str:
    return "-".join(case.session.replace(",", "").split())


async def _faults(home: Path, calls: int) -> list[str]:
    faults = await all_faults(home)
    for case in CASES:
        ids = await logged_ids(home, Scope(agent_id="main", session_id=case.session))
        if len(ids) != calls or len(set(ids)) != calls:
            faults.append(f"{case.session}: {calls} recorded, {len(ids)} arrived, {len(set(ids))} ids")
    return faults


def _findings(measured: list[Measured], faults: list[str]) -> Findings:
    rows = [
        {
            "client": each.case.client.__name__,
            "provider": each.case.provider,
            "calls": each.case.loop,
            "p50 µs": percentile(each.taken_micros, 50),
            "p99 µs": percentile(each.taken_micros, 99),
            "p99.9 µs": percentile(each.taken_micros, 99.9),
            "most µs": max(each.taken_micros),
            "CPU µs": each.cpu_micros,
            "dropped": each.status["dropped"],
        }
        for each in measured
    ]
    worst = {
        is_up: max(percentile(each.taken_micros, 99) for each in measured if each.case.is_up is is_up)
        for is_up in (True, False)
    }
    total = sum(len(each.taken_micros) for each in measured)
    return Findings(
        bars=[
            Bar("worst p99, provider up", "< 1 ms", f"{worst[True] / 1_000:.3f} ms", worst[True] < MOST_MICROS),
            Bar("worst p99, provider away", "< 1 ms", f"{worst[False] / 1_000:.3f} ms", worst[False] < MOST_MICROS),
            Bar("all recorded arrived, each once", f"{total:,}", "; ".join(faults) or f"{total:,}", not faults),
        ],
        rows=rows,
        notes=[
            f"{len(measured[0].taken_micros):,} calls each; CPU is the calling thread's, with the pacing in it.",
            "What was recorded while the provider was away was delivered by the next client of the same name.",
        ],
    )
