"""Taking something out of a backup that was made before: unpacked, changed, packed and checked again.

The archive is replaced in one step. Whatever goes wrong before that leaves it as it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec

from offbook.backup.archive import BLOBS, DATABASE, Manifest, check_archive, disk_errors, pack
from offbook.backup.making import described, in_thread, publish
from offbook.backup.unfinished import working_folder
from offbook.errors import StoreCorrupt
from offbook.store.blobs import BlobFiles


class Unpacked(NamedTuple):
    """All of a backup, in a private folder for as long as it is looked at."""

    folder: Path
    manifest: Manifest

    @property
    def database(self) -> Path:
        return self.folder / DATABASE

    @property
    def blobs(self) -> Path:
        return self.folder / BLOBS


@asynccontextmanager
async def unpacked(archive: Path) -> AsyncIterator[Unpacked]:
    """Beside it, checked on the way."""
    with disk_errors(archive), working_folder(archive) as folder:
        into = folder / "unpacked"
        made: list[Manifest] = []
        await in_thread(lambda advance: made.append(check_archive(archive, into=into, advance=advance)))
        yield Unpacked(into, made[0])


async def erase_in_backup(archive: Path, erase: Callable[[Path, Path], Awaitable[int]]) -> bool:
    """`erase` is given the log and the folder of large parts, unpacked, and says how much it erased there.

    False: that was nothing, and the archive is untouched. Else it holds what is left, and says of itself when it was
    first made: the memory it holds is of that moment.
    """
    archive = await asyncio.to_thread(archive.resolve)  # through a link, what it leads to would stay as it was
    async with unpacked(archive) as copy:
        if not await erase(copy.database, copy.blobs):
            return False
        again = copy.folder.with_name(archive.name)
        await in_thread(lambda advance: _leave_no_trace(copy.database))
        left = await described(copy.database, BlobFiles(copy.blobs))
        manifest = msgspec.structs.replace(left, created_at=copy.manifest.created_at)
        await in_thread(partial(pack, again, manifest, copy.database, copy.folder))
        await in_thread(lambda advance: check_archive(again, advance=advance))
        publish(again, archive)
    return True


def _leave_no_trace(database: Path) -> None:
    """What was erased may still lie in free pages, or in the write-ahead log."""
    try:
        connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("VACUUM")
        finally:
            connection.close()
    except apsw.Error as error:
        raise StoreCorrupt(f"the log of the backup cannot be packed again ({error}): take another backup") from error
