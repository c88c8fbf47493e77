"""Large strings of messages as files, `blobs/<agent>/<ab>/<sha256>`: synced before the log refers to them.

In an encrypted data folder they are sealed with the agent's key, and named by a keyed digest. That key goes with the
last of them.
"""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from hashlib import sha256
from hmac import HMAC
from pathlib import Path

from offbook.model.errors import KeyNeeded, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from offbook.model.keys import Keys, keys_of, seal, unseal
from offbook.model.private_files import sync_folder

Hold = tuple[str, str]
"""An agent and a digest."""

# ── Which large parts somebody is about to refer to, and which are about to go ──


class BlobHolds:
    """To hold one means that it does not go, whoever looked before for those that refer to it."""

    def __init__(self) -> None:
        self._held: Counter[Hold] = Counter()
        self._going: set[Hold] = set()
        self._noting = threading.Lock()
        """Of these two; never held over anything that takes time."""

    @contextmanager
    def holding(self, parts: Collection[Hold]) -> Iterator[None]:
        with self._noting:
            self._held.update(parts)
            self._going.difference_update(parts)
        try:
            yield
        finally:
            with self._noting:
                self._held.subtract(parts)
                for part in parts:
                    if not self._held[part]:
                        del self._held[part]

    @contextmanager
    def going(self, parts: Collection[Hold]) -> Iterator[None]:
        """From before it is asked who refers to them, until they are gone."""
        with self._noting:
            self._going.update(part for part in parts if part not in self._held)
        try:
            yield
        finally:
            with self._noting:
                self._going.difference_update(parts)

    def may_go(self, part: Hold) -> bool:
        """Whether nobody has held it since `going` began."""
        with self._noting:
            return part in self._going

    def is_free(self, agent_id: str) -> bool:
        """Whether nobody holds anything of the agent's."""
        with self._noting:
            return all(held != agent_id for held, _ in self._held)


