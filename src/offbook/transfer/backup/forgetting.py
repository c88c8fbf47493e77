"""What is forgotten is taken out of the backups, too: of those that are known and can be reached."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec

from offbook.forget.erase import Eraser, Plan
from offbook.forget.selection import Said, pages_of
from offbook.log.blobs import BlobFiles
from offbook.log.erasure import folded, saying, spans_of, texts_of
from offbook.log.sql.head import head_path
from offbook.log.sqlite.connection import TEMPORARY_FILES, connect
from offbook.log.sqlite.store import SqliteStore
from offbook.log.store import Store
from offbook.model.errors import OffbookError, StoreCorrupt, StoreError
from offbook.model.home import Home
from offbook.model.receipt import ForgetReceipt, ForgottenSpan, Reached, Residue, Selection
from offbook.model.settings import Settings
from offbook.model.types import AuditDraft, Scope, now
from offbook.projections.base import Erased, Removal, Says
from offbook.transfer.backup.archive import BLOBS, DATABASE, Manifest, check_archive, disk_errors, pack
from offbook.transfer.backup.making import described, in_thread, left_behind, publish, remove_abandoned, working_folder
from offbook.transfer.backup.restoring import ASIDE, DAMAGED, UNPACKED
from offbook.transfer.backup.rotation import KnownBackup, known_backups

# ── Taking something out of a backup that was made before: unpacked, changed, packed and checked ──


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
        connection = connect(database, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute(TEMPORARY_FILES)
            connection.execute("VACUUM")
        finally:
            connection.close()
    except apsw.Error as error:
        raise StoreCorrupt(f"the log of the backup cannot be packed again ({error}): take another backup") from error


# ── Looking through a copy of the memory for what was forgotten ──


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


ERASER = "offbook"
"""The actor of the event in the backup's own chain."""
PAGE = 500


