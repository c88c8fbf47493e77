"""How long one client waits for a durable acknowledgement, beside what SQLite alone takes for the same row."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter_ns

import uvloop
from tests.acceptance.daemon import Daemon

from benchmarks.bare_sqlite import BareSqlite
from benchmarks.exchange import BlockingConnection, request
from benchmarks.provider import cpu_seconds, running_in
from benchmarks.results import Bar, Findings
from benchmarks.run import Run
from benchmarks.samples import flat, middle_ratio, percentile
from benchmarks.texts import KILOBYTE, text
from offbook.client.async_client import AsyncClient

TITLE = "A durable acknowledgement over the socket, one client, 1 KB, against bare SQLite on the same disk"

BLOCK = 200
"""Long enough for a steady state, short enough that what else the machine does hits all of them alike."""
MOST_TIMES_BARE = 3.0
PAUSE_SECONDS = 0.0003
"""About a round trip: in a tight loop SQLite finds all it needs in the processor's caches, a provider never does."""
CONTENT = text("acknowledge", KILOBYTE)

Block = Callable[[int], Awaitable[list[float]]]


def measure(run: Run) -> Findings:
    home = run.folder / "acknowledge"
    with running_in(home) as daemon:
        return uvloop.run(_measure(run, daemon, home.with_suffix(".bare")))


async def _measure(run: Run, daemon: Daemon, bare_path: Path) -> Findings:
    bare = BareSqlite(bare_path)
    raw = BlockingConnection(daemon.socket)
    async with AsyncClient(daemon.socket_endpoint, agent_id="main", home=daemon.home) as client:
        blocks: dict[str, Block] = {
            "bare SQLite": partial(_bare, bare),
            "bare SQLite, with pauses": partial(_bare, bare, pause_seconds=PAUSE_SECONDS),
            "raw socket": partial(_raw, raw, count()),
            "AsyncClient": partial(_client, client, count()),
        }
        samples: dict[str, list[list[float]]] = {name: [] for name in blocks}
        cpu = dict.fromkeys(blocks, 0.0)
        for block in blocks.values():
            await block(BLOCK)
        rounds = run.choose(5, 30)
        for done in range(rounds):
            for name, block in blocks.items():
                clock = time.thread_time if name.startswith("bare") else partial(cpu_seconds, daemon)
                before = clock()
                samples[name].append(await block(BLOCK))
                cpu[name] += clock() - before
            run.progress("rounds", done + 1, rounds)
    raw.close()
    bare.close()
    return _findings(samples, cpu)


async def _bare(bare: BareSqlite, times: int, *, pause_seconds: float = 0.0) -> list[float]:
    return bare.insert(times, CONTENT, pause_seconds=pause_seconds)


async def _raw(connection: BlockingConnection, numbers: count[int], times: int) -> list[float]:
    def prepared() -> bytes:
        message = {"id": f"raw-{next(numbers):012}", "role": "user", "content": CONTENT}
        return request("onMessage", {"sessionId": "raw", "agentId": "main", "message": message})

    taken = []
    for sent in [prepared() for _ in range(times)]:
        started = perf_counter_ns()
        answer = connection.exchange(sent)
        taken.append((perf_counter_ns() - started) / 1_000)
        assert b'"accepted":1' in answer.body, answer
    return taken


async def _client(client: AsyncClient, numbers: count[int], times: int) -> list[float]:
    taken = []
    for _ in range(times):
        message = {"id": f"client-{next(numbers):012}", "role": "user", "content": CONTENT}
        started = perf_counter_ns()
        receipt = await client.on_message("client", message)
        taken.append((perf_counter_ns() - started) / 1_000)
        assert receipt.accepted == 1, receipt
    return taken


def _findings(samples: dict[str, list[list[float]]], cpu: dict[str, float]) -> Findings:
    bare = samples["bare SQLite"]
    ratio = middle_ratio(samples["raw socket"], bare)
    added = percentile(flat(samples["raw socket"]), 50) - percentile(flat(bare), 50)
    client_ratio = middle_ratio(samples["AsyncClient"], bare)
    rows = [
        {
            "way": name,
            "p50 µs": percentile(flat(rounds), 50),
            "p95 µs": percentile(flat(rounds), 95),
            "p99 µs": percentile(flat(rounds), 99),
            "× bare p50": middle_ratio(rounds, bare),
            "× bare p99": middle_ratio(rounds, bare, 99),
            "CPU µs": cpu[name] * 1e6 / len(flat(rounds)),
            "samples": len(flat(rounds)),
        }
        for name, rounds in samples.items()
    ]
    return Findings(
        bars=[
            Bar("raw socket p50 / bare SQLite p50", f"≤ {MOST_TIMES_BARE:g}", f"{ratio:.2f}", ratio <= MOST_TIMES_BARE),
            Bar("AsyncClient p50 / bare SQLite p50", "none", f"{client_ratio:.2f}", None),
            Bar("what the provider adds to bare SQLite's p50", "none", f"{added:.0f} µs", None),
        ],
        rows=rows,
        notes=[
            f"Blocks of {BLOCK} of each way in turn; the ratios are medians over {len(bare)} rounds.",
            "CPU is the daemon's for one message (for bare SQLite: this thread's).",
        ],
    )
