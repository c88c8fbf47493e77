"""Fixed-size records in a file that only grows, read through a memory map.

What counts is `count`, which the index's checkpoint keeps: whatever a crash left behind it is written over. A
reader takes `view()` once and is not disturbed by what is appended meanwhile.

Files of an index that are not as they were left are `IndexDamaged`: whoever reads them says so, and the index is made
again from the log.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from offbook.model.errors import StoreError
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


# ── damage ──

DAMAGE = (errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.EEXIST)
"""What the system says where a file is missing, or something else is in its place."""
PANIC = "PanicException"
"""What tantivy raises where it finds its files other than it left them. No module has the class, and it is none of
`Exception`: it would end the worker and take the connection of whoever searches."""

P = ParamSpec("P")
T = TypeVar("T")


class IndexDamaged(StoreError):
    """The files of a search index are damaged; it is made anew from the log."""

    status = 503
    slug = "index-damaged"
    retryable = True


def is_damage(error: BaseException) -> bool:
    """And not for want of descriptors or of the right to read, which leaves the files as good as they were.

    tantivy's errors are ValueErrors, whatever they are about: `Os { code: 24, …`, `(os error 24)`.
    """
    if isinstance(error, OSError):
        return error.errno in DAMAGE
    said = re.search(r"\bOs \{ code: (\d+)|\(os error (\d+)\)", str(error))
    return said is None or int(said[1] or said[2]) in DAMAGE


def damage_told(*errors: type[Exception]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A panic becomes IndexDamaged, and so do those of `errors` that only damaged files explain."""

    def decorated(work: Callable[P, T]) -> Callable[P, T]:
        @wraps(work)
        def told(*given: P.args, **named: P.kwargs) -> T:
            try:
                return work(*given, **named)
            except BaseException as error:
                if type(error).__name__ != PANIC and not (isinstance(error, errors) and is_damage(error)):
                    raise
                raise IndexDamaged(
                    "the files of the search index are damaged, and it is made anew from the log: ask again in a while"
                ) from None

        return told

    return decorated
