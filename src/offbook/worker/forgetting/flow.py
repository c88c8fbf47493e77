"""Forgetting for good: what was said goes from the log and from everything that came of it, and that is proven.

The log and all the store derives from it change in one transaction, with the summaries written anew beforehand from
what is left. Then follow the files: large parts, the index, pages, backups, and the free space of the store itself.
Whatever breaks off there is found by its receipt, which is not signed yet, and finished at the next start.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import structlog

from offbook.forget.probes import Prober
from offbook.forget.receipts import is_genuine, signed
from offbook.log.erasure import spans_of
from offbook.log.store import Store
from offbook.model.errors import OffbookError
from offbook.model.receipt import ForgetCheck, ForgetReceipt, Lineage, Probe, Reached, Residue, Unfinished
from offbook.model.types import AuditDraft, Caller, now
from offbook.worker.forgetting.elsewhere import Elsewhere, Says, Wanted
from offbook.worker.forgetting.erasing import Erasing, Plan
from offbook.worker.forgetting.meant import Known, Meant
from offbook.worker.forgetting.residue import MOST_NAMED, Searching
from offbook.worker.summary_files import SummaryFiles

if TYPE_CHECKING:
    from offbook.worker.indexes import Indexes

FOLLOW_SECONDS = 5.0
OUTSIDE = ("what the host keeps itself, such as its transcripts", "exports and copies that were made by hand")
ROUNDS = 3
"""How often what came back meanwhile (a turn that was being prepared) is removed, too."""

log = structlog.get_logger("offbook.worker")


class Parts(NamedTuple):
    """What the background has, and forgetting uses."""

    indexes: Indexes
    files: SummaryFiles
    forget_words: Callable[[str], None]
    """Let go of whatever is kept of the agent in memory."""
    relearn: Callable[[str, Sequence[int]], Awaitable[None]]


class Forgetting:
    def __init__(self, store: Store, erasing: Erasing, parts: Parts, searching: Searching, *, key: bytes) -> None:
        self._store = store
        self._erasing = erasing
        self._parts = parts
        self._searching = searching
        self._prober = Prober(key)
        self._key = key
        self.elsewhere: list[Elsewhere] = []
        self.unfinished: set[str] = set()
        """Agents of which something was forgotten in the store, and not yet everywhere."""
        self._words: dict[str, tuple[Known, tuple[Meant, int]]] = {}
        """Of these, by receipt, as `_finish` needs them. They are nowhere else: who starts anew does without."""
        self.times: dict[str, int] = {}
        """How often something of an agent's was forgotten, where that is known already: hosts that keep words of theirs
        see by it that they should let go of them."""

    async def forget(
        self, agent_id: str, meant: Meant, *, reason: str, by: Caller, dry_run: bool = False
    ) -> ForgetReceipt:
        began = await self._store.audit_head(agent_id)
        plan = await self._erasing.plan(agent_id, meant)
        what, lineage = plan
        spans = spans_of(what.seqs)
        probes = await asyncio.to_thread(self._prober.probes, what.probed)
        wanted = Wanted(spans, self._says(probes, what.known, meant), meant, lineage.lessons)
        receipt = ForgetReceipt(
            id=f"forget-{secrets.token_hex(8)}",
            agent_id=agent_id,
            at=now(),
            by=by.name,
            reason=reason,
            dry_run=dry_run,
            how=meant.how,
            reached=await self._reached(agent_id, lineage, wanted),
            spans=spans,
            probes=[],
            outside=self._outside(agent_id) if what.places else [],
            residue=[],
            wordless=what.wordless,
        )
        details = {"how": meant.how, "sessions": len(lineage.sessions)}
        if not what.places and not dry_run and meant.entry_places is None:
            receipt, is_found = await self._only_elsewhere(agent_id, plan, receipt, wanted, probes)
            if is_found:
                return receipt
        if dry_run or not what.places:
            event = AuditDraft(
                verb="forget", actor=by.name, details={**details, "dryRun": dry_run, "messages": len(what.places)}
            )
            sealed = await self._store.record(agent_id, event)
            return msgspec.structs.replace(receipt, audit_seq=sealed.seq)
        unfinished = Unfinished(summaries=lineage.summaries, lessons=lineage.lessons, parts=lineage.parts)
        receipt = msgspec.structs.replace(receipt, probes=probes, unfinished=unfinished)
        event = AuditDraft(
            verb="forget",
            actor=by.name,
            details={**details, "reason": reason, "receipt": receipt.id, "spans": msgspec.to_builtins(spans)},
        )
        learnt_from = await self._erasing.learnt_from(agent_id, lineage)
        relinked = await self._erasing.replacing(agent_id, lineage)
        for id_ in lineage.summaries:
            await self._parts.files.forgotten(agent_id, id_)
        number, sealed = await self._erasing.erase(agent_id, plan, receipt, event)
        self.unfinished.add(agent_id)
        self.times[agent_id] = self.times.get(agent_id, 0) + 1
        receipt = msgspec.structs.replace(receipt, audit_seq=sealed.seq)
        log.info("forgotten", action="memory.forget", agent=agent_id, messages=len(what.places), receipt=receipt.id)
        known, since = self._words[receipt.id] = what.known, (meant, began.seq)
        finished = await self._finish(agent_id, number, receipt, known, since, relinked)
        self.unfinished.discard(agent_id)
        await self._parts.relearn(agent_id, learnt_from)
        return finished

    async def resume(self, agent_id: str) -> int:
        """Finish what broke off; returns how many there were."""
        receipts = await self._store.receipts(agent_id)
        self.times[agent_id] = len(receipts)
        left = [(number, one) for number, one in receipts if one.unfinished is not None]
        if left:
            self.unfinished.add(agent_id)
        for number, receipt in left:
            known, since = self._words.get(receipt.id, (Known(), None))
            await self._finish(agent_id, number, receipt, known, since)
        self.unfinished.discard(agent_id)
        return len(left)

    async def finish(self, agent_id: str) -> int:
        """As `resume`, where something is known to be left."""
        return await self.resume(agent_id) if agent_id in self.unfinished else 0

    async def check(self, receipt: ForgetReceipt, matching: str | None) -> ForgetCheck:
        """Whether it is ours, and whether what it names is gone."""
        if not is_genuine(receipt, self._key):
            # What somebody else wrote names no place here, and could name so many that looking never ends.
            return ForgetCheck(is_genuine=False, searched={}, residue=[])
        known = Known([matching] if matching else [])
        says = self._searching.says(receipt.probes, known)
        residue, searched = await self._searching.search(
            receipt.agent_id, receipt, known, elsewhere=self._folders, says=says
        )
        residue += await self._search_elsewhere(receipt.agent_id, Wanted(receipt.spans, says), self.elsewhere)
        return ForgetCheck(is_genuine=True, searched=searched, residue=residue[:MOST_NAMED], wordless=receipt.wordless)

    async def _search_elsewhere(self, agent_id: str, wanted: Wanted, places: Sequence[Elsewhere]) -> list[Residue]:
        found: list[Residue] = []
        for each in places:
            try:
                found += await each.search(agent_id, wanted)
            except (OffbookError, OSError) as error:
                found.append(Residue(where=each.name, what=f"not looked through: {error}"))
        return found

    @property
    def _folders(self) -> frozenset[str]:
        """Of the data folder, those that somebody looks through by themselves."""
        return frozenset(each.folder for each in self.elsewhere if each.folder is not None)

    def _says(self, probes: Sequence[Probe], known: Known, meant: Meant | None) -> Says:
        return self._searching.says(probes, Known(meant.matching or () if meant is not None else (), known.probed))

    async def _only_elsewhere(
        self, agent_id: str, plan: Plan, receipt: ForgetReceipt, wanted: Wanted, probes: list[Probe]
    ) -> tuple[ForgetReceipt, bool]:
        """What no message of the log says may be in a backup of before, or was never taken into it. False: it is not
        there, either."""
        counts, missed = await self._erase_elsewhere(agent_id, wanted)
        receipt = msgspec.structs.replace(receipt, reached=msgspec.structs.replace(receipt.reached, **counts))
        if not any(counts.values()) and not missed:
            return receipt, False
        receipt = msgspec.structs.replace(receipt, probes=probes, outside=self._outside(agent_id))
        details = {"how": receipt.how, "sessions": 0, "reason": receipt.reason, "receipt": receipt.id, "spans": []}
        event = AuditDraft(verb="forget", actor=receipt.by, details=details)
        number, sealed = await self._erasing.erase(agent_id, plan, receipt, event)
        receipt = msgspec.structs.replace(receipt, audit_seq=sealed.seq)
        receipt = await self._proven(agent_id, receipt, plan.what.known, missed)
        await self._store.set_receipt(agent_id, number, receipt)
        return receipt, True

    async def _reached(self, agent_id: str, lineage: Lineage, wanted: Wanted) -> Reached:
        counts = {each.name: await each.count(agent_id, wanted) for each in self.elsewhere}
        index = self._parts.indexes.peek(agent_id)
        rows = int((index.rows.find(lineage.places) >= 0).sum()) if index is not None and lineage.places else 0
        return msgspec.structs.replace(
            lineage.reached, index_entries=rows, summary_files=len(lineage.summaries), **counts
        )

    # ── the files ──

    async def _finish(
        self,
        agent_id: str,
        number: int,
        receipt: ForgetReceipt,
        known: Known,
        since: tuple[Meant, int] | None = None,
        relinked: Collection[int] | None = None,
    ) -> ForgetReceipt:
        """`since`: what is meant, and the event after which others may have said it, too. `relinked`: places of the
        messages that are looked through again for what they replace, where it is known which those are."""
        left = receipt.unfinished or Unfinished(summaries=[], lessons=[], parts=[])
        await self._erasing.drop_parts(agent_id, left.parts)
        self._parts.forget_words(agent_id)
        await self._write_files(agent_id, left.summaries)
        meant = since[0] if since is not None else None
        wanted = Wanted(receipt.spans, self._says(receipt.probes, known, meant), meant, left.lessons)
        counts, missed = await self._erase_elsewhere(agent_id, wanted)
        await self._index_anew(agent_id, relinked)
        receipt = msgspec.structs.replace(
            receipt, reached=msgspec.structs.replace(receipt.reached, **counts), unfinished=None
        )
        missed += await self._erasing.late(agent_id, *since) if since is not None else []
        receipt = await self._proven(agent_id, receipt, known, missed, is_meant_known=since is not None)
        await self._store.set_receipt(agent_id, number, receipt)
        self._words.pop(receipt.id, None)
        return receipt

    async def _erase_elsewhere(self, agent_id: str, wanted: Wanted) -> tuple[dict[str, int], list[Residue]]:
        """One that fails keeps none of the others back, and is told as what it is: left."""
        counts: dict[str, int] = {}
        missed: list[Residue] = []
        for each in self.elsewhere:
            try:
                counts[each.name] = await each.erase(agent_id, wanted)
            except (OffbookError, OSError) as error:
                log.warning("not forgotten there", action="forget.elsewhere", what=each.name, detail=str(error))
                missed.append(Residue(where=each.name, what=f"could not be looked through: {error}"))
        return counts, missed

    def _outside(self, agent_id: str) -> list[str]:
        return [*OUTSIDE, *(where for each in self.elsewhere for where in each.outside(agent_id))]

    async def _write_files(self, agent_id: str, summaries: Sequence[str]) -> None:
        for id_ in summaries:
            summary = await self._store.summary(agent_id, id_)
            if summary is not None:
                await self._parts.files.kept(summary)
        await self._parts.files.run(agent_id)

    async def _index_anew(self, agent_id: str, relinked: Collection[int] | None) -> None:
        """Its files hold words in many places, so it is made again; who asks meanwhile finds what is taken by then."""
        await self._parts.indexes.rebuild(agent_id, relinked=relinked)
        has_all = False
        while not has_all:
            async with self._parts.indexes.following(agent_id, seconds=FOLLOW_SECONDS, is_patient=True) as (_, has_all):
                pass
        await self._parts.indexes.commit(agent_id, at_once=True)

    async def _proven(
        self,
        agent_id: str,
        receipt: ForgetReceipt,
        known: Known,
        missed: Sequence[Residue],
        *,
        is_meant_known: bool = True,
    ) -> ForgetReceipt:
        await self._store.purge()
        for _ in range(ROUNDS):
            stray = await self._searching.strays(agent_id, receipt.probes, known)
            if not stray:
                break
            await self._store.erase_stray(agent_id, stray)
            self._parts.forget_words(agent_id)
            await self._store.purge()
        # Other messages were looked through when the probes were chosen, and those since then by what is meant, as the
        # backups were. Who started anew does not know it: then all is looked through, and what says it is told.
        with_log = not is_meant_known and receipt.how == "matching"
        residue, _ = await self._searching.search(agent_id, receipt, known, with_log=with_log, elsewhere=self._folders)
        places = [each for each in self.elsewhere if each.folder is not None or not is_meant_known]
        wanted = Wanted(receipt.spans, self._searching.says(receipt.probes, known))
        residue += await self._search_elsewhere(agent_id, wanted, places)
        return signed(msgspec.structs.replace(receipt, residue=[*missed, *residue][:MOST_NAMED]), self._key)
