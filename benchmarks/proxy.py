"""What the proxy costs: the first token of a streamed completion through it and directly, and many streams at once."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import uvloop
from tests.acceptance.daemon import Daemon

from benchmarks.exchange import BlockingConnection
from benchmarks.large_memory import AGENT, memory_of, queries
from benchmarks.provider import OFFBOOK, cpu_seconds, environ_of, running_in
from benchmarks.results import Bar, Cell, Findings
from benchmarks.run import Run
from benchmarks.samples import percentile
from offbook.contrib.proxy.chat_api import AnswerReader

TITLE = "A streamed completion through the proxy and directly, in turn: the first token; and 100 streams at once"

DIRECT, PROXIED = "directly", "through the proxy"
QUESTION, RESULT = "a new question", "a tool's result"
MOST_MS = 15.0
STREAMS = 100
WARM_UP = 20
PAUSE_SECONDS = 0.25
"""Between two turns: a model takes seconds, in which what was said is indexed."""
HISTORY_MESSAGES = 40
"""Kept in the conversation: the client sends them with every request."""
STREAM_PIECES, PIECE_PAUSE_SECONDS = 20, 0.1
LONGEST_REST_SECONDS = 600.0
LEFT_BEHIND = shutil.ignore_patterns("*.sock", "*.lock")
MODEL_PROGRAM = f"""
import itertools, json, threading
from tests.acceptance.scripted_api import Api, Says, Sends
numbers = itertools.count(1)
def reply(received):
    if received.method == "GET":
        return Sends(200, json.dumps({{"most": api.most_streams_open}}).encode())
    asked, number = received.json(), next(numbers)
    is_slow = asked.get("user") == "slow"
    text = f"Answer {{number:06}}: " + "a word " * ({STREAM_PIECES} if is_slow else 3)
    calls = [(f"call_{{number}}", "look", "{{}}")] if asked["messages"][-1]["role"] == "user" and not is_slow else []
    return Says(text, calls, pause_seconds={PIECE_PAUSE_SECONDS} if is_slow else 0.0)
api = Api(reply)
print(api.port, flush=True)
threading.Event().wait()
"""


class Held(NamedTuple):
    first_ms: list[float]
    whole: int
    """Streams that came whole."""
    most_at_once: int
    """Open at the model at one time."""


# ── what is run ───────────────────────────────────────────────────────────────────────────────


@contextmanager
def _model() -> Iterator[int]:
    """In a process of its own, as a model is."""
    process = subprocess.Popen([sys.executable, "-c", MODEL_PROGRAM], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


@contextmanager
def _proxy(home: Path, model_port: int) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    command = [OFFBOOK, "proxy", "--upstream", f"http://127.0.0.1:{model_port}/v1", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*command, "--agent", AGENT, "--json"],
        env=environ_of(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        base_url = ""
        for line in process.stdout:  # pretty-printed or on one line
            if "baseUrl" in line:
                base_url = line.split('"baseUrl":')[1].split('"')[1]
                break
        yield int(base_url.split(":")[2].split("/")[0]), process
    finally:
        process.terminate()
        process.wait()


class Client:
    """One kept connection; tells when the first token of an answer came."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, body: bytes) -> tuple[float, dict[str, Any]]:
        started = time.perf_counter()
        self._connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
        response = self._connection.getresponse()
        reads, first_ms = AnswerReader("text/event-stream"), 0.0
        for line in iter(response.readline, b""):
            if not first_ms and b'"content": "A' in line:
                first_ms = (time.perf_counter() - started) * 1_000
            reads.feed(line)
        answer = reads.answer()
        assert first_ms, response.status
        assert answer is not None
        return first_ms, answer.message

    def close(self) -> None:
        self._connection.close()


def _body(messages: list[dict[str, Any]], **fields: Any) -> bytes:
    return json.dumps({"model": "m", "stream": True, "messages": messages, **fields}).encode()


def _in_turn(run: Run, ports: dict[str, int], count: int) -> dict[tuple[str, str], list[float]]:
    clients = {way: Client(port) for way, port in ports.items()}
    found: dict[tuple[str, str], list[float]] = {(what, way): [] for what in (QUESTION, RESULT) for way in ports}
    history: list[dict[str, Any]] = []
    said: dict[str, Any] = {}
    for number, prompt in enumerate(queries(WARM_UP + count)):
        history.append({"role": "user", "content": prompt})
        for what in (QUESTION, RESULT):
            body = _body(history)
            for way in (DIRECT, PROXIED) if number % 2 else (PROXIED, DIRECT):
                first_ms, answer = clients[way].ask(body)
                if number >= WARM_UP:
                    found[what, way].append(first_ms)
                if way == PROXIED:
                    said = answer
            history.append(said)
            for call in said.get("tool_calls", ()):
                history.append({"role": "tool", "tool_call_id": call["id"], "content": "Nothing special."})
            time.sleep(PAUSE_SECONDS)
        if len(history) > HISTORY_MESSAGES:
            history = []
        run.progress("turns", number + 1, WARM_UP + count)
    for client in clients.values():
        client.close()
    return found


def _turns(daemon: Daemon, count: int) -> list[float]:
    """What the provider alone takes to prepare a turn, asked over its socket at the same pace."""
    connection = BlockingConnection(daemon.socket, timeout_seconds=60)
    taken = []
    for prompt in queries(count):
        started = time.perf_counter()
        answer = connection.ask("prepareTurn", sessionId="beside", agentId=AGENT, prompt=prompt, contextWindow=200_000)
        taken.append((time.perf_counter() - started) * 1_000)
        assert answer.status == 200, answer
        time.sleep(PAUSE_SECONDS)
    connection.close()
    return taken


