"""How long a recall takes, with few entries and with very many, with and without the model, and where the time goes."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple
from unittest.mock import patch

import uvloop

from benchmarks.exchange import BlockingConnection, request
from benchmarks.large_memory import AGENT, forget_model, memory_of, queries
from benchmarks.provider import cpu_seconds, running_in
from benchmarks.results import Bar, Cell, Findings, Section
from benchmarks.run import Run
from benchmarks.samples import percentile
from offbook.api.embedded import open_memory
from offbook.api.memory import Memory
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding
from offbook.search import ranking

TITLE = "`recall` (limit 5) of one agent's memory, end to end, the query's embedding included"

MODEL, NO_MODEL = "with the model", "by text only"
MOST_MS = {(100_000, MODEL): 50, (1_000_000, MODEL): 100, (100_000, NO_MODEL): 10, (1_000_000, NO_MODEL): 40}
LIMIT = 5
WARM_UP = 30
SETTINGS = {MODEL: Settings(), NO_MODEL: Settings(embedding=Embedding(model="none"))}
ENVIRON = {MODEL: {}, NO_MODEL: {"OFFBOOK_EMBEDDING_MODEL": "none"}}
LONGEST_WAIT_SECONDS = 900.0

STEPS_OF_RANK = ("known_words", "by_text", "by_meaning", "pool", "gather", "weighed", "_settled")


class Timed(NamedTuple):
    milliseconds: list[float]
    cpu_ms: float
    """Of one recall: all threads of the process that answers."""


def measure(run: Run) -> Findings:
    sizes = [10_000] if run.is_quick else [10_000, 100_000, 1_000_000]
    asked = queries(run.choose(100, 200))
    rows: list[dict[str, Cell]] = []
    spent: dict[int, dict[str, float]] = {}
    bars: list[Bar] = []
    for size in sizes:
        home = memory_of(run, size)
        for model in (NO_MODEL, MODEL):
            run.say(f"{size:,} entries, {model}")
            uvloop.run(forget_model(home))
            inside, parts = uvloop.run(_inside(home, model, asked))
            uvloop.run(forget_model(home))
            over_socket = _over_socket(home, model, asked)
            for way, timed in (("in process", inside), ("over the socket", over_socket)):
                rows.append(_row(size, model, way, timed))
                p50, p95 = (percentile(timed.milliseconds, percent) for percent in (50, 95))
                run.say(f"  {way}: p50 {p50:.1f}, p95 {p95:.1f}, CPU {timed.cpu_ms:.1f} ms")
            if model == MODEL:
                spent[size] = parts
            if (size, model) in MOST_MS:
                limit = MOST_MS[size, model]
                p95 = percentile(over_socket.milliseconds, 95)
                bars.append(
                    Bar(
                        f"p95 over the socket, {size:,} entries, {model}", f"< {limit} ms", f"{p95:.1f} ms", p95 < limit
                    )
                )
    return Findings(
        bars=bars,
        rows=rows,
        sections=[Section("Where the time goes, in process with the model, mean ms of a recall", _parts(spent))],
        notes=[
            f"{len(asked)} queries, half of them questions, half ordinary messages of up to 300 characters, one after "
            "the other; each answer leaves a durable audit event. CPU is that of the answering process, all threads.",
            "The memory is made up (large_memory.py): English words in their usual shares, sessions of 20 messages, "
            "6 % of them of several passages, vectors about those of real texts. Messages are in the store as always.",
            "Parts may overlap: those of `rank` are within it, and what is in none of them is threads waiting for "
            "each other.",
        ],
    )


# ── in process ────────────────────────────────────────────────────────────────────────────────


async def _inside(home: Path, model: str, asked: list[str]) -> tuple[Timed, dict[str, float]]:
    async with open_memory(home, settings=SETTINGS[model], environ={}) as memory:
        await _ready(memory, model)
        await _recalls(memory, asked[:WARM_UP])
        cpu = time.process_time()
        taken = await _recalls(memory, asked)
        cpu_ms = (time.process_time() - cpu) * 1_000 / len(asked)
        with _stopwatches(memory) as spent:
            again = await _recalls(memory, asked)
    parts = {name: sum(samples) / len(asked) for name, samples in spent.items()}
    return Timed(taken, cpu_ms), {"all of it": fmean(again), **parts}


async def _ready(memory: Memory, model: str) -> None:
    """The index is opened, and (as it has all vectors) the model asked for whether any are missing."""
    until = time.monotonic() + LONGEST_WAIT_SECONDS
    while True:
        index = (await memory.status(AGENT)).index
        if index.entries and (model == NO_MODEL or (index.model and not index.waiting)):
            await asyncio.sleep(1.5)  # for the first ageing and the first commit
            return
        if time.monotonic() > until:
            raise RuntimeError(f"the memory is not ready: {index}")
        await asyncio.sleep(0.1)


async def _recalls(memory: Memory, asked: list[str]) -> list[float]:
    scope = memory.scope("asking", AGENT)
    taken = []
    for query in asked:
        started = time.perf_counter()
        found = await memory.recall(scope, query, limit=LIMIT)
        taken.append((time.perf_counter() - started) * 1_000)
        assert found.entries, query
    return taken


@contextmanager
def _stopwatches(memory: Memory) -> Iterator[dict[str, list[float]]]:
    """Milliseconds spent in each part, while it lasts. Whatever of these the product has no more is passed over."""
    background: Any = memory._background
    store: Any = memory._store
    spent: dict[str, list[float]] = defaultdict(list)
    watched = [
        ("follow", background.indexes, "_follow", _awaited),
        ("embed (thread and model)", background._recall, "_vector", _awaited),
        ("rank", ranking, "rank", _called),
        *((f"rank: {name.strip('_')}", ranking, name, _called) for name in STEPS_OF_RANK),
        ("holds", store, "holds", _awaited),
        ("links", store, "supersessions", _awaited),
        ("messages", store, "messages_at", _awaited),
        ("notes", store, "agent_note", _awaited),
        ("audit and retrievals, durable", store, "recalled", _awaited),
    ]
    with ExitStack() as stack:
        for name, owner, attribute, watching in watched:
            if hasattr(owner, attribute):
                watch = watching(getattr(owner, attribute), spent[name])
                stack.enter_context(patch.object(owner, attribute, watch))
        yield spent


def _called(function: Callable[..., Any], samples: list[float]) -> Callable[..., Any]:
    def watched(*given: Any, **named: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*given, **named)
        finally:
            samples.append((time.perf_counter() - started) * 1_000)

    return watched


def _awaited(function: Callable[..., Any], samples: list[float]) -> Callable[..., Any]:
    async def watched(*given: Any, **named: Any) -> Any:
        started = time.perf_counter()
        try:
            return await function(*given, **named)
        finally:
            samples.append((time.perf_counter() - started) * 1_000)

    return watched


# ── over the socket ───────────────────────────────────────────────────────────────────────────


def _over_socket(home: Path, model: str, asked: list[str]) -> Timed:
    with running_in(home, **ENVIRON[model]) as daemon:
        connection = BlockingConnection(daemon.socket)
        _wait_until_ready(connection, model)
        _exchanges(connection, asked[:WARM_UP])
        cpu = cpu_seconds(daemon)
        taken = _exchanges(connection, asked)
        cpu_ms = (cpu_seconds(daemon) - cpu) * 1_000 / len(asked)
        connection.close()
    return Timed(taken, cpu_ms)


def _wait_until_ready(connection: BlockingConnection, model: str) -> None:
    until = time.monotonic() + LONGEST_WAIT_SECONDS
    while time.monotonic() < until:
        index = connection.ask("status", agentId=AGENT).json()["index"]
        if index["entries"] and (model == NO_MODEL or (index.get("model") and not index["waiting"])):
            time.sleep(1.5)
            return
        time.sleep(0.1)
    raise RuntimeError("the provider is not ready")


def _exchanges(connection: BlockingConnection, asked: list[str]) -> list[float]:
    prepared = [
        request("recall", {"sessionId": "asking", "agentId": AGENT, "query": query, "limit": LIMIT}) for query in asked
    ]
    taken = []
    for sent in prepared:
        started = time.perf_counter()
        answer = connection.exchange(sent)
        taken.append((time.perf_counter() - started) * 1_000)
        assert answer.status == 200, answer
        assert b'"entries":[{' in answer.body, answer
    return taken


# ── told ──────────────────────────────────────────────────────────────────────────────────────


def _row(size: int, model: str, way: str, timed: Timed) -> dict[str, Cell]:
    return {
        "entries": f"{size:,}",
        "how": model,
        "way": way,
        "p50 ms": percentile(timed.milliseconds, 50),
        "p95 ms": percentile(timed.milliseconds, 95),
        "p99 ms": percentile(timed.milliseconds, 99),
        "CPU ms": timed.cpu_ms,
        "p95 bar ms": MOST_MS.get((size, model)),
    }


def _parts(spent: dict[int, dict[str, float]]) -> list[dict[str, Cell]]:
    names = list(dict.fromkeys(name for parts in spent.values() for name in parts))
    return [{"part": name, **{f"{size:,}": parts.get(name) for size, parts in spent.items()}} for name in names]
