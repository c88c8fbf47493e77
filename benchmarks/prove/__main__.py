"""`python -m benchmarks.prove`: runs the campaigns, or those asked for, and keeps what they found."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import structlog

from benchmarks.prove import endurance, every_verb_kills, fault_matrix, fuzzed_files, isolation
from benchmarks.prove.campaign import Tried, carried_out, keep
from benchmarks.provider import working_folder


class Entry(NamedTuple):
    title: str
    run: Callable[[Path, int, float | None], Tried]
    size: int | None
    """Of `make prove`; None where there is only one size."""


CAMPAIGNS = {
    "kills": Entry("kill -9 with every verb under way", every_verb_kills.tried, 1_000),
    "files": Entry("Damaged files of every kind that is read", fuzzed_files.tried, 100_000),
    "faults": Entry("Every kind of fault against every verb", lambda folder, *_: fault_matrix.tried(folder), None),
    "isolation": Entry(
        "Every verb with the ids of another agent, on every surface", lambda folder, *_: isolation.tried(folder), None
    ),
    "endurance": Entry("Minutes of mixed load beside a hostile client", endurance.tried, 120),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prove", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(CAMPAIGNS), metavar="NAME", help="repeatable")
    parser.add_argument(
        "--size",
        type=int,
        help="how large, of those that have a size; also as PROVE_KILLS, PROVE_FILES, PROVE_ENDURANCE (minutes)",
    )
    parser.add_argument(
        "--seconds", type=float, help="no longer than that; what is told is how much there was time for"
    )
    parser.add_argument("--folder", type=Path, help="work in here (default: that of temporary files)")
    given = parser.parse_args(arguments)
    # What the product logs of files that are damaged on purpose would bury what was found.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.ERROR)
    wrong = 0
    for name in given.only or list(CAMPAIGNS):
        title, run, usual = CAMPAIGNS[name]
        size = given.size or int(os.environ.get(f"PROVE_{name.upper()}", "0")) or usual or 0
        command = f"python -m benchmarks.prove --only {name}" + (f" --size {size}" if usual else "")
        with working_folder(given.folder) as folder:
            done = carried_out(
                name, title, command, lambda run=run, folder=folder, size=size: run(folder, size, given.seconds)
            )  # type: ignore[misc]
        keep(done)
        print(f"{name}: {done.tried.size}; {done.tried.figures}; {done.took_seconds:g} s")
        for fault in done.tried.wrong:
            print(f"  {fault}")
        wrong += len(done.tried.wrong)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
