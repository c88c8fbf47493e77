"""What can be read of an encrypted data folder without a key: what of it is ours goes, and the rest is told of."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from offbook.log.sqlite.pages import MAGIC
from offbook.model.home import Home
from offbook.model.keys import KEYS_FOLDER, is_encrypted, shred
from offbook.model.sealed_stream import MAGIC as SEALED
from offbook.projections.summary_files import our_files
from offbook.projections.wiki.ours import our_pages
from offbook.transfer.backup.archive import BLOBS
from offbook.transfer.backup.restoring import ASIDE, UNPACKED

REPLACED = "before-encryption-"
"""The folder that takes what was there before, until it is overwritten."""
DERIVED = ("index", "index.sealed")
"""Made from the log, and by nobody else: not taken over."""
COPIES = ("summaries", "wiki", "wiki-state")
"""For people to read: what they put there is theirs."""
NOT_LOOKED_THROUGH = (BLOBS, KEYS_FOLDER, "models")
MOST_NAMED = 20


class Shredding:
    """How many files were overwritten, and how many only lost this name of theirs."""

    def __init__(self, advance: Callable[[int], None] = lambda steps: None) -> None:
        self.overwritten = self.only_unlinked = 0
        self._advance = advance

    def file(self, path: Path) -> None:
        if shred(path):
            self.overwritten += 1
        else:
            self.only_unlinked += 1
        self._advance(1)

    def folder(self, folder: Path) -> None:
        for path in list(files(folder)):
            self.file(path)
        shutil.rmtree(folder, ignore_errors=True)


def shred_copies(home: Home, shredding: Shredding) -> None:
    """The pages that we wrote and nobody changed. Last what is noted of them, so that a second run knows them, too."""
    for page in (*our_pages(home.wiki, home.wiki_state), *our_files(home.summaries)):
        shredding.file(page)
    shredding.folder(home.wiki_state)
    for folder in (home.wiki, home.summaries):
        _remove_empty(folder)


def still_plain(home: Home) -> list[str]:
    """Files of an encrypted data folder that can be read without a key, and hold what was said."""
    kinds = (f"{ASIDE}*", f"{REPLACED}*", f"{UNPACKED}*")
    aside = [path for kind in kinds for path in sorted(home.folder.glob(kind)) if not is_encrypted(path)]
    copies = [path for name in (*DERIVED, *COPIES) for path in _named(home.folder / name)]
    backups = [path for path in sorted(home.backups.rglob("*.tar.gz")) if path.is_file() and not _begins(path, SEALED)]
    outboxes = [home.outboxes] if any(files(home.outboxes)) else []
    databases = [path for path in _databases(home.folder) if not any(path.is_relative_to(each) for each in aside)]
    return [str(path) for path in (*aside, *copies, *backups, *outboxes, *databases)]


def files(folder: Path) -> Iterator[Path]:
    """Itself where it is one, else all in it."""
    if folder.is_file():
        yield folder
    for root, _, names in os.walk(folder):
        yield from (Path(root, name) for name in names)


def _named(folder: Path) -> list[Path]:
    """One by one where they are few; what an editor or Git keeps in a folder of its own is that folder."""
    found: list[Path] = []
    for path in sorted(files(folder)):
        inner = path.relative_to(folder).parts[:-1]
        hidden = next((level for level, name in enumerate(inner, 1) if name.startswith(".")), None)
        shown = path if hidden is None else folder.joinpath(*inner[:hidden])
        if shown not in found and not _begins(path, SEALED):
            found.append(shown)
        if len(found) > MOST_NAMED:
            return [folder]
    return found


def _databases(folder: Path) -> Iterator[Path]:
    """Copies of the log, whatever they are called."""
    for root, folders, names in os.walk(folder):
        if root == str(folder):
            folders[:] = [name for name in folders if name not in NOT_LOOKED_THROUGH]
        for path in (Path(root, name) for name in sorted(names)):
            if path.is_file() and _begins(path, MAGIC):
                yield path


def _begins(path: Path, with_: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(with_)) == with_
    except OSError:
        return False


def _remove_empty(folder: Path) -> None:
    """With the folders in it; one that somebody keeps something in stays."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for root, _, _ in os.walk(folder, topdown=False):
        try:
            Path(root).rmdir()
        except OSError:
            continue
