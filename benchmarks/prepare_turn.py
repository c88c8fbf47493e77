"""How long a turn takes to be made ready, in a large memory, alone and while another agent's history is taken in."""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import uvloop
from tests.acceptance.daemon import Daemon

from benchmarks.exchange import Answer, BlockingConnection, request
from benchmarks.large_memory import AGENT, Language, forget_model, memory_of, queries
from benchmarks.provider import cpu_seconds, running_in
from benchmarks.results import Bar, Cell, Findings
from benchmarks.run import Run
from benchmarks.samples import percentile

TITLE = "`prepareTurn` over the socket, of an agent with a large memory, the query's embedding included"

ALONE, BACKFILL = "with nothing else", "while a backfill runs"
MOST_MS = {ALONE: 100.0, BACKFILL: 300.0}
SESSION = "turns"
HISTORY_MESSAGES = 60
"""Said in the session before the first turn."""
WARM_UP = 20
PAUSE_SECONDS = 0.5
"""Between two turns: a model takes seconds, in which what was said is indexed. Less, so that it takes no hour."""
WINDOW = 200_000
FIRST_TOKENS, TURN_TOKENS = 20_000, 250
"""What the agent's context has in use at first, and what each turn adds."""
BATCH_MESSAGES = 200
BATCHES_AHEAD = 5
"""Which the provider always has left to embed while a backfill runs."""
LONGEST_WAIT_SECONDS = 900.0
LONGEST_REST_SECONDS = 3_600.0
LEFT_BEHIND = shutil.ignore_patterns("*.sock", "*.lock")


class Turns(NamedTuple):
    milliseconds: list[float]
    cpu_ms: list[float]
    """Of the daemon meanwhile, all its threads: also what it indexes of what was just said."""
    cores: float
    """CPU seconds of the daemon over wall seconds."""
    degraded: list[list[str]]
    intents: Counter[str]
    entries: int
    recall_tokens: int


class Backfill(threading.Thread):
    """The history of another agent, sent in batches as fast as it is embedded, until it is told to stop."""

    def __init__(self, daemon: Daemon) -> None:
        super().__init__(daemon=True)
        self._connection = BlockingConnection(daemon.socket, timeout_seconds=120)
        self._language = Language(13)
        self._is_over = threading.Event()
        self._trouble: BaseException | None = None
        self.sent = 0
        self.idle = 0
        """How often nothing was left to embed when it was looked."""
        self.looked = 0

    def run(self) -> None:
        try:
            while not self._is_over.is_set():
                if self.waiting() < BATCHES_AHEAD * BATCH_MESSAGES:
                    self._send()
                else:
                    self._is_over.wait(0.2)
        except (OSError, AssertionError) as trouble:
            self._trouble = trouble

    def waiting(self) -> int:
        """Not embedded yet."""
        index = self._connection.ask("status", agentId="backfilled").json()["index"]
        self.looked += 1
        self.idle += self.sent > 0 and not index["waiting"]
        return int(index["waiting"])

    def _send(self) -> None:
        texts = self._language.texts(BATCH_MESSAGES)
        messages = [
            {"id": f"old-{self.sent + at}", "role": "assistant" if at % 2 else "user", "content": one.text}
            for at, one in enumerate(texts)
        ]
        session = f"old-{self.sent // (5 * BATCH_MESSAGES)}"
        answer = self._connection.ask("onMessage", sessionId=session, agentId="backfilled", messages=messages)
        assert answer.status == 200, answer
        self.sent += BATCH_MESSAGES

    def stop(self) -> None:
        """Raises what hindered it: then there was no backfill to measure beside."""
        self._is_over.set()
        self.join(60)
        self._connection.close()
        if self._trouble is not None:
            raise self._trouble


