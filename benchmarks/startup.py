"""How long a person waits for `offbook --help`, and a program for `import offbook`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import click

import offbook
from benchmarks.provider import drop_from_page_cache
from benchmarks.results import Bar, Findings
from benchmarks.run import Run

TITLE = "From the start of a process to its end: the bare interpreter, `import offbook` and `offbook --help`"

PROGRAM = Path(sys.executable).with_name("offbook")
BARE, IMPORT, HELP = "the interpreter alone", "import offbook", "offbook --help"
COMMANDS: dict[str, list[str]] = {
    BARE: [sys.executable, "-c", "pass"],
    IMPORT: [sys.executable, "-c", "import offbook"],
    HELP: [str(PROGRAM), "--help"],
}
MOST_MS = {IMPORT: 100.0, HELP: 200.0}
PACKAGES = [Path(package.__path__[0]) for package in (offbook, click)]

Row = dict[str, Any]


def measure(run: Run) -> Findings:
    load = os.getloadavg()[0]
    warm = _rounds(run, "files cached", run.choose(10, 40), lambda: None)
    cold = _rounds(run, "files not cached", run.choose(4, 12), _forget_files)
    return Findings(
        bars=[
            Bar(f"{name}, p50 of a process of its own", f"< {most:g} ms", f"{_middle(warm, name):.0f} ms", met)
            for name, most in MOST_MS.items()
            for met in [_middle(warm, name) < most]
        ],
        rows=[*_rows("cached", warm), *_rows("not cached", cold)],
        notes=[
            f"All three in turn, in every round, so that noise meets all of them; load {load:.2f} when it began.",
            "Not cached: the files of the package and of click are not in the page cache, those of Python are.",
            "`over bare` is the median of a round's difference to the interpreter alone.",
        ],
    )


def _middle(rounds: list[dict[str, tuple[float, float]]], name: str) -> float:
    return median(taken[name][0] for taken in rounds)


def _rounds(run: Run, state: str, times: int, prepare: Callable[[], None]) -> list[dict[str, tuple[float, float]]]:
    """Wall and CPU milliseconds of each command, by round."""
    for command in COMMANDS.values():
        _timed(command)  # what is compiled once for all is compiled here
    rounds = []
    for number in range(times):
        taken = {}
        for name, command in COMMANDS.items():
            prepare()
            taken[name] = _timed(command)
        rounds.append(taken)
        run.progress(state, number + 1, times)
    return rounds


def _timed(command: list[str]) -> tuple[float, float]:
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return wall * 1_000, (usage.ru_utime + usage.ru_stime) * 1_000


def _forget_files() -> None:
    for package in PACKAGES:
        drop_from_page_cache(package)


def _rows(state: str, rounds: list[dict[str, tuple[float, float]]]) -> list[Row]:
    return [
        {
            "what": name,
            "files": state,
            "wall p50 ms": _middle(rounds, name),
            "wall best ms": min(taken[name][0] for taken in rounds),
            "CPU p50 ms": median(taken[name][1] for taken in rounds),
            "over bare ms": median(taken[name][0] - taken[BARE][0] for taken in rounds),
            "times bare": median(taken[name][0] / taken[BARE][0] for taken in rounds),
        }
        for name in COMMANDS
    ]
