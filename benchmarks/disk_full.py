"""What happens when the disk is full?"""

from __future__ import annotations

import asyncio

from benchmarks.results import Bar, Findings
from benchmarks.run import Run
from benchmarks.trials.full_disk import DISK_BYTES, FullDiskReport, FullDiskTrial
from benchmarks.trials.small_disk import MountRefused, small_disk

TITLE = "The disk fills while recording; room comes back without a restart; then a kill on the full disk"

ONLY_PROBLEM = "urn:offbook:problem:store-full 507 retryable=True"


def measure(run: Run) -> Findings:
    try:
        with small_disk(run.folder / "full", DISK_BYTES) as disk:
            return _findings(asyncio.run(FullDiskTrial(disk, seed=5).run()))
    except MountRefused as refused:
        return Findings(
            bars=[Bar("nothing lost on a full disk", "0 faults", "not run", None)], rows=[], notes=[str(refused)]
        )


def _findings(report: FullDiskReport) -> Findings:
    faults = [*report.faults, *report.reckoning.faults]
    others = {problem: times for problem, times in report.problems.items() if problem != ONLY_PROBLEM}
    return Findings(
        bars=[
            Bar(
                "acknowledged messages lost or doubled, faults of the store or of the daemon",
                "0",
                f"{len(faults)}: {faults[0]}" if faults else "0",
                not faults,
            ),
            Bar(
                "every refusal is a retryable 507",
                "all",
                f"{report.refusals:,} of {report.refusals:,}" if not others else str(others),
                not others and report.refusals > 0,
            ),
        ],
        rows=[
            {"figure": "refusals", "value": report.refusals},
            {"figure": "messages acknowledged, before, between and after", "value": report.reckoning.acknowledged},
            {"figure": "messages in the log", "value": report.reckoning.messages},
            *({"figure": f"while full: {read}", "value": times} for read, times in report.reads_while_full.items()),
            {"figure": "seconds until all writers went on, once there was room", "value": report.resumed_seconds},
            {"figure": "starting on the full disk after kill -9", "value": report.start_while_full},
        ],
        notes=["A tmpfs of 40 MB; the same checks as `durability`."],
    )
