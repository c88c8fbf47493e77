"""How long a context takes, in a short session and in a very long one, with nobody there to write summaries."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec
from tests.acceptance.daemon import Daemon

from benchmarks.exchange import BlockingConnection, request
from benchmarks.long_session import ENVIRON, SCOPE, conversation, long_session
from benchmarks.provider import cpu_seconds, running_in
from benchmarks.results import Bar, Cell, Findings, Section
from benchmarks.run import Run
from benchmarks.samples import flat, middle_ratio, percentile
from benchmarks.trials.conserved import cover_faults
from offbook.model.types import CompressedContext

TITLE = "`getCompressedContext` over the socket, in a short and in a very long session, no summarizer reachable"

FEW = 1_000
SIZES = (8_000, 40_000, 320_000)
BAR_CHARS = 40_000
MOST_MS = 10.0
MOST_TIMES = 2.0
WINDOW, USED = 200_000, 180_000
BLOCK = 20
WARM_UP = 10
NOBODY = {
    "OFFBOOK_SUMMARIZER_ORDER": "openai:gone,extractive",
    # The discard port: nothing listens there, so it refuses at once.
    "OFFBOOK_SUMMARIZER_ENDPOINT": "http://127.0.0.1:9/v1",
}
OWNER = {"sessionId": SCOPE.session_id, "agentId": SCOPE.agent_id}
ALONE, LIVING, FRESH = "nothing is said", "a message before every 10th call", "a message before each call"
SAID_EVERY = {ALONE: 0, LIVING: 10, FRESH: 1}
CAUGHT_UP_SECONDS = 600.0
ANSWER_SECONDS = 5.0
"""A model's: what is said next in a session comes no sooner."""


