"""Large strings of messages as files, `blobs/<agent>/<ab>/<sha256>`: synced before the log refers to them."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from offbook.model.errors import StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from offbook.model.private_files import sync_folder

# ── Which large parts somebody is about to refer to, and which are about to go ──


class BlobHolds:
    """To hold one means that it does not go, whoever looked before for those that refer to it."""

    def __init__(self) -> None:
        self._held: Counter[Path] = Counter()
        self._going: set[Path] = set()
        self._noting = threading.Lock()
        """Of these two; never held over anything that takes time."""

    @contextmanager
    def holding(self, paths: Collection[Path]) -> Iterator[None]:
        with self._noting:
            self._held.update(paths)
            self._going.difference_update(paths)
        try:
            yield
        finally:
            with self._noting:
                self._held.subtract(paths)
                for path in paths:
                    if not self._held[path]:
                        del self._held[path]

    @contextmanager
    def going(self, paths: Collection[Path]) -> Iterator[None]:
        """From before it is asked who refers to them, until they are gone."""
        with self._noting:
            self._going.update(path for path in paths if path not in self._held)
        try:
            yield
        finally:
            with self._noting:
                self._going.difference_update(paths)

    def may_go(self, path: Path) -> bool:
        """Whether nobody has held it since `going` began."""
        with self._noting:
            return path in self._going


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
        return self._holds.holding([self.path_of(agent_id, digest) for digest in digests])

    async def drop(
        self, agent_id: str, digests: Sequence[str], in_use: Callable[[], Awaitable[Collection[str]]]
    ) -> list[str]:
        paths = {digest: self.path_of(agent_id, digest) for digest in digests}
        with self._holds.going(paths.values()):
            stay = set(await in_use())
            free = [digest for digest in paths if digest not in stay]
            return [digest for digest in free if not await asyncio.to_thread(self._drop, paths[digest])]

    def _drop(self, path: Path) -> bool:
        with self._removing:
            if not self._holds.may_go(path):
                return False
            path.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            sync_folder(path.parent)
        return True

    def sweep(self) -> None:
        """Remove what a kill left unfinished; nothing refers to it. For the one process that owns the folder."""
        with suppress(FileNotFoundError):
            for path in self._unfinished.iterdir():
                path.unlink(missing_ok=True)

    def path_of(self, agent_id: str, digest: str) -> Path:
        # The agent's name is hashed: any UTF-8 is a legal name, few are legal file names everywhere.
        room = sha256(agent_id.encode()).hexdigest()[:32]
        return self.root / room / digest[:2] / digest

    def _put(self, agent_id: str, data: bytes) -> str:
        digest = sha256(data).hexdigest()
        # By itself, too: a thread goes on where whoever asked was cancelled, and would put back what is dropped.
        with self.holding(agent_id, [digest]):
            with self._removing:
                pass  # whoever found that it may go has removed it by now
            self._write(self.path_of(agent_id, digest), data)
        return digest

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
        if sha256(data).hexdigest() != digest:
            raise StoreCorrupt(f"{path} does not match its name: restore it from a backup (`offbook restore`)")
        return data


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
