"""Is what was acknowledged still there after `kill -9`?"""

from __future__ import annotations

import asyncio

from benchmarks.results import Bar, Findings
from benchmarks.run import Run
from benchmarks.trials.kills import KillReport, KillTrial

TITLE = "`kill -9` at random moments under load; everything acknowledged is there once, in order, and verifies"

WRITERS = 8


def measure(run: Run) -> Findings:
    kills = run.choose(5, 50)
    trial = KillTrial(run.folder / "durability", kills=kills, writers=WRITERS, seed=20)
    return _findings(asyncio.run(trial.run(lambda done: run.progress("kills", done, kills))))


def _findings(report: KillReport) -> Findings:
    reckoning = report.reckoning
    faults = reckoning.faults
    return Findings(
        bars=[
            Bar(
                "acknowledged messages lost, doubled, out of order or altered; faults of the store",
                "0",
                f"{len(faults)}: {faults[0]}" if faults else "0",
                not faults,
            ),
            Bar(
                "kills that hit a large message, a batch",
                "some of each",
                f"{report.hit.get('large', 0)}, {report.hit.get('batch', 0)}",
                bool(report.hit.get("large") and report.hit.get("batch")),
            ),
        ],
        rows=[
            {"figure": "kills under load", "count": report.kills},
            {"figure": "kills while it was starting", "count": report.kills_while_starting},
            {"figure": "messages acknowledged", "count": reckoning.acknowledged},
            {"figure": "messages in the log", "count": reckoning.messages},
            {"figure": "answers lost", "count": report.lost_answers},
            {"figure": "of these, requests that were stored all the same", "count": report.retries_of_stored},
            {"figure": "kills with a single small message under way", "count": report.hit.get("single", 0)},
            {"figure": "kills with a batch under way", "count": report.hit.get("batch", 0)},
            {"figure": "kills with a large message under way", "count": report.hit.get("large", 0)},
            {"figure": "kills with a batch of large ones under way", "count": report.hit.get("large batch", 0)},
            {"figure": "unfinished files of large parts left behind", "count": report.unfinished_files},
        ],
        notes=[
            f"{WRITERS} writers in 4 sessions of 2 agents, each sending again with the same ids what was not "
            "acknowledged. Checked: ids, contiguous sequence numbers, those in the answers, order per writer, content "
            "of every message, capture counts, `verify`, integrity_check.",
            "A killed process loses nothing the kernel has; that a power cut loses nothing rests on the sync at every "
            "commit.",
        ],
    )
