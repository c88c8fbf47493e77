"""What forgetting takes, what those who write meanwhile wait for it, and whether anything is left."""

from __future__ import annotations

import re
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tests.acceptance.daemon import Daemon

from benchmarks.bare_sqlite import BareSqlite
from benchmarks.exchange import BlockingConnection
from benchmarks.indexing import OFF
from benchmarks.paced import PacedWriter, Samples
from benchmarks.planted import (
    AT_ONCE,
    AT_ONCE_FACTS,
    BATCH,
    FACT_CHARS,
    SESSIONS,
    facts_by_place,
    facts_in,
    history,
)
from benchmarks.provider import OFFBOOK, environ_of, running_in
from benchmarks.results import Bar, Cell, Findings, Section
from benchmarks.run import Run
from benchmarks.samples import percentile
from benchmarks.texts import KILOBYTE, text

TITLE = "`forget` of 500 facts planted in a long history while others write, and of some one by one"

AGENT = "main"
PACE_PER_SECOND = 50
"""Few: what is written meanwhile is looked through, too."""
CONTENT = text("forgetting", KILOBYTE)
QUIET_SECONDS = 10
SINGLES = {10_000: 5}
"""Facts forgotten in a call each, by the messages of the history: each looks through all of it."""
LONGEST_SECONDS = 900.0
SURFACES = {"offbook.db", "backups", "summaries", "wiki", "blobs"}
"""Where a fact lies before it is forgotten; were it not, nothing would be shown by its absence."""


class Phase(NamedTuple):
    what: str
    seconds: float | None
    samples: Samples
    daemon_mb: float


class Measured(NamedTuple):
    messages: int
    phases: list[Phase]
    one_by_one: list[float]
    """Seconds of each."""
    reached: dict[str, int]
    before: dict[str, set[str]]
    """Facts by the folder or file that held them."""
    after: dict[str, set[str]]
    told: int
    """Places that the provider itself still found, and facts that recall still told."""
    changed: int
    """Other messages that are not as they were."""
    others: int


def measure(run: Run) -> Findings:
    return findings([_measured(run, messages) for messages in list(SINGLES)[: run.choose(1, 2)]])


