"""Fixed-size records in a file that only grows, read through a memory map.

What counts is `count`, which the index's checkpoint keeps: whatever a crash left behind it is written over. A
reader takes `view()` once and is not disturbed by what is appended meanwhile.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offbook.model.private_files import OPEN_OURS

SMALLEST_CAPACITY = 64
GROWTH = 1.5
"""Each time the file is full."""


class Records:
    def __init__(self, path: Path, dtype: np.dtype[Any], count: int) -> None:
        """Opens the file with its first `count` records; ValueError where it holds fewer."""
        self.dtype = dtype
        self._descriptor = os.open(path, OPEN_OURS, 0o600)
        self._capacity = os.fstat(self._descriptor).st_size // dtype.itemsize
        if self._capacity < count:
            os.close(self._descriptor)
            raise ValueError(f"{path} holds {self._capacity} records, not {count}")
        self.count = count
        self._map: mmap.mmap | None = None
        self._all: NDArray[Any] = np.empty(0, dtype)
        try:
            self._make_room(max(count, SMALLEST_CAPACITY))
        except (OSError, ValueError):
            self.close()
            raise

    def view(self) -> NDArray[Any]:
        """The records so far. Later ones do not show in it; a record changed in place does."""
        return self._all[: self.count]

    def check_open(self) -> None:
        if self._descriptor < 0:
            raise ValueError("the file was closed")

    def append(self, block: NDArray[Any]) -> None:
        self.check_open()
        end = self.count + len(block)
        if end > self._capacity:
            self._make_room(max(end, int(self._capacity * GROWTH)))
        self._all[self.count : end] = block
        self.count = end

    def sync(self) -> None:
        """Until this returns a crash of the machine may lose what was appended; a crash of the process does not."""
        if self._map is not None:
            self._map.flush()

    def close(self) -> None:
        """Nothing can be appended any more. Whoever still reads may go on: the map goes with its last reader."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _make_room(self, capacity: int) -> None:
        if capacity > self._capacity:
            _extend(self._descriptor, capacity * self.dtype.itemsize)
            self._capacity = capacity
        self._map = mmap.mmap(self._descriptor, self._capacity * self.dtype.itemsize)
        self._all = np.frombuffer(self._map, self.dtype)


def _extend(descriptor: int, size: int) -> None:
    """With its room on the disk: a write through a map into room that is not there kills the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:  # macOS
        os.ftruncate(descriptor, size)


class Growing:
    """Numbers in memory that only become more. As with `Records`, a reader's view stays as long as it was."""

    def __init__(self, first: NDArray[Any]) -> None:
        self.count = len(first)
        self._all = np.array(first)

    def view(self) -> NDArray[Any]:
        return self._all[: self.count]

    def append(self, block: NDArray[Any]) -> None:
        end = self.count + len(block)
        if end > len(self._all):
            grown = np.empty(max(end, int(len(self._all) * GROWTH), SMALLEST_CAPACITY), self._all.dtype)
            grown[: self.count] = self.view()
            self._all = grown
        self._all[self.count : end] = block
        self.count = end
