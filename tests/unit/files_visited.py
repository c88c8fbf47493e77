"""Which files of the package a piece of work visits: in every thread, from its beginning to its end."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import offbook

PACKAGE = Path(offbook.__file__).parent


@contextmanager
def files_visited() -> Iterator[set[str]]:
    """The files whose functions were called, by their names in the package. Threads that run already are not seen, so
    those of pools are counted only for what they begin."""
    seen: set[str] = set()

    def look(frame: FrameType, event: str, _argument: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(str(PACKAGE)):
            seen.add(Path(name).relative_to(PACKAGE).as_posix())

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield seen
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
