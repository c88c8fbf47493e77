"""What it takes to move in from a host's own database and out again: time, memory, and whether it is all the same."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tests.acceptance.daemon import Daemon
from tests.unit.contrib.importers.openclaw_state import AT_MS, State, add_events, head, said

from benchmarks.exports import LOG, Same, compared, format_difference
from benchmarks.forgetting import LONGEST_SECONDS, peak_mb, settle, timed
from benchmarks.indexing import OFF
from benchmarks.provider import OFFBOOK, environ_of, running_in
from benchmarks.results import Bar, Cell, Findings, Section
from benchmarks.run import Run
from benchmarks.texts import text

TITLE = "`offbook import openclaw`, killed and run again, and `offbook export`, imported and exported again"

AGENT = "main"
OPENCLAW = "import openclaw"
NAMES = ("whole", "killed", "anew", "back")
SESSIONS = 20
TEXTS = [text(f"portability-{number}", 100 + number) for number in range(500)]
LARGE = text("portability-large", 70_000)
LARGE_EVERY = 5_000
LESSON_EVERY = 200
PACKED_EVERY = 4
"""Sessions whose events the host has compressed."""
MOST_TIMES_MEMORY = 1.2
"""Of five times as many messages, which would be nearly five were they held."""
POLL_SECONDS = 0.02


class Ran(NamedTuple):
    what: str
    messages: int
    seconds: float
    peak_mb: float
    """The most the process had in memory at once."""
    daemon_mb: float
    """The same of the daemon, since it was started."""
    report: dict[str, Any]


def measure(run: Run) -> Findings:
    fewer, many = run.choose(2_000, 20_000), run.choose(10_000, 100_000)
    states = {messages: _state(run, messages) for messages in (fewer, many)}
    folders = {(name, messages): run.folder / f"export-{name}-{messages}" for name in NAMES for messages in states}
    rows: list[Ran] = []
    killed: list[Same] = []
    for messages, state in states.items():
        with _running(run, f"whole-{messages}") as daemon:
            run.say(f"{messages:,} messages, in one run")
            rows.append(_openclaw(daemon, state, messages))
            rows += _exported(daemon, folders["whole", messages], messages, is_settled=messages == fewer)
        with _running(run, f"killed-{messages}") as daemon:
            run.say(f"{messages:,} messages, the import killed in the middle")
            stored = _killed(daemon, state, messages // 2)
            rows.append(_openclaw(daemon, state, messages, f"{OPENCLAW}, after kill -9 at {stored:,}"))
            _exported(daemon, folders["killed", messages], messages, is_settled=messages == fewer)
        what = f"one run, and killed at {stored:,} and run again"
        killed.append(compared(what, messages, folders["whole", messages], folders["killed", messages]))
    with _running(run, "anew") as daemon:
        run.say(f"{fewer:,} messages, in one run, once more")
        _openclaw(daemon, states[fewer], fewer)
        _exported(daemon, folders["anew", fewer], fewer, is_settled=True)
    for messages in states:
        with _running(run, f"back-{messages}") as daemon:
            run.say(f"{messages:,} messages, our own export")
            rows.append(_run(daemon, messages, "import offbook", "import", "offbook", str(folders["whole", messages])))
            _exported(daemon, folders["back", messages], messages, is_settled=messages == fewer)
    back = [
        compared("export, import, export", messages, folders["whole", messages], folders["back", messages])
        for messages in states
    ]
    anew = compared("two imports, neither killed", fewer, folders["whole", fewer], folders["anew", fewer])
    size_bytes = sum(path.stat().st_size for path in folders["whole", many].rglob("*") if path.is_file())
    return findings(rows, anew=anew, killed=killed, back=back, size_bytes=size_bytes)


@contextmanager
def _running(run: Run, name: str) -> Iterator[Daemon]:
    with running_in(run.folder / f"portability-{name}", **OFF) as daemon:
        yield daemon


# ── a host's state ────────────────────────────────────────────────────────────────────────────


def _state(run: Run, messages: int) -> State:
    state = State(run.folder / f"openclaw-{messages}", AGENT)
    connection = state.connect()
    each = messages // SESSIONS
    for session in range(SESSIONS):
        id_, first = f"session-{session}", session * each
        with connection:
            events = [head(id_), *(_event(number) for number in range(first, first + each))]
            key = f"agent:{AGENT}:chat-{session}"
            add_events(connection, id_, key, *events, at_ms=AT_MS + first * 1_000, packed=session % PACKED_EVERY == 0)
        run.progress(f"writing a host's state of {messages:,} messages", first + each, messages)
    connection.close()
    return state


def _event(number: int) -> str:
    content = LARGE if number % LARGE_EVERY == 17 else f"{TEXTS[number % len(TEXTS)]} Number {number}."
    if number % LESSON_EVERY == 0:
        content += f" From now on always use the label {number}."
    role = "assistant" if number % 2 else "user"
    return said(f"m{number}", content, role, AT_MS + number * 1_000)


# ── the commands ──────────────────────────────────────────────────────────────────────────────


def _openclaw(daemon: Daemon, state: State, messages: int, what: str = OPENCLAW) -> Ran:
    ran = _run(daemon, messages, what, "import", "openclaw", "--state", str(state.folder))
    (agent,) = ran.report["agents"]
    assert agent["new"] + agent["alreadyThere"] == messages, agent
    return ran


def _exported(daemon: Daemon, folder: Path, messages: int, *, is_settled: bool) -> list[Ran]:
    rows = []
    if is_settled:
        started = time.monotonic()
        settle(daemon, tasks=["lessons"])
        seconds = time.monotonic() - started
        rows.append(Ran("until the background is done with it", messages, seconds, 0, peak_mb(daemon.process.pid), {}))
    return [*rows, _run(daemon, messages, "export", "export", str(folder))]


def _run(daemon: Daemon, messages: int, what: str, *arguments: str) -> Ran:
    output = daemon.home.with_name(f"{daemon.home.name}.out")
    started = time.monotonic()
    most_mb = 0.0

    def look(process: subprocess.Popen[bytes]) -> bool:
        nonlocal most_mb
        most_mb = max(most_mb, peak_mb(process.pid))
        return False

    process = _until(daemon, output, look, *arguments)
    seconds = time.monotonic() - started
    assert process.returncode == 0, daemon.log.read_text()[-2_000:]
    return Ran(what, messages, seconds, most_mb, peak_mb(daemon.process.pid), msgspec.json.decode(output.read_bytes()))


def _killed(daemon: Daemon, state: State, after: int) -> int:
    """How many were stored when it was gone."""
    output = daemon.home.with_name(f"{daemon.home.name}.out")
    process = _until(
        daemon, output, lambda _: _stored(daemon) >= after, "import", "openclaw", "--state", str(state.folder)
    )
    assert process.returncode == -9, "it was done before it could be killed"
    return _stored(daemon)


def _until(
    daemon: Daemon, output: Path, is_enough: Callable[[subprocess.Popen[bytes]], bool], *arguments: str
) -> subprocess.Popen[bytes]:
    """Runs a command to its end, or kills it when it is enough."""
    until = time.monotonic() + LONGEST_SECONDS
    with output.open("wb") as file, daemon.log.open("ab") as errors:
        process = subprocess.Popen(
            [OFFBOOK, *arguments, "--json"], env=environ_of(daemon.home), stdout=file, stderr=errors
        )
        try:
            while process.poll() is None and not is_enough(process) and time.monotonic() < until:
                time.sleep(POLL_SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
    return process


def _stored(daemon: Daemon) -> int:
    if AGENT not in timed(daemon, "status")[1]["agents"]:
        return 0
    return int(timed(daemon, "status", agentId=AGENT)[1]["counts"]["messages"])


# ── what was found ────────────────────────────────────────────────────────────────────────────


def findings(rows: list[Ran], *, anew: Same, killed: list[Same], back: list[Same], size_bytes: int) -> Findings:
    imports = {ran.messages: ran for ran in rows if ran.what == OPENCLAW}
    fewer, many = (imports[messages] for messages in sorted(imports))
    ratio = many.peak_mb / fewer.peak_mb
    return Findings(
        bars=[
            Bar(
                f"peak memory of the import of OpenClaw's SQLite, {many.messages:,} / {fewer.messages:,} messages",
                f"≤ {MOST_TIMES_MEMORY:g}",
                f"{many.peak_mb:.0f} / {fewer.peak_mb:.0f} MB = {ratio:.2f}",
                ratio <= MOST_TIMES_MEMORY,
            ),
            *(
                Bar(
                    f"messages and marks, {same.messages:,}: {same.what}",
                    "the same bytes",
                    format_difference(same, LOG),
                    same.has_same_log,
                )
                for same in (*killed, *back)
            ),
            *(
                Bar(
                    f"whole exports, {same.messages:,}: {same.what}",
                    "the same bytes",
                    format_difference(same),
                    same.is_same,
                )
                for same in (killed[0], back[0])
            ),
            Bar(f"the same, {anew.messages:,}: {anew.what}", "none", format_difference(anew), None),
            Bar(
                f"{many.messages:,} messages from OpenClaw's SQLite",
                "none",
                f"{many.seconds:.0f} s, {many.messages / many.seconds:,.0f} a second",
                None,
            ),
        ],
        rows=[_row(ran) for ran in rows],
        sections=[
            Section(
                "Records of two exports, and how many lines of one are in the other",
                [
                    {"exports": same.what, "messages": same.messages, "kind": kind, **count._asdict()}
                    for same in (anew, *killed, *back)
                    for kind, count in same.kinds.items()
                ],
            )
        ],
        notes=[
            f"{SESSIONS} sessions of one agent in the database of the host, every {PACKED_EVERY}th compressed; texts "
            f"of 100 to 600 characters, every {LARGE_EVERY:,}th of 70,000. Each command is the real one, a process of "
            "its own, with a daemon on the same two cores.",
            "No model: `embedding.model` is `none`. Summaries and lessons are made by rules. Exports of "
            f"{fewer.messages:,} messages were written when all of them were made; those of {many.messages:,} right "
            "after the import, while they are being made, so only messages and marks of these can be the same.",
            "Memory is the most that was resident at once (VmHWM), of the daemon since its start.",
            f"The export of {many.messages:,} messages has {size_bytes / 1e6:,.0f} MB.",
        ],
    )


def _row(ran: Ran) -> dict[str, Cell]:
    return {
        "what": ran.what,
        "messages": ran.messages,
        "s": ran.seconds,
        "messages a second": ran.messages / ran.seconds,
        "its memory MB": ran.peak_mb or None,
        "the daemon's MB": ran.daemon_mb,
    }
