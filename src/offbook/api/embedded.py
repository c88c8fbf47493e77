"""The same Memory inside a process, without a daemon.

async with open_memory("~/.offbook") as memory:
    await memory.on_message(memory.scope("chat"), [Message(role="user", content="Hello there!")])
"""

from __future__ import annotations

import os
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from offbook.api.background import Background
from offbook.api.memory import Memory
from offbook.client.outbox_erasing import Outboxes
from offbook.log.blobs import BlobFiles
from offbook.log.sqlite.head import refuse_lost_log
from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import StoreError
from offbook.model.home import Home, Lock, home_folder, home_may_be_shared
from offbook.model.settings import Settings, load
from offbook.projections.lanes import Job
from offbook.transfer.backup.forgetting import Backups


@asynccontextmanager
async def open_memory(
    home: str | Path | None = None,
    *,
    settings: Settings | None = None,
    environ: Mapping[str, str] = os.environ,
) -> AsyncIterator[Memory]:
    """Owns the data folder until the block ends; where a daemon owns it already, use a client instead."""
    folder = Path(home) if home is not None else home_folder(environ)
    place = Home(folder, may_be_shared=home_may_be_shared(environ))
    chosen = settings or load(place.folder, environ=environ).settings
    async with open_parts(place, chosen) as (memory, _):
        yield memory


@asynccontextmanager
async def open_parts(
    home: Home, settings: Settings, *, tasks: Sequence[Job] = ()
) -> AsyncIterator[tuple[Memory, SqliteStore]]:
    """Memory and the store beneath it: lock taken, file opened and migrated; all let go at the end. `tasks` of
    maintenance are those that need more than a memory."""
    home.prepare()
    lock = Lock(home)
    try:
        _refuse_unfinished_restore(home)
        refuse_lost_log(home)
        store = SqliteStore(
            home.database, readers=settings.store.readers, max_queued_writes=settings.store.max_queued_writes
        )
        blobs = BlobFiles(home.blobs)
        blobs.sweep()
        try:
            frame_key = await store.installation_key()
            background = Background(
                store,
                blobs,
                settings,
                indexes=home.indexes,
                models=home.models,
                summaries=home.summaries,
                frame_key=frame_key,
                tasks=tasks,
                folder=home.folder,
            )
            background.forgetting.copies += [
                Outboxes(home, store, default_agent=settings.default_agent),
                Backups(home, settings, store),
            ]
            background.start()
            try:
                memory = Memory(store, blobs, settings, frame_key=frame_key, background=background)
                yield memory, store
            finally:
                await background.close()
        finally:
            await store.close()
    finally:
        lock.release()


def _refuse_unfinished_restore(home: Home) -> None:
    """Half-way through a restore there may be no log at all: one started now would be an empty one."""
    if home.unfinished_restore.exists():
        raise StoreError(
            f"a restore broke off half-way in {home.folder}: finish it with "
            f"`offbook restore --resume --home {shlex.quote(str(home.folder))}`, then start again"
        )
