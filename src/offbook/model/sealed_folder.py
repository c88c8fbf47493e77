"""A folder as one sealed file, and back."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO, cast

from offbook.model.errors import InvalidInput
from offbook.model.keys import Keys
from offbook.model.private_files import make_folders, sync_folder
from offbook.model.sealed_stream import CHUNK_BYTES, SealedWriter, open_maybe_sealed


def seal_folder(folder: Path, target: Path, keys: Keys, *, compression: int = 6) -> None:
    """The file appears whole or not at all, and is readable by its owner only."""
    unfinished = target.with_name(f".{target.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            sealing = SealedWriter(file, keys)
            with tarfile.open(fileobj=cast("IO[bytes]", sealing), mode="w:gz", compresslevel=compression) as archive:
                archive.add(folder, arcname=".")
            sealing.finish()
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def unseal_folder(path: Path, folder: Path) -> None:
    """Into a folder that is there. InvalidInput where it was altered, KeyNeeded where the key is not there."""
    try:
        with open_maybe_sealed(path) as file, tarfile.open(fileobj=file, mode="r|gz") as archive:
            for member in archive:
                _extract(archive, member, folder, path)
    except (tarfile.TarError, EOFError) as error:
        raise InvalidInput(f"{path} cannot be read ({error}): take another copy") from None


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path, path: Path) -> None:
    """Whoever sealed it knew the secret, and may still mean no good: nothing of it leads out of the folder."""
    name = PurePosixPath(member.name)
    source = archive.extractfile(member) if member.isreg() else None
    if name.is_absolute() or ".." in name.parts or (source is None and not member.isdir()):
        raise InvalidInput(f"{path} holds {member.name!r}, which none of ours does: it was altered")
    make_folders(folder / name if source is None else (folder / name).parent)
    if source is not None:
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as target:
            shutil.copyfileobj(source, target, CHUNK_BYTES)
