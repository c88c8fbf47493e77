"""The files under a folder. What is not looked into is told: a folder that is passed over in silence looks imported."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from offbook.portability.report import ImportReport

LINKS = ("links", "what they lead to lies elsewhere: give that itself")
Why = tuple[str, str]
"""What it is and why it is left out, as a report tells it."""


def files_under(
    folder: Path, report: ImportReport, left_out: Callable[[str], Why | None] = lambda name: None
) -> Iterator[Path]:
    """In the order of their names, those of a folder before those of the folders in it. `left_out` says by its name
    why a folder is not looked into; one that is a link never is."""

    def unreadable(error: OSError) -> None:
        report.unreadable += 1
        report.problem(str(error.filename), f"cannot be read: {error.strerror}")

    for here, folders, names in os.walk(folder, onerror=unreadable):
        for name in sorted(folders):
            why = LINKS if Path(here, name).is_symlink() else left_out(name)
            if why is not None:
                report.leave(*why)
                folders.remove(name)
        folders.sort()
        yield from (Path(here, name) for name in sorted(names))