class Agent:
    """It says something, has its turn made ready, and answers."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._connection = BlockingConnection(daemon.socket, timeout_seconds=60)
        self._language = Language(17)
        self._said = 0

    def begin(self) -> None:
        for one in self._language.texts(HISTORY_MESSAGES):
            self._say(one.text)

    def turns(self, prompts: Sequence[str]) -> Turns:
        taken: list[float] = []
        spent: list[float] = []
        answers: list[Answer] = []
        began, cpu = time.perf_counter(), cpu_seconds(self._daemon)
        answered = self._language.texts(len(prompts))
        for number, (prompt, said) in enumerate(zip(prompts, answered, strict=True)):
            self._say(prompt)
            used = FIRST_TOKENS + number * TURN_TOKENS
            about = {"sessionId": SESSION, "agentId": AGENT, "currentTokens": used, "contextWindow": WINDOW}
            sent = request("prepareTurn", {**about, "prompt": prompt})
            started, cpu_started = time.perf_counter(), cpu_seconds(self._daemon)
            answers.append(self._connection.exchange(sent))
            taken.append((time.perf_counter() - started) * 1_000)
            spent.append((cpu_seconds(self._daemon) - cpu_started) * 1_000)
            self._say(said.text)
            time.sleep(PAUSE_SECONDS)
        cores = (cpu_seconds(self._daemon) - cpu) / (time.perf_counter() - began)
        return _told(taken, spent, cores, answers)

    def _say(self, text: str) -> None:
        role = "assistant" if self._said % 2 else "user"
        message = {"id": f"said-{self._said}", "role": role, "content": text}
        answer = self._connection.ask("onMessage", sessionId=SESSION, agentId=AGENT, message=message)
        assert answer.status == 200, answer
        self._said += 1

    def wait_until_ready(self) -> None:
        """All is indexed and embedded; by then the model has been loaded."""
        until = time.monotonic() + LONGEST_WAIT_SECONDS
        while time.monotonic() < until:
            index = self._connection.ask("status", agentId=AGENT).json()["index"]
            if index["entries"] and index.get("model") and not index["waiting"]:
                return
            time.sleep(0.1)
        raise RuntimeError("the provider is not ready")

    def close(self) -> None:
        self._connection.close()


def _told(taken: list[float], spent: list[float], cores: float, answers: Sequence[Answer]) -> Turns:
    turns: list[dict[str, Any]] = []
    for answer in answers:
        assert answer.status == 200, answer
        turns.append(answer.json())
    return Turns(
        taken,
        spent,
        cores,
        [turn["degraded"] for turn in turns],
        Counter(turn["intent"] for turn in turns),
        sum(len(turn["entries"]) for turn in turns),
        sum(turn["tokens"]["recall"] for turn in turns),
    )


# ── told ──────────────────────────────────────────────────────────────────────────────────────


def measure(run: Run) -> Findings:
    size = run.choose(2_000, 100_000)
    count = run.choose(50, 300)
    home = run.folder / "prepare-turn"
    shutil.copytree(_at_rest(run, size), home, ignore=LEFT_BEHIND)
    asked = queries(WARM_UP + 2 * count)
    found, backfilled = _measured(run, home, asked, count)
    return _findings(run, size, found, backfilled)


def _at_rest(run: Run, size: int) -> Path:
    """The memory once the background has summarised it and noted what it is about: minutes, so it is kept."""
    made = memory_of(run, size)
    home = made.with_name(f"{made.name}-at-rest")
    whole = home / "at-rest"
    if not whole.exists():
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(made, home, ignore=LEFT_BEHIND)
        uvloop.run(forget_model(home))
        with running_in(home) as daemon:
            connection = BlockingConnection(daemon.socket, timeout_seconds=60)
            until = time.monotonic() + LONGEST_REST_SECONDS
            while (backlog := int(connection.ask("ping").json()["backlog"])) and time.monotonic() < until:
                run.say(f"{backlog:,} things left to do in the background")
                time.sleep(10)
            connection.close()
        if backlog:
            raise RuntimeError(f"the background is not done in {LONGEST_REST_SECONDS:g} s")
        whole.touch()
    return home


def _measured(run: Run, home: Path, asked: Sequence[str], count: int) -> tuple[dict[str, Turns], Backfill]:
    found: dict[str, Turns] = {}
    with running_in(home) as daemon:
        agent = Agent(daemon)
        agent.begin()
        agent.wait_until_ready()
        agent.turns(asked[:WARM_UP])
        run.say(f"{count} turns {ALONE}")
        found[ALONE] = agent.turns(asked[WARM_UP : WARM_UP + count])
        backfill = Backfill(daemon)
        backfill.start()
        while backfill.is_alive() and backfill.sent < BATCHES_AHEAD * BATCH_MESSAGES:
            time.sleep(0.1)
        run.say(f"{count} turns {BACKFILL}")
        try:
            found[BACKFILL] = agent.turns(asked[WARM_UP + count :])
        finally:
            backfill.stop()
        agent.close()
    return found, backfill


def _findings(run: Run, size: int, found: dict[str, Turns], backfilled: Backfill) -> Findings:
    return Findings(
        bars=[_bar(run, size, when, turns, backfilled) for when, turns in found.items()],
        rows=[_row(when, turns) for when, turns in found.items()],
        notes=[
            f"One agent with {size:,} entries (large_memory.py), summarised and at rest, in a session with "
            f"{HISTORY_MESSAGES} messages and more with every turn: `onMessage`, `prepareTurn` (timed), `onMessage`, "
            f"a pause of {PAUSE_SECONDS:g} s. "
            f"Half of the prompts are questions, half ordinary messages. {WARM_UP} turns before are not counted.",
            f"Backfill: batches of {BATCH_MESSAGES} messages of another agent, so that {BATCHES_AHEAD} of them always "
            f"wait to be embedded; {backfilled.sent:,} sent, and nothing left to do at {backfilled.idle} of "
            f"{backfilled.looked} looks.",
            "Degraded: something was left out, and was said to be. Reasons: "
            + "; ".join(f"{when}: {_reasons(turns) or 'none'}" for when, turns in found.items())
            + ".",
            "CPU and cores are those of the daemon, all its threads: CPU while a turn is made ready, when what was "
            "just said is indexed too; cores over all of the time, pauses included.",
        ],
    )


def _bar(run: Run, size: int, when: str, turns: Turns, backfilled: Backfill) -> Bar:
    p99 = percentile(turns.milliseconds, 99)
    has_run = when != BACKFILL or backfilled.idle == 0
    return Bar(
        f"p99 of prepareTurn, {size:,} entries, {when}",
        f"< {MOST_MS[when]:g} ms",
        f"{p99:.1f} ms; something was left out of {_degraded_share(turns):.1%}",
        None if run.is_quick or not has_run else p99 < MOST_MS[when],
    )


def _degraded_share(turns: Turns) -> float:
    """What is late is left out, so a deadline is always kept: at what cost belongs beside it."""
    return sum(map(bool, turns.degraded)) / len(turns.degraded)


def _row(when: str, turns: Turns) -> dict[str, Cell]:
    count = len(turns.milliseconds)
    return {
        "when": when,
        "turns": count,
        "p50 ms": percentile(turns.milliseconds, 50),
        "p95 ms": percentile(turns.milliseconds, 95),
        "p99 ms": percentile(turns.milliseconds, 99),
        "most ms": max(turns.milliseconds),
        "CPU ms, p50": percentile(turns.cpu_ms, 50),
        "degraded %": 100 * sum(map(bool, turns.degraded)) / count,
        "entries a turn": turns.entries / count,
        "recall tokens": turns.recall_tokens / count,
        "intents": ", ".join(f"{intent} {number}" for intent, number in turns.intents.most_common()),
        "cores": turns.cores,
    }


def _reasons(turns: Turns) -> dict[str, int]:
    return dict(Counter(why for reasons in turns.degraded for why in reasons).most_common(5))
