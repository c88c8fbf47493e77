"""Which files of the package a call visits, in every thread that works for it.

A profile function is seen by threads that start after it was set: so `FilesVisited` is entered before the memory is
opened, and its threads with it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import offbook

PACKAGE = f"{Path(offbook.__file__).parent}/"


class FilesVisited:
    def __init__(self) -> None:
        self._seen: set[str] | None = None

    def __enter__(self) -> FilesVisited:
        threading.setprofile(self._look)
        sys.setprofile(self._look)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    @contextmanager
    def during(self) -> Iterator[set[str]]:
        """The files whose functions were called meanwhile, by their names in the package. What a module does when it
        is imported is no visit."""
        self._seen = seen = set[str]()
        try:
            yield seen
        finally:
            self._seen = None

    def _look(self, frame: FrameType, event: str, _argument: Any) -> None:
        if self._seen is None or event != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(PACKAGE) and code.co_name != "<module>":
            self._seen.add(code.co_filename[len(PACKAGE) :])
