"""What the agent reads: sets of short conversations, and what the first turn of a new session tells of them.

    python -m benchmarks.memory --show 3

`items` loads a set, `turns` feeds it through the verbs and asks, `reading` and `scoring` judge what it tells, `report`
shows it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import uvloop

from benchmarks.memory.items import NAMES, SETS, Item, load
from benchmarks.memory.report import bars, by_language, figures
from benchmarks.memory.scoring import SCORERS, Check
from benchmarks.memory.turns import Seen, feed, seen, settle, tell
from benchmarks.quality.vectors import remembered_vectors
from benchmarks.results import Cell, Findings, Section
from benchmarks.run import Run
from offbook.api.embedded import open_memory
from offbook.model.home import home_folder
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding

TITLE = "What the first turn of a new session tells: corrections, near misses, what comes to mind, what is learnt"
QUICK_ITEMS = 10


def measure(run: Run) -> Findings:
    sets = {name: load(SETS, name)[: run.choose(QUICK_ITEMS, 1_000)] for name in NAMES}
    with remembered_vectors(run.cache, installed_models()):
        checks, _ = measured(sets, run.folder / "memory", has_model=True)
    found = figures(checks)
    rows: list[dict[str, Cell]] = [
        {"measure": one.measure.name, "counted": one.counted, "of": one.of, "bar": one.bar} for one in found
    ]
    return Findings(
        bars=bars(found),
        rows=rows,
        sections=[Section("By language", by_language(checks))],
        notes=[
            "Own sets, for development, in `benchmarks/memory/sets`: "
            f"{', '.join(f'{len(items)} of {name}' for name, items in sets.items())}. An agent for each item, its "
            "sessions fed and ended, the background awaited, `maintain` run; then a new session's first turn.",
            "The new value must stand in the turn; the old one may stand only where the memory's own words tell it as "
            "what held before. Silent: nothing recalled, not even the newest there is.",
        ],
    )


def measured(sets: Mapping[str, Sequence[Item]], home: Path, *, has_model: bool) -> tuple[list[Check], dict[str, Seen]]:
    """All that was looked at, and what each item's turn told."""
    return uvloop.run(_measured(sets, home, has_model=has_model))


def installed_models() -> Path | None:
    """Where the embedding model is installed already."""
    folder = home_folder(os.environ) / "models"
    return folder if any(folder.glob("*/*.onnx")) else None


def settings(*, has_model: bool) -> Settings:
    return Settings() if has_model else msgspec.structs.replace(Settings(), embedding=Embedding(model="none"))


async def _measured(
    sets: Mapping[str, Sequence[Item]], home: Path, *, has_model: bool
) -> tuple[list[Check], dict[str, Seen]]:
    items = [item for some in sets.values() for item in some]
    checks: list[Check] = []
    turns: dict[str, Seen] = {}
    async with open_memory(home, settings=settings(has_model=has_model), environ={}) as memory:
        started = time.monotonic()
        await feed(memory, items)
        tell(f"{len(items)} items fed in {time.monotonic() - started:.0f} s")
        await settle(memory, [item.id for item in items], has_model=has_model)
        tell(f"read by the background after {time.monotonic() - started:.0f} s")
        for name, some in sets.items():
            for item in some:
                turns[item.id] = await seen(memory, item, has_model=has_model)
                checks += SCORERS[name](item, turns[item.id])
            tell(f"{name} asked after {time.monotonic() - started:.0f} s")
    return checks, turns