class BlobFiles:
    """See `protocols.Blobs`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._unfinished = root / "unfinished"  # in one place, so that a start need not look everywhere
        self._durable: set[Path] = set()
        """Folders whose own entry is known to be on the disk."""
        self._holds = BlobHolds()
        self._removing = threading.Lock()
        """Held over one removal, and waited for in threads only."""

    async def put(self, agent_id: str, data: bytes) -> str:
        return await asyncio.to_thread(self._put, agent_id, data)

    async def get(self, agent_id: str, digest: str) -> bytes:
        return await asyncio.to_thread(self._get, agent_id, digest)

    def holding(self, agent_id: str, digests: Collection[str]) -> AbstractContextManager[None]:
        return self._holds.holding([(agent_id, digest) for digest in digests])

    async def drop(
        self, agent_id: str, digests: Sequence[str], in_use: Callable[[], Awaitable[Collection[str]]]
    ) -> list[str]:
        with self._holds.going([(agent_id, digest) for digest in digests]):
            stay = set(await in_use())
            free = [digest for digest in dict.fromkeys(digests) if digest not in stay]
            left = [digest for digest in free if not await asyncio.to_thread(self._drop, agent_id, digest)]
        if free and not left:
            await asyncio.to_thread(self._drop_needless_key, agent_id)
        return left

    def _drop(self, agent_id: str, digest: str) -> bool:
        path = self.path_of(agent_id, digest)
        with self._removing:
            if not self._holds.may_go((agent_id, digest)):
                return False
            path.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            sync_folder(path.parent)
        return True

    def _drop_needless_key(self, agent_id: str) -> None:
        """The last large part of the agent is gone: with its key, so is what a disk or an older copy still has."""
        keys = self.keys
        if keys is None:
            return
        with self._removing:
            if self._holds.is_free(agent_id) and not _has_files(self.root / keys.room(agent_id)):
                keys.destroy_agent_key(agent_id)

    def sweep(self) -> None:
        """Remove what a kill left unfinished; nothing refers to it. For the one process that owns the folder, as it
        opens it."""
        _ = self.keys
        with suppress(FileNotFoundError):
            for path in self._unfinished.iterdir():
                path.unlink(missing_ok=True)

    @cached_property
    def keys(self) -> Keys | None:
        """None where the folder is not encrypted. Those of the beginning: whoever takes `keys.json` away does not
        make it a plain one."""
        return keys_of(self.root.parent)

    def path_of(self, agent_id: str, digest: str) -> Path:
        keys = self.keys
        if keys is not None:
            return self._sealed_path(keys, agent_id, keys.agent_key(agent_id) or b"", digest)
        # The agent's name is hashed: any UTF-8 is a legal name, few are legal file names everywhere.
        room = sha256(agent_id.encode()).hexdigest()[:32]
        return self.root / room / digest[:2] / digest

    def _sealed_path(self, keys: Keys, agent_id: str, key: bytes, digest: str) -> Path:
        """A digest of what is said would tell whoever has the same text that it was said."""
        name = HMAC(key, digest.encode(), sha256).hexdigest()
        return self.root / keys.room(agent_id) / name[:2] / name

    def _put(self, agent_id: str, data: bytes) -> str:
        digest = sha256(data).hexdigest()
        # By itself, too: a thread goes on where whoever asked was cancelled, and would put back what is dropped.
        with self.holding(agent_id, [digest]):
            with self._removing:  # whoever found that it may go has removed it by now, or its key
                keys = self.keys
                key = keys.make_agent_key(agent_id) if keys is not None else b""
            if keys is None:
                self._write(self.path_of(agent_id, digest), data)
            else:
                self._put_sealed(self._sealed_path(keys, agent_id, key, digest), key, data)
        return digest

    def _put_sealed(self, path: Path, key: bytes, data: bytes) -> None:
        if _opens(path, key, data):
            sync_folder(path.parent)
        else:
            self._write(path, seal(key, data, path.name.encode()))

    def _write(self, path: Path, data: bytes) -> None:
        unfinished = self._unfinished / f"{path.name}.{secrets.token_hex(4)}.tmp"
        try:
            self._make_folder(path.parent)
            self._unfinished.mkdir(mode=0o700, exist_ok=True)
            if not _holds(path, data):
                _write_synced(unfinished, data)
                unfinished.replace(path)
            # Also where the file was there: whoever made it may not have come this far yet.
            sync_folder(path.parent)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StoreFull("the disk is full: free some space, then send it again; nothing was stored") from error
            if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise StoreReadOnly(f"{path.parent} cannot be written: check its permissions") from error
            raise StoreError(f"a large part of the message could not be kept: {error}") from error

    def _make_folder(self, folder: Path) -> None:
        above = [level for level in self.root.parents if not level.exists()]
        for level in (*reversed(above), self.root, folder.parent, folder):
            is_new = not level.is_dir()
            if is_new:
                try:
                    level.mkdir(mode=0o700)
                except FileExistsError:
                    if not level.is_dir():
                        raise
            if is_new or level not in self._durable:
                sync_folder(level.parent)
                self._durable.add(level)

    def _get(self, agent_id: str, digest: str) -> bytes:
        path = self.path_of(agent_id, digest)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise StoreCorrupt(f"{path} is missing: restore it from a backup (`offbook restore`)") from None
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):  # it may be whole
                raise StoreError(f"{path} cannot be read: {error}") from error
            raise StoreCorrupt(f"{path} cannot be read ({error}): restore it from a backup") from error
        keys = self.keys
        if keys is not None:
            damaged = StoreCorrupt(
                f"{path} cannot be opened with its key: restore it from a backup (`offbook restore`)"
            )
            data = unseal(keys.agent_key(agent_id) or bytes(32), data, path.name.encode(), damaged)
        if sha256(data).hexdigest() != digest:
            raise StoreCorrupt(f"{path} does not match its name: restore it from a backup (`offbook restore`)")
        return data


def _opens(path: Path, key: bytes, data: bytes) -> bool:
    """As `_holds`, of what is sealed: twice the same text is not twice the same bytes."""
    try:
        with path.open("rb") as file:
            is_whole = unseal(key, file.read(), path.name.encode()) == data
            os.fsync(file.fileno())
    except (OSError, KeyNeeded):
        return False
    return is_whole


def _has_files(folder: Path) -> bool:
    return any(names for _, _, names in os.walk(folder))


def _holds(path: Path, data: bytes) -> bool:
    """Whether the file is there and whole; if so, it is on the disk."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size != len(data) or file.read() != data:
                return False
            os.fsync(file.fileno())
    except OSError:
        # Whatever is wrong with it, it is written anew, and that says what is wrong with the folder.
        return False
    return True


def _write_synced(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