def _measured(run: Run, messages: int) -> Measured:
    home = run.folder / f"forgetting-{messages}"
    facts = [secrets.token_hex(FACT_CHARS // 2) for _ in range(AT_ONCE_FACTS + SINGLES[messages])]
    bare = BareSqlite(run.folder / f"beside-forgetting-{messages}")
    with running_in(home, **OFF) as daemon:
        _fill(run, daemon, messages, facts)
        before = facts_by_place(home, facts)
        assert before.keys() >= SURFACES, f"planted only in {sorted(before)}"
        others = set(_others(daemon, facts))
        run.say(f"{messages:,} messages: one forget of {AT_ONCE_FACTS} facts")
        writer = PacedWriter(
            daemon.socket,
            bare,
            agent_id=AGENT,
            content=CONTENT,
            per_second=PACE_PER_SECOND,
            timeout_seconds=LONGEST_SECONDS,
        )
        phases, receipt, residue = _at_once(daemon, writer)
        writer.close()
        settle(daemon)
        run.say(f"{messages:,} messages: {SINGLES[messages]} forgets, one by one")
        one_by_one = []
        for fact in facts[AT_ONCE_FACTS:]:
            seconds, document = timed(daemon, "forget", agentId=AGENT, matching=fact, reason="a benchmark")
            assert document["receipt"]["reached"]["messages"] == 1, document["receipt"]["reached"]
            one_by_one.append(seconds)
            run.progress("forgotten one by one", len(one_by_one), SINGLES[messages])
            residue += len(document["receipt"]["residue"])
        residue += sum(_is_recalled(daemon, fact) for fact in facts[-40:])
        changed = len(others ^ set(_others(daemon, facts)))
        settle(daemon)
        after = facts_by_place(home, facts)
    for place, found in (*facts_by_place(home, facts).items(), ("the log of the daemon", facts_in(daemon.log, facts))):
        after[place] = after.get(place, set()) | found
    bare.close()
    return Measured(
        messages, phases, one_by_one, receipt["reached"], before, after, residue, changed, others=len(others)
    )


def _at_once(daemon: Daemon, writer: PacedWriter) -> tuple[list[Phase], dict[str, Any], int]:
    meant = {"agentId": AGENT, "matching": AT_ONCE, "reason": "a benchmark"}
    writer.write_for(1)
    quiet = writer.write_for(QUIET_SECONDS / 2)
    quiet_mb = peak_mb(daemon.process.pid)
    looked, seconds, _ = _while(writer, lambda: timed(daemon, "forget", **meant, dryRun=True))
    phases = [Phase("dry run", seconds, looked, peak_mb(daemon.process.pid))]
    forgot, seconds, document = _while(writer, lambda: timed(daemon, "forget", **meant))
    receipt = document["receipt"]
    assert receipt["reached"]["messages"] == AT_ONCE_FACTS, receipt["reached"]
    phases.append(Phase(f"forget of {AT_ONCE_FACTS}", seconds, forgot, peak_mb(daemon.process.pid)))
    verified, seconds, check = _while(writer, lambda: timed(daemon, "forget/verify", receipt=receipt, matching=AT_ONCE))
    assert check["isGenuine"], check
    phases.append(Phase("verify", seconds, verified, peak_mb(daemon.process.pid)))
    quiet.add(writer.write_for(QUIET_SECONDS / 2))
    phases.insert(0, Phase("nothing else", None, quiet, quiet_mb))
    return phases, receipt, len(receipt["residue"]) + len(check["residue"])


def _while(
    writer: PacedWriter, act: Callable[[], tuple[float, dict[str, Any]]]
) -> tuple[Samples, float, dict[str, Any]]:
    """What was written while somebody else waited for the one answer."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(act)
        samples = writer.write_while(lambda: not future.done())
        return samples, *future.result()


def timed(daemon: Daemon, verb: str, **fields: Any) -> tuple[float, dict[str, Any]]:
    connection = BlockingConnection(daemon.socket, timeout_seconds=LONGEST_SECONDS)
    try:
        started = time.monotonic()
        answer = connection.ask(verb, **fields)
        seconds = time.monotonic() - started
    finally:
        connection.close()
    assert answer.status == 200, answer.body[:2_000]
    return seconds, answer.json()


def peak_mb(process_id: int) -> float:
    """The most it had in memory at once, so far. `getrusage` of a child counts pages of whoever started it, too. 0: it
    is gone."""
    try:
        status = Path(f"/proc/{process_id}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) / 1_024 if found else 0.0


# ── a history with facts in it ────────────────────────────────────────────────────────────────


def _fill(run: Run, daemon: Daemon, messages: int, facts: list[str]) -> None:
    """With all that comes of a history: summaries, lessons, pages, contexts handed out, a backup."""
    place: dict[str, str] = {}
    for number, (session, batch) in enumerate(history(messages, facts), 1):
        place = {"agentId": AGENT, "sessionId": f"chat-{session}"}
        timed(daemon, "onMessage", **place, messages=batch)
        run.progress(f"making a history of {messages:,} messages", number * BATCH, messages)
    for session in range(SESSIONS):
        timed(daemon, "hooks/session-end", agentId=AGENT, sessionId=f"chat-{session}")
    settle(daemon)
    for session in range(SESSIONS):
        place = {"agentId": AGENT, "sessionId": f"chat-{session}"}
        timed(daemon, "prepareTurn", **place, prompt="what is the label?", deadlineMs=20_000)
        timed(daemon, "swap", **place, usedTokens=190_000, contextWindow=200_000)
    subprocess.run([OFFBOOK, "backup", "--rotate"], env=environ_of(daemon.home), stdout=subprocess.DEVNULL, check=True)


def settle(daemon: Daemon, **fields: Any) -> None:
    """Whatever comes of the log has come of it."""
    until = time.monotonic() + LONGEST_SECONDS
    while timed(daemon, "ping")[1]["backlog"]:
        assert time.monotonic() < until, "the background is not done"
        time.sleep(0.1)
    timed(daemon, "maintain", agentId=AGENT, **fields)


def _others(daemon: Daemon, facts: list[str]) -> Iterator[tuple[int, int, str]]:
    """Session, number and text of every message of the history that holds no fact, and held none."""
    known = set(facts)
    for session in range(SESSIONS):
        after = 0
        while lines := timed(daemon, "log", agentId=AGENT, sessionId=f"chat-{session}", afterSeq=after, limit=1_000)[1][
            "messages"
        ]:
            for line in lines:
                content = line["message"]["content"]
                if content != "[forgotten]" and not known.intersection(re.findall(r"[0-9a-f]{18}", content)):
                    yield session, line["seq"], content
            after = lines[-1]["seq"]


def _is_recalled(daemon: Daemon, fact: str) -> bool:
    entries = timed(daemon, "recall", agentId=AGENT, sessionId="chat-1", query=fact, limit=20)[1]["entries"]
    return any(fact in entry["text"] for entry in entries)


# ── what was found ────────────────────────────────────────────────────────────────────────────


def findings(measured: list[Measured]) -> Findings:
    return Findings(
        bars=[bar for one in measured for bar in _bars(one)],
        rows=[_row(one.messages, phase) for one in measured for phase in one.phases],
        sections=[
            Section(
                "Forgets of one fact each, one by one, nobody writing",
                [
                    {
                        "messages": one.messages,
                        "forgets": len(one.one_by_one),
                        "p50 s": percentile(one.one_by_one, 50),
                        "most s": max(one.one_by_one),
                        "in all s": sum(one.one_by_one),
                    }
                    for one in measured
                ],
            ),
            Section(
                "Facts in the files of the data folder, every byte looked at, backups unpacked",
                [
                    {
                        "messages": one.messages,
                        "in": place,
                        "before": len(one.before.get(place, ())),
                        "after": len(one.after.get(place, ())),
                    }
                    for one in measured
                    for place in sorted(one.before.keys() | one.after.keys())
                ],
            ),
            Section(
                f"What the forget of {AT_ONCE_FACTS} reached",
                [{"messages of the history": one.messages, **_in_words(one.reached)} for one in measured],
            ),
        ],
        notes=[
            f"{SESSIONS} sessions, {AT_ONCE_FACTS} and some random facts of {FACT_CHARS} characters, a "
            "quarter each told as they are, as preferences, decisions and rules, six in texts of 70,000 characters; a "
            "backup in the data folder, which is unpacked, erased in and packed again at each forget. No model: "
            "`embedding.model` is `none`, so there are no vectors.",
            f"Written meanwhile: {PACE_PER_SECOND} messages of 1 KB a second, one client that waits for each answer, "
            "to the same agent, and a row of bare SQLite in a file of its own right after each.",
            "Seconds are those of the verb. The command `offbook forget` asks for a dry run first and forgets then.",
            "The daemon's memory is the most that was resident at once since its start (VmHWM).",
        ],
    )


def _bars(one: Measured) -> list[Bar]:
    where = f"{one.messages:,} messages"
    total = AT_ONCE_FACTS + len(one.one_by_one)
    left = len(set().union(*one.after.values())) if one.after else 0
    phases = {phase.what: phase for phase in one.phases}
    forgot, quiet = phases[f"forget of {AT_ONCE_FACTS}"], phases["nothing else"]
    during, without = (percentile(phase.samples.provider, 99) for phase in (forgot, quiet))
    return [
        Bar(f"facts left in any file after {total} were forgotten in {where}", "0", f"{left}", left == 0),
        Bar(f"found by verify, by a receipt or by recall, {where}", "0", f"{one.told}", one.told == 0),
        Bar(f"other messages changed, {where}", "0", f"{one.changed} of {one.others:,}", one.changed == 0),
        Bar(f"seconds of a forget of {AT_ONCE_FACTS} in {where}", "none", f"{forgot.seconds:.1f} s", None),
        Bar(
            f"p99 of onMessage during it / without; the longest that one waited, {where}",
            "none",
            f"{during:.1f} / {without:.1f} ms = {during / without:.1f}; {max(forgot.samples.provider):.0f} ms",
            None,
        ),
    ]


def _row(messages: int, phase: Phase) -> dict[str, Cell]:
    provider, bare = phase.samples
    return {
        "messages": messages,
        "meanwhile": phase.what,
        "took s": phase.seconds,
        "onMessage p50 ms": percentile(provider, 50),
        "p99 ms": percentile(provider, 99),
        "most ms": max(provider),
        "bare SQLite p99 ms": percentile(bare, 99),
        "its most ms": max(bare),
        "samples": len(provider),
        "the daemon's MB": phase.daemon_mb,
    }


def _in_words(reached: dict[str, int]) -> dict[str, Cell]:
    names = ("messages", "indexEntries", "largeParts", "summaries", "lessons", "contexts", "turnMemories", "notes")
    spaced = {
        name: re.sub("([A-Z])", lambda match: f" {match[1].lower()}", name) for name in (*names, "pages", "backups")
    }
    return {spaced[name]: reached.get(name, 0) for name in spaced}
