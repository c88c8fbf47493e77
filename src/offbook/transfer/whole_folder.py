"""A folder that appears whole or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from offbook.model.errors import InvalidInput
from offbook.model.private_files import sync_folder


def check_is_free(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InvalidInput(f"{folder} is there and no folder: name another one")
    if folder.is_dir() and any(folder.iterdir()):
        raise InvalidInput(f"{folder} is not empty: name a new folder, or empty it")
    if not folder.parent.is_dir():
        raise InvalidInput(f"{folder} cannot be written: there is no folder {folder.parent}; make it first")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder beside it to write to; it gets its name at the end, and goes where something went wrong."""
    check_is_free(folder)
    unfinished = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    unfinished.mkdir(mode=0o700)
    try:
        yield unfinished
        check_is_free(folder)
        if folder.is_dir():
            folder.rmdir()
        unfinished.rename(folder)
        sync_folder(folder.parent)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