class Side:
    """One of the two sessions, and the daemon that has it."""

    def __init__(self, messages: int, daemon: Daemon) -> None:
        self.messages = messages
        self.daemon = daemon
        self._connection = BlockingConnection(daemon.socket)
        self._said = conversation(0)

    def timed(self, sent: bytes) -> float:
        started = time.perf_counter()
        answer = self._connection.exchange(sent)
        taken = (time.perf_counter() - started) * 1_000
        assert answer.status == 200, answer
        return taken

    def hear(self) -> None:
        """A message, once the background is done with the one before or has had as long as a model's answer takes."""
        self.catch_up(ANSWER_SECONDS)
        message = msgspec.structs.replace(next(self._said), id=None, ts=None)
        assert self._connection.ask("onMessage", **OWNER, message=message).status == 200

    def context(self, max_chars: int) -> CompressedContext:
        return msgspec.json.decode(self._connection.exchange(_asking(max_chars)).body, type=CompressedContext)

    def catch_up(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._connection.ask("ping").json()["backlog"] and time.monotonic() < until:
            time.sleep(0.02)

    def trouble(self) -> str:
        """Why the summarizer that stands first does not write."""
        return str(self._connection.ask("status", agentId=SCOPE.agent_id).json()["summaries"].get("troubles", {}))

    def close(self) -> None:
        self._connection.close()


class Timed(NamedTuple):
    """Milliseconds by session and round, and the CPU milliseconds of one call."""

    wall: list[list[list[float]]]
    cpu: list[float]

    def samples(self, which: int) -> list[float]:
        return flat(self.wall[which])

    def percentile(self, which: int, percent: float) -> float:
        return percentile(self.samples(which), percent)

    @property
    def ratio(self) -> float:
        return middle_ratio(self.wall[1], self.wall[0])


def measure(run: Run) -> Findings:
    many = run.choose(20_000, 1_000_000)
    rounds, fresh_rounds = run.choose(8, 50), run.choose(2, 5)
    homes = [_copied(run, long_session(run, messages)) for messages in (FEW, many)]
    contexts: dict[tuple[int, str], Timed] = {}
    with ExitStack() as stack:
        daemons = [stack.enter_context(running_in(home, **ENVIRON, **NOBODY)) for home in homes]
        sides = [Side(messages, daemon) for messages, daemon in zip((FEW, many), daemons, strict=True)]
        for side in sides:
            side.catch_up(CAUGHT_UP_SECONDS)
        for how, every in SAID_EVERY.items():
            for max_chars in SIZES:
                run.say(f"contexts of {max_chars:,} characters, {how}")
                # Each call of these waits for the background to be done, so there are fewer.
                times = fresh_rounds if how == FRESH else rounds
                contexts[max_chars, how] = _contexts(sides, max_chars, times, every)
        run.say("swaps")
        swaps = _swaps(sides, fresh_rounds)
        shown = [_parts(side) for side in sides]
        troubles = [side.trouble() for side in sides]
        for side in sides:
            side.close()
    return _findings(run, many, contexts, swaps, shown, troubles)


def _copied(run: Run, home: Path) -> Path:
    """What is asked and said here must not be in it the next time."""
    copy = run.folder / home.name
    shutil.copytree(home, copy)
    return copy


def _asking(max_chars: int) -> bytes:
    return request("getCompressedContext", {**OWNER, "maxChars": max_chars})


def _contexts(sides: list[Side], max_chars: int, rounds: int, said_every: int) -> Timed:
    sent = _asking(max_chars)

    def call(side: Side, number: int) -> float:
        if said_every and number % said_every == 0:
            side.hear()
        return side.timed(sent)

    return _alternating(sides, call, rounds)


def _swaps(sides: list[Side], rounds: int) -> Timed:
    """Each after a message: asked again with nothing new, it would be the answer of before."""
    sent = request("swap", {**OWNER, "usedTokens": USED, "contextWindow": WINDOW})

    def call(side: Side, _number: int) -> float:
        side.hear()
        return side.timed(sent)

    return _alternating(sides, call, rounds)


def _alternating(sides: list[Side], call: Callable[[Side, int], float], rounds: int) -> Timed:
    for side in sides:
        for _ in range(WARM_UP):
            call(side, 1)
    before = [cpu_seconds(side.daemon) for side in sides]
    wall: list[list[list[float]]] = [[] for _ in sides]
    for _ in range(rounds):
        for samples, side in zip(wall, sides, strict=True):
            samples.append([call(side, number) for number in range(BLOCK)])
    spent = [cpu_seconds(side.daemon) - start for side, start in zip(sides, before, strict=True)]
    return Timed(wall, [seconds * 1_000 / (rounds * BLOCK) for seconds in spent])


def _parts(side: Side) -> dict[str, Cell]:
    """What a context is made of; and that it is one."""
    context = side.context(BAR_CHARS)
    last_seq = context.covers.last_seq
    found = cover_faults(context, SCOPE, last_seq, BAR_CHARS)
    assert not found, found
    assert last_seq >= side.messages
    levels = [part.level for part in context.parts if part.kind == "summary"]
    return {
        "messages": f"{last_seq:,}",
        "characters": context.chars,
        **{f"L{level}": levels.count(level) for level in (3, 2, 1)},
        "digests": levels.count(0),
        "verbatim": sum(part.last_seq - part.first_seq + 1 for part in context.parts if part.kind == "verbatim"),
    }


def _findings(
    run: Run,
    many: int,
    contexts: dict[tuple[int, str], Timed],
    swaps: Timed,
    shown: list[dict[str, Cell]],
    troubles: list[str],
) -> Findings:
    bars = []
    living = contexts[BAR_CHARS, LIVING]
    for which, messages in enumerate((FEW, many)):
        p99 = living.percentile(which, 99)
        what = f"p99 of {BAR_CHARS:,} characters of {messages:,} messages, {LIVING}"
        bars.append(Bar(what, f"< {MOST_MS:g} ms", f"{p99:.2f} ms", _met(run, p99 < MOST_MS)))
    for how in SAID_EVERY:
        ratio = contexts[BAR_CHARS, how].ratio
        what = f"p50 of {BAR_CHARS:,} characters, {many:,} / {FEW:,} messages, {how}"
        bars.append(Bar(what, f"≤ {MOST_TIMES:g}", f"{ratio:.2f}", _met(run, ratio <= MOST_TIMES)))
    for which, messages in enumerate((FEW, many)):
        measured = f"{swaps.percentile(which, 50):.0f}, {swaps.percentile(which, 99):.0f} ms"
        what = f"p50, p99 of a swap of {messages:,} messages that nothing was prepared for, window {WINDOW:,}"
        bars.append(Bar(what, "none", measured, None))
    rows = [
        _row(f"{max_chars:,} characters", how, messages, which, timed)
        for (max_chars, how), timed in contexts.items()
        for which, messages in enumerate((FEW, many))
    ]
    rows += [
        _row("swap", "a message before each", messages, which, swaps) for which, messages in enumerate((FEW, many))
    ]
    return Findings(
        bars=bars,
        rows=rows,
        sections=[Section(f"What a context of {BAR_CHARS:,} characters was made of at the end", shown)],
        notes=[
            "One session; messages of some 200 characters (English words in their usual shares, a few names, numbers "
            "and dates), a tool's call and result in every seventh exchange. Its summaries and its index are made "
            f"beforehand (`long_session.py`). The two sessions in turns, {BLOCK} calls each; every answer leaves a "
            "durable audit event.",
            "What is asked for again while nothing is said is the same and is kept. The call right after a message "
            "extends what stood ready; the message itself (`onMessage`) is not in the figures. Before each message "
            f"the background may finish, for at most the {ANSWER_SECONDS:g} s of a model's answer.",
            f"The summarizer was {NOBODY['OFFBOOK_SUMMARIZER_ORDER']}, at an endpoint where nobody listens; `status` "
            f"said: {troubles[1]}.",
            f"A swap is fitted to {WINDOW:,} tokens × 0.40 and comes with its ledger. Here each follows right after "
            "another, so that none stands by, as it does in a session that nears its threshold (see hot_swap). CPU is "
            "that of the daemon, all threads, with the work for what was said.",
        ],
    )


def _met(run: Run, is_met: bool) -> bool | None:
    return None if run.is_quick else is_met


def _row(what: str, how: str, messages: int, which: int, timed: Timed) -> dict[str, Cell]:
    return {
        "what": what,
        "meanwhile": how,
        "messages": f"{messages:,}",
        "p50 ms": timed.percentile(which, 50),
        "p95 ms": timed.percentile(which, 95),
        "p99 ms": timed.percentile(which, 99),
        "most ms": max(timed.samples(which)),
        "CPU ms": timed.cpu[which],
        "× p50": timed.ratio if which else None,
        "samples": len(timed.samples(which)),
    }