class Backups:
    name = "backups"
    folder: str | None = None

    def __init__(self, home: Home, settings: Settings, store: Store) -> None:
        self._home = home
        self._settings = settings
        self._store = store
        self._one_at_a_time = asyncio.Lock()
        """Two agents' would each put back what the other took out of the same archive."""

    async def forget(self, erased: Erased) -> Removal:
        """In a dry run, how many hold the agent's memory, with data that a restore moved aside: what of it they hold is
        known when they are opened."""
        if not erased.is_dry_run:
            return Removal({self.name: await self._forget(erased)})
        has_any = erased.spans or (erased.selection is not None and erased.selection.matching)
        held = len(self._readable(erased.agent_id)) + len(self._moved_aside()) if has_any else 0
        return Removal({self.name: held})

    def outside(self, agent_id: str) -> list[str]:
        known = known_backups(self._home)
        away = [one for one in known if agent_id in one.agents and not one.is_there]
        return [
            *(f"the backup {one.path}, which is not there now" for one in away),
            *(f"the backup {one.path}, which cannot be read: {one.trouble}" for one in known if one.trouble),
            *(f"the damaged log in {path}: remove it" for path in sorted(self._home.folder.glob(f"{DAMAGED}*"))),
        ]

    async def _forget(self, erased: Erased) -> int:
        """Known by the hashes of their rows, which stay: the same numbers may be other messages in another history.
        And by what they say, where that is how it was named: some are in a backup only."""
        hashes = await self._hashes(erased.agent_id, erased.spans)
        matching = erased.selection.matching if erased.selection is not None else None
        async with self._one_at_a_time:
            troubles = await asyncio.to_thread(self._remove_leftovers)
            selection = Selection(hashes=hashes, matching=matching)
            return await self._erase_all(erased.agent_id, selection, troubles) if hashes or matching else 0

    async def search(self, erased: Erased) -> list[Residue]:
        """In every backup that is there, and every copy that was moved aside or left: by the words, and by the hashes
        of the rows, for those that have none of their own. Unpacks each."""
        agent_id = erased.agent_id
        sought = Sought(erased.says, await self._hashes(agent_id, erased.spans))
        found: list[Residue] = []
        for database in await asyncio.to_thread(self._left_stores):
            found += await found_in_store(database, agent_id, sought)
        for one in known_backups(self._home):
            if one.trouble is not None:
                found.append(not_looked_through(f"the backup {one.path}", one.trouble))
            elif one.is_there and agent_id in one.agents:
                found += await found_in_backup(Path(one.path), agent_id, sought)
        return found

    # ── which there are ──

    def _readable(self, agent_id: str) -> list[KnownBackup]:
        return [one for one in known_backups(self._home) if agent_id in one.agents and one.is_there]

    def _moved_aside(self) -> list[Path]:
        """What was in place before a restore."""
        return sorted(path.parent for path in self._home.folder.glob(f"{ASIDE}*/{DATABASE}"))

    def _left_stores(self) -> list[Path]:
        unpacked = [path for folder in self._folders() for left in left_behind(folder) for path in left.rglob(DATABASE)]
        broken_off = sorted(self._home.folder.glob(f"{UNPACKED}*/{DATABASE}"))
        return [*(folder / DATABASE for folder in self._moved_aside()), *broken_off, *unpacked]

    def _folders(self) -> list[Path]:
        """Where backups are made and changed."""
        known = {Path(one.path).resolve().parent for one in known_backups(self._home)}
        return sorted(known | {self._home.backups.resolve()})

    def _remove_leftovers(self) -> list[str]:
        """Copies that one left who was killed; returns those that stay."""
        left = [path for folder in self._folders() for path in remove_abandoned(folder)]
        if not self._home.unfinished_restore.exists():
            # Who restores holds the data folder alone, and so do we: this one broke off before anything moved.
            for path in self._home.folder.glob(f"{UNPACKED}*"):
                shutil.rmtree(path, ignore_errors=True)
                left += [path] if path.exists() else []
        return [f"{path} was left by one that was killed, and cannot be removed: remove it" for path in left]

    # ── taking it out ──

    async def _erase_all(self, agent_id: str, wanted: Selection, troubles: list[str]) -> int:
        """One that fails keeps none of the others back."""
        changed = 0
        for archive in [Path(one.path) for one in self._readable(agent_id)]:
            try:
                changed += await erase_in_backup(archive, partial(self._erase, agent_id, wanted))
            except (OffbookError, OSError) as error:
                troubles += [str(error)] if archive.exists() else []  # an old one may just have gone
        for folder in self._moved_aside():
            try:
                changed += bool(await self._erase(agent_id, wanted, folder / DATABASE, folder / BLOBS, purges=True))
            except (OffbookError, OSError) as error:
                troubles.append(f"{folder}: {error}")
        if troubles:
            raise StoreError("; ".join(troubles))
        return changed

    async def _hashes(self, agent_id: str, spans: Sequence[ForgottenSpan]) -> frozenset[bytes]:
        hashes: set[bytes] = set()
        for span in spans:
            scope, after = Scope(agent_id=agent_id, session_id=span.session_id), span.first_seq - 1
            while after < span.last_seq:
                limit = min(PAGE, span.last_seq - after)
                page = await self._store.messages(scope, after_seq=after, limit=limit)
                if not page:
                    break
                hashes.update(logged.hash for logged in page)
                after = page[-1].seq
        return frozenset(hashes)

    async def _erase(
        self, agent_id: str, wanted: Selection, database: Path, blobs: Path, *, purges: bool = False
    ) -> int:
        """`purges`: the file stays, so what was removed must not lie in it; who packs it again sees to that."""
        head_path(database).unlink(missing_ok=True)  # a copy, which need not be all there
        store = SqliteStore(database)
        try:
            eraser = Eraser(store, BlobFiles(blobs), self._settings)
            plan = await eraser.plan(agent_id, wanted)
            if plan.what.places:
                await self._erase_planned(agent_id, eraser, plan)
            stray = await self._strays(store, agent_id, wanted, plan)
            await store.erase_stray(agent_id, stray)
            if purges and (plan.what.places or stray):
                await store.purge()
            return len(plan.what.places) + len(stray)
        finally:
            await store.close()

    async def _erase_planned(self, agent_id: str, eraser: Eraser, plan: Plan) -> None:
        spans = spans_of(plan.what.seqs)
        event = AuditDraft(
            verb="forget",
            actor=ERASER,
            details={
                "how": "backup",
                "sessions": len(plan.lineage.sessions),
                "spans": [
                    {"sessionId": span.session_id, "firstSeq": span.first_seq, "lastSeq": span.last_seq}
                    for span in spans
                ],
            },
        )
        await eraser.erase(agent_id, plan, _receipt(agent_id, plan.lineage.reached, spans), event)
        await eraser.drop_parts(agent_id, plan.lineage.parts)

    async def _strays(self, store: Store, agent_id: str, wanted: Selection, plan: Plan) -> list[tuple[str, int]]:
        """Rows beside the log that say it: contexts of other sessions, reasons of marks."""
        holds = saying(plan.what.windows)
        said = [folded(each) for each in wanted.matching or ()]

        def says(text: str) -> bool:
            letters = folded(text) if said else ""
            return any(phrase in letters for phrase in said) or holds(text)

        return [
            (kept.table, kept.row)
            async for kept in store.kept_texts(agent_id)
            if kept.table != "summary_texts" and await asyncio.to_thread(says, kept.text)
        ]


def _receipt(agent_id: str, reached: Reached, spans: list[ForgottenSpan]) -> ForgetReceipt:
    """The backup's own, unsigned: the one that counts is the provider's."""
    return ForgetReceipt(
        id="in-a-backup",
        agent_id=agent_id,
        at=now(),
        by=ERASER,
        reason="",
        dry_run=False,
        how="backup",
        reached=reached,
        spans=spans,
        probes=[],
        outside=[],
        residue=[],
    )
