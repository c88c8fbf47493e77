"""What encryption costs: the same memory in plain text and encrypted, asked in turn by the same questions."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.acceptance.daemon import WITHOUT_MODEL, Daemon

from benchmarks.exchange import BlockingConnection
from benchmarks.provider import running_in, start
from benchmarks.results import Bar, Cell, Findings, Section
from benchmarks.run import Run
from benchmarks.samples import flat, middle_ratio, percentile
from benchmarks.stores import AGENT, MAIN_SESSION, TEXTS, store_with
from offbook.model.home import Home
from offbook.model.keys import key_file_secret
from offbook.model.memory_folder import remove_memory_folder
from offbook.transfer.encrypting import encrypt

TITLE = "Plain against encrypted: recall, `prepareTurn`, swap and `onMessage` over the socket, and the first start"

PLAIN, ENCRYPTED = "plain", "encrypted"
HELD = {"recall": 1.5, "swap": 1.5, "prepareTurn": None, "onMessage": None}
"""Most of the ratio; None where it is reported."""
EACH = {"onMessage": 40, "recall": 30, "prepareTurn": 30, "swap": 8}
"""In a round."""
WINDOW = 200_000
PLACE = {"agentId": AGENT, "sessionId": MAIN_SESSION.session_id}
READY_SECONDS = 900.0
LEFT_BEHIND = shutil.ignore_patterns("*.sock", "*.lock")

Rounds = dict[str, dict[str, list[list[float]]]]


def measure(run: Run) -> Findings:
    messages, rounds = run.choose(2_000, 20_000), run.choose(3, 8)
    plain, encrypted = _homes(run, messages)
    starts = {name: _first_starts(home) for name, home in ((PLAIN, plain), (ENCRYPTED, encrypted))}
    with running_in(plain, **WITHOUT_MODEL) as one, running_in(encrypted, **WITHOUT_MODEL) as other:
        daemons = {PLAIN: one, ENCRYPTED: other}
        for daemon in daemons.values():
            _wait_until_indexed(daemon)
        taken = _asked(run, daemons, rounds)
    remove_memory_folder(encrypted)  # where it had to be killed
    ratios = {verb: middle_ratio(taken[verb][ENCRYPTED], taken[verb][PLAIN]) for verb in EACH}
    return Findings(
        bars=[
            Bar(f"{verb}, encrypted over plain, p50", f"≤ {most:g}×", f"{ratios[verb]:.2f}×", ratios[verb] <= most)
            if most is not None
            else Bar(f"{verb}, encrypted over plain, p50", "reported", f"{ratios[verb]:.2f}×", None)
            for verb, most in HELD.items()
        ],
        rows=[_row(verb, kind, taken[verb][kind], ratios[verb]) for verb in EACH for kind in (PLAIN, ENCRYPTED)],
        sections=[Section("Until all of it can be found, after a start", [_start_row(*one) for one in starts.items()])],
        notes=[
            f"{messages:,} messages, most of them in one session; without an embedding model, whose time would hide "
            "the difference. Both providers run at once and are asked in turn; the ratio is the median over the rounds "
            "of the one's p50 over the other's.",
            "The search index of an encrypted memory lies in memory and is kept sealed on the disk while none runs.",
        ],
    )


def _homes(run: Run, messages: int) -> tuple[Path, Path]:
    made = store_with(run, messages)
    plain, encrypted = run.folder / "plain", run.folder / "encrypted"
    for home in (plain, encrypted):
        shutil.copytree(made, home, ignore=LEFT_BEHIND)
    run.say("encrypting")
    secret = key_file_secret(run.folder / "encrypted.key", encrypted, may_make=True)
    asyncio.run(encrypt(Home(encrypted), lambda: secret))
    return plain, encrypted


def _first_starts(home: Path) -> list[float]:
    """Seconds until the newest message can be found: when nothing was indexed yet, and when something was."""
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        daemon = start(home, **WITHOUT_MODEL)
        try:
            _wait_until_indexed(daemon)
            seconds.append(time.perf_counter() - began)
        finally:
            daemon.stop()
    return seconds


def _wait_until_indexed(daemon: Daemon) -> None:
    connection = BlockingConnection(daemon.socket, timeout_seconds=120)
    deadline = time.monotonic() + READY_SECONDS
    try:
        while time.monotonic() < deadline:
            status = connection.ask("status", agentId=AGENT).json()
            if status["index"]["entries"] >= status["counts"]["messages"] and not status["index"]["waiting"]:
                return
            time.sleep(0.02)
    finally:
        connection.close()
    raise TimeoutError("the index did not come up with the log")


def _asked(run: Run, daemons: dict[str, Daemon], rounds: int) -> Rounds:
    connections = {kind: BlockingConnection(one.socket, timeout_seconds=120) for kind, one in daemons.items()}
    taken: Rounds = {verb: {kind: [] for kind in daemons} for verb in EACH}
    for number in range(rounds + 1):
        for verb, times in EACH.items():
            found: dict[str, list[float]] = {kind: [] for kind in daemons}
            for at in range(times):
                # In turn, and each first as often: what one leaves in the caches helps neither.
                for kind in sorted(daemons, reverse=bool(at % 2)):
                    found[kind].append(_timed(connections[kind], verb, number * 1_000 + at))
            if number:  # the first round warms up
                for kind in daemons:
                    taken[verb][kind].append(found[kind])
        run.progress("asking", number, rounds)
    for connection in connections.values():
        connection.close()
    return taken


def _timed(connection: BlockingConnection, verb: str, number: int) -> float:
    fields = FIELDS[verb](number)
    if verb == "swap":  # without something new it is the same answer again
        connection.ask("onMessage", **(PLACE | FIELDS["onMessage"](500_000 + number)))
    began = time.perf_counter()
    answer = connection.ask(verb, **(PLACE | fields))
    milliseconds = (time.perf_counter() - began) * 1_000
    assert answer.status == 200, (verb, answer)
    return milliseconds


def _words(number: int) -> str:
    return " ".join(TEXTS[number % len(TEXTS)].split()[:6])


def _message(number: int) -> dict[str, Any]:
    return {"id": f"asked-{number}", "role": "user", "content": f"{TEXTS[number % len(TEXTS)]} {number}"}


FIELDS: dict[str, Callable[[int], dict[str, Any]]] = {
    "onMessage": lambda number: {"messages": [_message(number)]},
    "recall": lambda number: {"query": _words(number)},
    "prepareTurn": lambda number: {"prompt": _words(number), "currentTokens": 50_000, "contextWindow": WINDOW},
    "swap": lambda number: {"usedTokens": int(0.9 * WINDOW), "contextWindow": WINDOW, "force": True},
}


def _row(verb: str, kind: str, rounds: Sequence[Sequence[float]], ratio: float) -> dict[str, Cell]:
    samples = flat(rounds)
    return {
        "verb": verb,
        "memory": kind,
        "p50 ms": round(percentile(samples, 50), 2),
        "p95 ms": round(percentile(samples, 95), 2),
        "calls": len(samples),
        "over plain": f"{ratio:.2f}×" if kind == ENCRYPTED else "",
    }


def _start_row(kind: str, seconds: list[float]) -> dict[str, Cell]:
    return {"memory": kind, "the first, s": round(seconds[0], 2), "the next, s": round(seconds[1], 2)}
