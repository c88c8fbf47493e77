"""Looking through a copy of the memory for what was forgotten: a backup, or what was left or moved aside."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from offbook.backup.archive import BLOBS
from offbook.backup.erasing import unpacked
from offbook.erasures import Residue
from offbook.errors import OffbookError
from offbook.lifecycle.erasure import texts_of
from offbook.store.blobs import BlobFiles
from offbook.store.sqlite import SqliteStore
from offbook.worker.forgetting.elsewhere import Says
from offbook.worker.forgetting.meant import Said, pages_of


class Sought(NamedTuple):
    says: Says
    """Whether a text says any of it."""
    hashes: frozenset[bytes]
    """Of the rows, which are the same in every copy."""


async def found_in_backup(archive: Path, agent_id: str, sought: Sought) -> list[Residue]:
    where = f"the backup {archive}"
    try:
        async with unpacked(await asyncio.to_thread(archive.resolve)) as copy:
            # It is ours alone for now, so one of an older schema can be brought up to date.
            return await _found_in(SqliteStore(copy.database), copy.blobs, agent_id, sought, where)
    except (OffbookError, OSError) as error:
        return [not_looked_through(where, error)]


async def found_in_store(database: Path, agent_id: str, sought: Sought) -> list[Residue]:
    """One that nobody uses; it stays as it is."""
    try:
        store = SqliteStore(database, read_only=True)
        return await _found_in(store, database.parent / BLOBS, agent_id, sought, str(database))
    except (OffbookError, OSError) as error:
        return [not_looked_through(str(database), error)]


def not_looked_through(where: str, why: object) -> Residue:
    return Residue(where=where, what=f"not looked through: {why}")


async def _found_in(store: SqliteStore, blobs: Path, agent_id: str, sought: Sought, where: str) -> list[Residue]:
    found: list[str] = []
    try:
        async for page in pages_of(store, BlobFiles(blobs), agent_id):
            found += await asyncio.to_thread(_saying, page, sought)
        async for kept in store.kept_texts(agent_id):
            if await asyncio.to_thread(sought.says, kept.text):
                found.append(kept.name)
    finally:
        await store.close()
    return [Residue(where=where, what=f"the text of {name}") for name in found]


def _saying(page: Sequence[Said], sought: Sought) -> list[str]:
    return [
        f"message {placed.logged.seq} of {placed.session_id}"
        for placed, message in page
        if placed.logged.hash in sought.hashes or any(sought.says(text) for text in texts_of(message))
    ]
