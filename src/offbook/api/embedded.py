"""The same Memory inside a process, without a daemon.

async with open_memory("~/.offbook") as memory:
    await memory.on_message(memory.scope("chat"), [Message(role="user", content="Hello there!")])
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import structlog

from offbook.api.background import Background
from offbook.api.memory import Memory
from offbook.api.memory_index import close_memory_index, open_memory_index
from offbook.api.node_routing import MovingAgents
from offbook.client.outbox_erasing import Outboxes
from offbook.log.blobs import BlobFiles
from offbook.log.opening import open_store
from offbook.log.store import Store
from offbook.model.errors import SettingsError, StoreError
from offbook.model.home import Home, Lock, home_folder, home_may_be_shared
from offbook.model.keys import SECRET_VARIABLES, keys_of, need_cipher
from offbook.model.settings import LoadedSettings, Settings, for_nodes, load, without_plain_copies
from offbook.models.worker import IN_PROCESS, Worker
from offbook.projections.lanes import Job
from offbook.transfer.backup.forgetting import Backups
from offbook.transfer.backup.rotation import backups_of

log = structlog.get_logger("offbook.encryption")


@asynccontextmanager
async def open_memory(
    home: str | Path | None = None,
    *,
    settings: Settings | None = None,
    environ: Mapping[str, str] = os.environ,
    worker: Worker = IN_PROCESS,
) -> AsyncIterator[Memory]:
    """Owns the data folder until the block ends; where a daemon owns it already, use a client instead. `worker`: who
    reads and embeds, threads of this process or a process of its own (`OwnProcess()`)."""
    folder = Path(home) if home is not None else home_folder(environ)
    place = Home(folder, may_be_shared=home_may_be_shared(environ))
    keys_of(place.folder, environ)
    loaded = load(place.folder, environ=environ) if settings is None else LoadedSettings(settings=settings)
    if loaded.settings.store.node_url is not None:
        raise SettingsError("store.nodeUrl: nodes pass requests on to each other, which `offbook serve` does")
    async with open_parts(place, loaded.settings, origins=loaded.origins, worker=worker) as (memory, _):
        yield memory


@asynccontextmanager
async def open_parts(
    home: Home,
    settings: Settings,
    *,
    tasks: Sequence[Job] = (),
    origins: Mapping[str, str] | None = None,
    worker: Worker = IN_PROCESS,
) -> AsyncIterator[tuple[Memory, Store]]:
    """Memory and the store beneath it: lock taken, opened and migrated; all let go at the end. `tasks` of maintenance
    are those that need more than a memory."""
    home.prepare()
    lock = Lock(home)
    try:
        _refuse_unfinished_restore(home)
        is_encrypted = keys_of(home.folder) is not None  # before anything is written
        if is_encrypted:
            need_cipher()
            settings = without_plain_copies(settings)
        elif any(os.environ.get(name) for name in SECRET_VARIABLES):
            what = f"a passphrase or key is given, and {home.folder} is in plain text: `offbook encrypt` encrypts it"
            log.warning("not encrypted", action="encryption.missing", detail=what)
        if settings.store.node_url is not None:
            settings = for_nodes(settings)
            # Another node may have had these agents since, and forgotten something: it is made anew from the log.
            shutil.rmtree(home.indexes, ignore_errors=True)
            home.sealed_index.unlink(missing_ok=True)
        store = open_store(home, settings.store)
        blobs = BlobFiles(home.blobs)
        blobs.sweep()
        try:
            if is_encrypted:
                await asyncio.to_thread(open_memory_index, home)
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
                worker=worker,
            )
            background.backups_of = partial(backups_of, home)
            background.forgetting.copies += [
                Outboxes(home, store, default_agent=settings.default_agent),
                Backups(home, settings, store),
            ]
            moving = None if store.owners is None else MovingAgents(store, store.owners, background)
            background.start()
            try:
                memory = Memory(store, blobs, settings, frame_key=frame_key, background=background, origins=origins)
                yield memory, store
            finally:
                if moving is not None:
                    await moving.close()
                await background.close()
        finally:
            await store.close()
            if is_encrypted:
                await asyncio.to_thread(close_memory_index, home)
    finally:
        lock.release()


def _refuse_unfinished_restore(home: Home) -> None:
    """Half-way through a restore there may be no log at all: one started now would be an empty one."""
    if home.unfinished_restore.exists():
        raise StoreError(
            f"a restore broke off half-way in {home.folder}: finish it with "
            f"`offbook restore --resume --home {shlex.quote(str(home.folder))}`, then start again"
        )
