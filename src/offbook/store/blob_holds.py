"""Which large parts somebody is about to refer to, and which are about to go."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path


class BlobHolds:
    """To hold one means that it does not go, whoever looked before for those that refer to it."""

    def __init__(self) -> None:
        self._held: Counter[Path] = Counter()
        self._going: set[Path] = set()
        self._noting = threading.Lock()
        """Of these two; never held over anything that takes time."""

    @contextmanager
    def holding(self, paths: Collection[Path]) -> Iterator[None]:
        with self._noting:
            self._held.update(paths)
            self._going.difference_update(paths)
        try:
            yield
        finally:
            with self._noting:
                self._held.subtract(paths)
                for path in paths:
                    if not self._held[path]:
                        del self._held[path]

    @contextmanager
    def going(self, paths: Collection[Path]) -> Iterator[None]:
        """From before it is asked who refers to them, until they are gone."""
        with self._noting:
            self._going.update(path for path in paths if path not in self._held)
        try:
            yield
        finally:
            with self._noting:
                self._going.difference_update(paths)

    def may_go(self, path: Path) -> bool:
        """Whether nobody has held it since `going` began."""
        with self._noting:
            return path in self._going
