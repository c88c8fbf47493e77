"""`python -m benchmarks`: runs them all, or those asked for, and says which bars were met."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog
from rich.console import Console

from benchmarks import (
    acknowledge,
    backup,
    cache_economy,
    concurrent,
    conservation,
    context,
    disk_full,
    durability,
    encrypted,
    facts_kept,
    forgetting,
    hot_swap,
    indexing,
    memory,
    portability,
    prepare_turn,
    prompt_prefix,
    proxy,
    quality,
    recall,
    record,
    second_reader,
    start,
    startup,
    token_estimate,
    web,
)
from benchmarks.machine import file_system_of, machine
from benchmarks.provider import working_folder
from benchmarks.results import Findings, Result, keep, kept, show, write_page
from benchmarks.run import Run, Skipped

DATA = Path(__file__).parents[2] / "shared" / "data"

BENCHMARKS: dict[str, tuple[str, Callable[[Run], Findings]]] = {
    module.__name__.rpartition(".")[2]: (module.TITLE, module.measure)
    for module in (
        acknowledge,
        concurrent,
        record,
        durability,
        disk_full,
        start,
        startup,
        backup,
        encrypted,
        quality,
        second_reader,
        recall,
        prepare_turn,
        indexing,
        facts_kept,
        memory,
        context,
        hot_swap,
        conservation,
        prompt_prefix,
        cache_economy,
        token_estimate,
        forgetting,
        portability,
        proxy,
        web,
    )
}


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 160)
    # Where the product runs in this process, what it logs would stand between the figures.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    names = given.only or list(BENCHMARKS)
    if file_system_of(given.folder) == "tmpfs":
        console.print("[red]the working folder is in memory: nothing durable can be measured there (--folder)[/]")
    results = []
    with working_folder(given.folder) as folder:
        run = Run(folder=folder, is_quick=given.quick, console=console, data=given.data, cache=given.cache)
        for name in names:
            try:
                results.append(_result(run, name))
            except Skipped as why:
                console.print(f"  [yellow]skipped: {why}[/]", highlight=False)
                continue
            show(console, results[-1])
            if not given.quick:
                keep(results[-1])
                write_page(kept(list(BENCHMARKS)))
    if given.json:
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")
    return int(any(result.is_missed for result in results))


def _result(run: Run, name: str) -> Result:
    title, measure = BENCHMARKS[name]
    run.console.print(f"\n[bold]{name}[/]  {title}", highlight=False)
    where = machine(run.folder)
    started = time.monotonic()
    findings = measure(run)
    return Result(
        name=name,
        title=title,
        is_quick=run.is_quick,
        took_seconds=round(time.monotonic() - started, 1),
        machine=where,
        findings=findings,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer samples; the kept results stay as they are")
    parser.add_argument("--only", action="append", choices=list(BENCHMARKS), metavar="NAME", help="repeatable")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found to FILE as well")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="work in here; the disk is what is measured"
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=DATA,
        metavar="DIR",
        help="the development data, for quality (default: %(default)s)",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "offbook-benchmarks",
        metavar="DIR",
        help="keep vectors and large stores here between runs (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
