"""A data folder that is encrypted with a key file, which takes no time to open, and what can be read of it without."""

from __future__ import annotations

import os
from pathlib import Path

from offbook.model import keys
from offbook.model.keys import Keys, key_file_secret, new_keys

WORD = "zanzibarine"
"""Planted: nothing else says it."""


def encrypted(folder: Path) -> Keys:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return new_keys(folder, key_file_secret(folder.parent / f"{folder.name}.key", folder, may_make=True))


def forget_keys() -> None:
    """As in a process that has not opened anything."""
    keys._masters.clear()


def saying(folder: Path, word: str = WORD) -> list[str]:
    """Every file under the folder that holds the word, as it is or as JSON escapes it."""
    return [
        str(Path(root, name).relative_to(folder))
        for root, _, names in os.walk(folder)
        for name in names
        if not Path(root, name).is_socket() and word.encode() in Path(root, name).read_bytes()
    ]
