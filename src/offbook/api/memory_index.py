"""The search index of an encrypted data folder: in memory while a provider runs, sealed on the disk while none does.

It is derived from the log, and compared with it when it is opened: one that is missing, damaged or old is made anew.
"""

from __future__ import annotations

import shutil

import structlog

from offbook.model.errors import InvalidInput, OffbookError
from offbook.model.home import Home
from offbook.model.keys import keys_of
from offbook.model.memory_folder import prepare_memory_folder, remove_memory_folder
from offbook.model.private_files import make_folders, sync_folder
from offbook.model.sealed_folder import seal_folder, unseal_folder
from offbook.model.sealed_stream import sealed_keys

log = structlog.get_logger("offbook.encryption")


def open_memory_index(home: Home) -> None:
    """What was sealed goes from the disk: it would still hold what is forgotten from now on."""
    if trouble := prepare_memory_folder(home.folder):
        log.warning("not in memory", action="encryption.index", detail=trouble)
    if not home.sealed_index.exists():
        return
    if not home.indexes.exists():
        unfinished = home.indexes.with_name("index.unfinished")  # killed here, half of it would be taken for all
        shutil.rmtree(unfinished, ignore_errors=True)
        make_folders(unfinished)
        try:
            _refuse_other(home)
            unseal_folder(home.sealed_index, unfinished)
            unfinished.rename(home.indexes)
        except (OffbookError, OSError) as error:
            log.warning("index made anew", action="encryption.index", detail=str(error))
            remove_memory_folder(home.folder)
            prepare_memory_folder(home.folder)
    home.sealed_index.unlink(missing_ok=True)
    sync_folder(home.folder)


def _refuse_other(home: Home) -> None:
    """Only what this folder's own key sealed: another one may have been put there."""
    keys, sealed = keys_of(home.folder), sealed_keys(home.sealed_index)
    if keys is None or sealed is None or sealed.id != keys.id:
        raise InvalidInput(f"{home.sealed_index} was not sealed with the key of this folder")


def close_memory_index(home: Home) -> None:
    """Where it cannot be sealed, or whoever ends us does not wait for it, it is made anew at the next start."""
    try:
        keys = keys_of(home.folder)
        if keys is not None and home.indexes.is_dir():
            seal_folder(home.indexes, home.sealed_index, keys, compression=1)
    except (OffbookError, OSError) as error:
        log.warning("index not kept", action="encryption.index", detail=f"made anew at the next start: {error}")
    finally:
        remove_memory_folder(home.folder)