async def _hold(port: int, model_port: int) -> Held:
    async def stream(number: int) -> tuple[float, bool]:
        body = _body([{"role": "user", "content": f"Tell me about parcel {number}."}], user="slow")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
        started = time.perf_counter()
        writer.write(f"{head}content-type: application/json\r\nconnection: close\r\n\r\n".encode() + body)
        got, first_ms = b"", 0.0
        while b"[DONE]" not in got[-200:]:
            piece = await reader.read(65_536)
            if not piece:
                break
            got += piece
            if not first_ms and b'"content": "A' in got:
                first_ms = (time.perf_counter() - started) * 1_000
        writer.close()
        return first_ms, b"[DONE]" in got

    found = await asyncio.gather(*(stream(number) for number in range(STREAMS)))
    asking = http.client.HTTPConnection("127.0.0.1", model_port, timeout=10)
    asking.request("GET", "/v1/most")
    most = json.loads(asking.getresponse().read())["most"]
    asking.close()
    return Held([first for first, _ in found], sum(whole for _, whole in found), most)


def _rested(daemon: Daemon) -> None:
    connection = BlockingConnection(daemon.socket, timeout_seconds=60)
    until = time.monotonic() + LONGEST_REST_SECONDS
    while int(connection.ask("ping").json()["backlog"]) and time.monotonic() < until:
        time.sleep(0.5)
    connection.close()


# ── told ──────────────────────────────────────────────────────────────────────────────────────


def measure(run: Run) -> Findings:
    size = run.choose(2_000, 10_000)
    home = run.folder / "proxy"
    shutil.copytree(memory_of(run, size), home, ignore=LEFT_BEHIND)
    loads = [os.getloadavg()[0]]
    with running_in(home) as daemon, _model() as model_port, _proxy(home, model_port) as (port, process):
        _rested(daemon)
        ports = {DIRECT: model_port, PROXIED: port}
        daemon_cpu, proxy_cpu = cpu_seconds(daemon), _cpu_seconds(process.pid)
        first = _in_turn(run, ports, run.choose(60, 300))
        turns = len(first[QUESTION, PROXIED]) + WARM_UP
        daemon_ms = (cpu_seconds(daemon) - daemon_cpu) * 1_000 / turns
        proxy_ms = (_cpu_seconds(process.pid) - proxy_cpu) * 1_000 / turns / 2
        alone = _turns(daemon, run.choose(30, 100))
        run.say(f"{STREAMS} streams at once")
        held = {way: uvloop.run(_hold(ports[way], model_port)) for way in (PROXIED, DIRECT)}
    loads.append(os.getloadavg()[0])
    is_held = held[PROXIED].whole == STREAMS and held[PROXIED].most_at_once >= STREAMS
    return Findings(
        bars=[
            *(_bar(what, first[what, PROXIED], first[what, DIRECT]) for what in (QUESTION, RESULT)),
            Bar(
                f"{STREAMS} streams at once through the proxy",
                f"all {STREAMS} whole",
                f"{held[PROXIED].whole} whole, {held[PROXIED].most_at_once} open at one time",
                is_held,
            ),
        ],
        rows=[
            *(_row(f"{what}", way, first[what, way]) for what in (QUESTION, RESULT) for way in (DIRECT, PROXIED)),
            _row("`prepareTurn` alone", "the provider's socket", alone),
            *(_row(f"{STREAMS} begun at once", way, held[way].first_ms) for way in (DIRECT, PROXIED)),
        ],
        notes=[
            f"An agent with {size:,} entries (large_memory.py), all embedded; the model answers at once, in a process "
            f"of its own. The same requests go both ways, in turn the one and the other first, over one kept "
            f"connection each, with a pause of {PAUSE_SECONDS:g} s; the history has up to {HISTORY_MESSAGES} messages. "
            f"{WARM_UP} turns before are not counted.",
            "A new question waits for what comes to mind (`prepareTurn`, at most 250 ms); while the model is at work "
            "on it with its tools, the turn that was prepared is used again.",
            f"CPU a request: {proxy_ms:.1f} ms of the proxy; a turn: {daemon_ms:.1f} ms of the daemon, what it "
            f"indexes included. Load of the machine before and after: {loads[0]:.1f}, {loads[1]:.1f}.",
            "Begun at once, each request asks the provider; those that are not answered in time pass unchanged.",
        ],
    )


def _bar(what: str, proxied: list[float], direct: list[float]) -> Bar:
    more_ms = percentile(proxied, 50) - percentile(direct, 50)
    return Bar(
        f"first token beyond going directly, p50, {what}", f"≤ {MOST_MS:g} ms", f"{more_ms:.1f} ms", more_ms <= MOST_MS
    )


def _row(what: str, way: str, first_ms: list[float]) -> dict[str, Cell]:
    return {
        "what": what,
        "way": way,
        "streams": len(first_ms),
        "p50 ms": percentile(first_ms, 50),
        "p95 ms": percentile(first_ms, 95),
        "p99 ms": percentile(first_ms, 99),
        "most ms": max(first_ms),
    }


def _cpu_seconds(process_id: int) -> float:
    return time.clock_gettime((~process_id << 3) | 2)
