"""Files written for others: at once or not at all, and the same bytes each time."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


def replace_file(path: Path, pieces: Iterable[bytes]) -> None:
    """Readable by its owner only, as all that is remembered. A kill leaves what was there before."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


class Spool:
    """Records put into another order without holding them: they wait in a file that has no name, their keys here."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 closed by `close`
        self._places: list[tuple[tuple[Any, ...], int, int]] = []
        self._end = 0

    def __len__(self) -> int:
        return len(self._places)

    def add(self, key: tuple[Any, ...], record: bytes) -> None:
        """No two keys are the same."""
        self._file.write(record)
        self._places.append((key, self._end, len(record)))
        self._end += len(record)

    def in_order(self) -> Iterator[bytes]:
        self._places.sort()
        for _, offset, length in self._places:
            self._file.seek(offset)
            yield self._file.read(length)

    def close(self) -> None:
        self._file.close()
