"""What is forgotten is taken out of the backups, too: of those that are known and can be reached."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from offbook.backup.archive import BLOBS, DATABASE
from offbook.backup.erasing import erase_in_backup
from offbook.backup.known import KnownBackup, known_backups
from offbook.backup.moving import ASIDE
from offbook.backup.restoring import UNPACKED
from offbook.backup.searching import Sought, found_in_backup, found_in_store, not_looked_through
from offbook.backup.unfinished import left_behind, remove_abandoned
from offbook.erasures import ForgetReceipt, ForgottenSpan, Reached, Residue
from offbook.errors import OffbookError, StoreError
from offbook.home import Home
from offbook.lifecycle.erasure import folded, spans_of
from offbook.lifecycle.stretches import saying
from offbook.protocols import Store
from offbook.settings import Settings
from offbook.store.blobs import BlobFiles
from offbook.store.sqlite import SqliteStore
from offbook.types import AuditDraft, Scope, now
from offbook.worker.forgetting.elsewhere import Wanted
from offbook.worker.forgetting.erasing import Erasing, Plan
from offbook.worker.forgetting.meant import Meant

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

    async def count(self, agent_id: str, wanted: Wanted) -> int:
        """That hold the agent's memory, and data that a restore moved aside. What of it is known when it is opened."""
        if not wanted.spans and not (wanted.meant and wanted.meant.matching):
            return 0
        return len(self._readable(agent_id)) + len(self._moved_aside())

    def outside(self, agent_id: str) -> list[str]:
        known = known_backups(self._home)
        away = [one for one in known if agent_id in one.agents and not one.is_there]
        return [
            *(f"the backup {one.path}, which is not there now" for one in away),
            *(f"the backup {one.path}, which cannot be read: {one.trouble}" for one in known if one.trouble),
        ]

    async def erase(self, agent_id: str, wanted: Wanted) -> int:
        """Known by the hashes of their rows, which stay: the same numbers may be other messages in another history.
        And by what they say, where that is how it was named: some are in a backup only."""
        hashes = await self._hashes(agent_id, wanted.spans)
        meant = Meant(hashes=hashes, matching=wanted.meant.matching if wanted.meant is not None else None)
        async with self._one_at_a_time:
            troubles = await asyncio.to_thread(self._remove_leftovers)
            return await self._erase_all(agent_id, meant, troubles) if hashes or meant.matching else 0

    async def search(self, agent_id: str, wanted: Wanted) -> list[Residue]:
        """In every backup that is there, and every copy that was moved aside or left: by the words, and by the hashes
        of the rows, for those that have none of their own. Unpacks each."""
        sought = Sought(wanted.says, await self._hashes(agent_id, wanted.spans))
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

    async def _erase_all(self, agent_id: str, wanted: Meant, troubles: list[str]) -> int:
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

    async def _erase(self, agent_id: str, wanted: Meant, database: Path, blobs: Path, *, purges: bool = False) -> int:
        """`purges`: the file stays, so what was removed must not lie in it; who packs it again sees to that."""
        store = SqliteStore(database)
        try:
            erasing = Erasing(store, BlobFiles(blobs), self._settings)
            plan = await erasing.plan(agent_id, wanted)
            if plan.what.places:
                await self._erase_planned(agent_id, erasing, plan)
            stray = await self._strays(store, agent_id, wanted, plan)
            await store.erase_stray(agent_id, stray)
            if purges and (plan.what.places or stray):
                await store.purge()
            return len(plan.what.places) + len(stray)
        finally:
            await store.close()

    async def _erase_planned(self, agent_id: str, erasing: Erasing, plan: Plan) -> None:
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
        await erasing.erase(agent_id, plan, _receipt(agent_id, plan.lineage.reached, spans), event)
        await erasing.drop_parts(agent_id, plan.lineage.parts)

    async def _strays(self, store: Store, agent_id: str, wanted: Meant, plan: Plan) -> list[tuple[str, int]]:
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
