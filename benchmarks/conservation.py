"""Is every message in every context, once, whatever was said and whatever happened?"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path

import uvloop

from benchmarks.provider import working_folder
from benchmarks.results import Bar, Cell, Findings
from benchmarks.run import Run
from benchmarks.trials.conservation import BATCH, in_process, killed, killed_seeds
from benchmarks.trials.lives import SIZES, Tally

TITLE = (
    "Random histories: every context is an exact cover, valid for a model, and every summary expands to its messages"
)

KILLED_AT_ONCE = 10
KILLS = 6
FAULTS_SHOWN = 20


def measure(run: Run) -> Findings:
    histories = run.choose(200, 10_000)
    killed_count = run.choose(KILLED_AT_ONCE, 50)
    tally = tried(
        histories,
        killed_count,
        folder=run.folder,
        progress=lambda done: run.progress("histories", done, histories),
    )
    for fault in tally.faults[:FAULTS_SHOWN]:
        run.console.print(f"  {fault}", style="red", markup=False, highlight=False)
    return _findings(histories, killed_count, tally)


def tried(
    histories: int, killed_count: int, *, folder: Path, progress: Callable[[int], None] = lambda done: None
) -> Tally:
    """Batches in as many processes as there are cores; then, one after the other, those that are killed."""
    tally = Tally()
    seeds = [range(first, min(first + BATCH, histories)) for first in range(0, histories, BATCH)]
    # Anew, not forked: this process may have threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        works: dict[Future[Tally], int] = {pool.submit(batch, folder, each): len(each) for each in seeds}
        done = 0
        for work in as_completed(works):
            tally.add(work.result())
            done += works[work]
            progress(done)
    doomed = killed_seeds(killed_count)
    for first in range(0, killed_count, KILLED_AT_ONCE):
        some = doomed[first : first + KILLED_AT_ONCE]
        with working_folder(folder) as home:
            tally.add(uvloop.run(killed(home / "home", some, KILLS)))
    return tally


def batch(folder: Path, seeds: Sequence[int]) -> Tally:
    with working_folder(folder) as home:
        return uvloop.run(in_process(home / "home", seeds))


def _findings(histories: int, killed_count: int, tally: Tally) -> Findings:
    levels = [tally.counts[f"summaries of level {level}"] for level in (1, 2, 3)]
    hit = tally.counts["histories hit by a kill"]
    looked_at, expected = tally.counts["histories"], histories + killed_count
    rows: list[dict[str, Cell]] = [{"figure": what, "count": count} for what, count in sorted(tally.counts.items())]
    return Findings(
        bars=[
            Bar(
                f"messages lost, doubled, altered or out of order in {histories:,} histories",
                "0",
                f"{len(tally.faults)}: {tally.faults[0][:200]}" if tally.faults else "0",
                not tally.faults,
            ),
            Bar("histories looked at to the end", f"{expected:,}", f"{looked_at:,}", looked_at == expected),
            Bar("summaries of levels 1, 2 and 3", "some of each", ", ".join(f"{one:,}" for one in levels), all(levels)),
            Bar(
                "of these, histories in the middle of which a daemon was killed",
                f"{killed_count}",
                f"{hit}, by {tally.counts['kills while something was said']} kills",
                hit == killed_count,
            ),
        ],
        rows=rows,
        notes=[
            "A history is up to four stretches of talk, some of them by several tasks at once, with contexts asked for "
            "meanwhile; between them swaps, ends, starts and messages sent again. Tool calls and results in six "
            "dialects, a third of them lost, doubled, late or wrong; texts of none to 90,000 characters, in many "
            "scripts; images; reasoning; noise. A tenth of the histories has no ids of messages.",
            f"Chunks of 20 to 240 tokens, 1 to 4 levels, a boundary of 0 to 120 tokens. {BATCH} histories share a "
            "memory, which is opened again at the end and looked at again at once.",
            f"Contexts of {', '.join(f'{size:,}' for size in SIZES)} characters and one of a random size: parts cover "
            "the log exactly, the text is as long as it says and as it may be, a model takes the messages, those said "
            "to be verbatim are as they were sent, all in order. Swaps: asked again the same; replays: what was handed "
            "over and what came since. Summaries: every one expands to exactly its messages, page by page.",
            "`python -m benchmarks.trials.conservation SEED` repeats one; tasks and kills meet at other moments then.",
        ],
    )
