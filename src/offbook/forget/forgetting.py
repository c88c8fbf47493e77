"""Forgetting for good: what was said goes from the log and from everything that came of it, and that is proven.

The log and all the store derives from it change in one transaction, with the summaries written anew beforehand from
what is left. Then each projection forgets it, then each copy beside the data, and then the free space of the store
itself. Whatever breaks off there is found by its receipt, which is not signed yet, and finished at the next start.
"""

from __future__ import annotations

import asyncio
import errno
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import NamedTuple

import msgspec
import structlog

from offbook.forget.erase import Eraser, Plan
from offbook.forget.external_copies import ExternalCopy
from offbook.forget.probes import Prober
from offbook.forget.receipts import is_genuine, signed
from offbook.forget.residue import MOST_NAMED, ResidueSearch
from offbook.forget.selection import Known, places_in
from offbook.log.erasure import spans_of
from offbook.log.store import Store
from offbook.model.errors import OffbookError, StoreFull
from offbook.model.receipt import ForgetCheck, ForgetReceipt, Residue, Selection, Unfinished
from offbook.model.types import AuditDraft, Caller, now
from offbook.projections.base import Batch, Erased, Progress, Projection
from offbook.projections.runner import Runner

OUTSIDE = ("what the host keeps itself, such as its transcripts", "exports and copies that were made by hand")
ROUNDS = 3
"""How often what came back meanwhile (a turn that was being prepared) is removed, too."""

log = structlog.get_logger("offbook.forget")


class Unproven(NamedTuple):
    """What is still known of something that was forgotten in the store, until that is done everywhere."""

    known: Known = Known()
    selection: Selection | None = None
    """None: whoever started anew does not know it."""
    began: int = 0
    """The event after which others may have said it, too."""
    relinked: frozenset[int] | None = None
    taught_by: Sequence[int] = ()


class Forgetting:
    def __init__(
        self,
        store: Store,
        eraser: Eraser,
        projections: Sequence[Projection],
        search: ResidueSearch,
        runner: Runner,
        *,
        key: bytes,
        without_models: Callable[[str], AbstractContextManager[None]],
        take_edits: Callable[[str], Awaitable[object]],
    ) -> None:
        """`without_models`: meanwhile none writes for the agent, so that whoever is at work is done soon. `take_edits`:
        what a person wrote into pages of the wiki, which would come into the log after it was forgotten there."""
        self._store = store
        self._eraser = eraser
        self._projections = projections
        self._search = search
        self._runner = runner
        self._prober = Prober(key)
        self._key = key
        self._without_models = without_models
        self._take_edits = take_edits
        self.copies: list[ExternalCopy] = []
        """Beside the data, where what was said lies, too."""
        self._unproven: dict[str, Unproven] = {}
        """By receipt. Words are nowhere else: who starts anew does without."""
        self._unfinished: set[str] = set()
        """Agents of which something was forgotten in the store, and not yet everywhere."""
        self._counts: dict[str, int] = {}
        self._under_way: set[asyncio.Task[ForgetReceipt]] = set()

    # ── what is asked of it ──

    async def forget(
        self, agent_id: str, selection: Selection, *, reason: str, by: Caller, dry_run: bool = False
    ) -> ForgetReceipt:
        """Goes on where whoever asked has left: half forgotten is not forgotten."""
        task = asyncio.create_task(self._asked(agent_id, selection, reason, by, dry_run))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    def count(self, agent_id: str) -> int | None:
        """How often something of the agent's was forgotten; None where that is not known yet. Hosts that keep words of
        theirs see by it that they should let go of them."""
        return self._counts.get(agent_id)

    def let_go(self, agent_id: str) -> None:
        self._counts.pop(agent_id, None)
        self._unfinished.discard(agent_id)

    async def finish(self, batch: Batch) -> Progress:
        """What broke off: a stop, a full disk, a reader in the way."""
        agent_id = batch.agent_id
        if agent_id in self._counts and agent_id not in self._unfinished:
            return Progress(is_idle=True)
        async with self._runner.apart(agent_id):
            finished = await self._resume(agent_id)
        if finished:
            self._runner.notify_agent(agent_id)
        return Progress(did={"finished": finished} if finished else {})

    async def check(self, receipt: ForgetReceipt, matching: str | None) -> ForgetCheck:
        """Whether it is ours, and whether what it names is gone."""
        if not is_genuine(receipt, self._key):
            # What somebody else wrote names no place here, and could name so many that looking never ends.
            return ForgetCheck(is_genuine=False, searched={}, residue=[])
        known = Known([matching] if matching else [])
        erased = await self._erased(receipt, Unproven(known))
        residue, searched = await self._search.search(receipt, erased, known, elsewhere=self._folders)
        residue += await self._search_copies(erased, self.copies)
        return ForgetCheck(is_genuine=True, searched=searched, residue=residue[:MOST_NAMED], wordless=receipt.wordless)

    async def close(self) -> None:
        """What was not done is finished at the next start."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    # ── one at a time for an agent ──

    async def _asked(
        self, agent_id: str, selection: Selection, reason: str, by: Caller, dry_run: bool
    ) -> ForgetReceipt:
        if dry_run:
            async with self._first(agent_id):
                await self._edits_taken(agent_id)
            return await self._planned(agent_id, selection, reason, by, dry_run=True)
        async with self._first(agent_id):
            if agent_id in self._unfinished:
                with suppress(StoreFull):  # more to forget may be what makes room
                    await self._resume(agent_id)
            await self._edits_taken(agent_id)
            receipt = await self._planned(agent_id, selection, reason, by, dry_run=False)
        if receipt.signature or receipt.unfinished is not None:
            self._runner.notify_agent(agent_id)
        return receipt

    @asynccontextmanager
    async def _first(self, agent_id: str) -> AsyncIterator[None]:
        """Alone with the agent, without waiting for what a model writes: that may take minutes, and would not be
        kept."""
        async with AsyncExitStack() as stack:
            with self._without_models(agent_id):
                await stack.enter_async_context(self._runner.apart(agent_id))
            yield

    async def _edits_taken(self, agent_id: str) -> None:
        try:
            await self._take_edits(agent_id)
        except (OffbookError, OSError) as error:
            # No reason to keep anything: what is left in the pages is found there, and told.
            log.warning("edits were not taken", action="forget.edits", agent=agent_id, detail=str(error))

    async def _resume(self, agent_id: str) -> int:
        """Returns how many had broken off."""
        receipts = await self._store.receipts(agent_id)
        self._counts[agent_id] = len(receipts)
        left = [(number, one) for number, one in receipts if one.unfinished is not None]
        if left:
            self._unfinished.add(agent_id)
        for number, receipt in left:
            await self._finish(number, receipt, self._unproven.get(receipt.id, Unproven()))
        self._unfinished.discard(agent_id)
        return len(left)

    # ── the log, and what the store derives from it ──

    async def _planned(
        self, agent_id: str, selection: Selection, reason: str, by: Caller, *, dry_run: bool
    ) -> ForgetReceipt:
        began = await self._store.audit_head(agent_id)
        plan = await self._eraser.plan(agent_id, selection)
        what, lineage = plan
        probes = await asyncio.to_thread(self._prober.probes, what.probed)
        receipt = ForgetReceipt(
            id=f"forget-{secrets.token_hex(8)}",
            agent_id=agent_id,
            at=now(),
            by=by.name,
            reason=reason,
            dry_run=dry_run,
            how=selection.how,
            reached=lineage.reached,
            spans=spans_of(what.seqs),
            probes=probes,
            outside=self._outside(agent_id) if what.places else [],
            residue=[],
            wordless=what.wordless,
            secrets=what.secrets,
            unfinished=Unfinished(summaries=lineage.summaries, lessons=lineage.lessons, parts=lineage.parts),
        )
        unproven = Unproven(what.known, selection, began.seq)
        erased = (await self._erased(receipt, unproven))._replace(places=lineage.places, is_dry_run=True)
        counts, _ = await self._forgotten(erased)
        receipt = msgspec.structs.replace(receipt, reached=msgspec.structs.replace(receipt.reached, **counts))
        is_named_in_the_log = selection.entry_places is not None or selection.with_secrets or selection.everything
        if not what.places and not dry_run and not is_named_in_the_log:
            receipt, is_found = await self._only_in_copies(plan, receipt, unproven, erased)
            if is_found:
                return receipt
        if dry_run or not what.places:
            return await self._only_recorded(receipt, len(lineage.sessions), len(what.places))
        return await self._erase(plan, receipt, unproven)

    async def _erase(self, plan: Plan, receipt: ForgetReceipt, unproven: Unproven) -> ForgetReceipt:
        agent_id, lineage = receipt.agent_id, plan.lineage
        unproven = unproven._replace(
            relinked=frozenset(await self._eraser.replacing(agent_id, lineage)),
            taught_by=await self._eraser.learnt_from(agent_id, lineage),
        )
        was_unfinished = agent_id in self._unfinished
        self._unfinished.add(agent_id)
        number, sealed = await self._eraser.erase(agent_id, plan, receipt, _event(receipt, len(lineage.sessions)))
        self._counts[agent_id] = self._counts.get(agent_id, 0) + 1
        receipt = msgspec.structs.replace(receipt, audit_seq=sealed.seq)
        messages = len(lineage.places)
        log.info("forgotten", action="memory.forget", agent=agent_id, messages=messages, receipt=receipt.id)
        self._unproven[receipt.id] = unproven
        try:
            receipt = await self._finish(number, receipt, unproven)
        except StoreFull as error:
            what = (
                f"of the rest some may be left until there is room on the disk, when it goes by itself ({error.detail})"
            )
            return msgspec.structs.replace(receipt, residue=[Residue(where="the data folder", what=what)])
        if not was_unfinished:
            self._unfinished.discard(agent_id)
        return receipt

    async def _only_recorded(self, receipt: ForgetReceipt, sessions: int, messages: int) -> ForgetReceipt:
        """A dry run, or nothing to forget."""
        details = {"how": receipt.how, "sessions": sessions, "dryRun": receipt.dry_run, "messages": messages}
        sealed = await self._store.record(
            receipt.agent_id, AuditDraft(verb="forget", actor=receipt.by, details=details)
        )
        audit_seq = sealed.seq if sealed is not None else 0
        return msgspec.structs.replace(receipt, audit_seq=audit_seq, probes=[], unfinished=None)

    async def _only_in_copies(
        self, plan: Plan, receipt: ForgetReceipt, unproven: Unproven, erased: Erased
    ) -> tuple[ForgetReceipt, bool]:
        """What no message of the log says may be in a backup of before, or was never taken into it. False: it is not
        there, either."""
        counts, missed = await self._forgotten(erased._replace(is_dry_run=False))
        receipt = msgspec.structs.replace(receipt, reached=msgspec.structs.replace(receipt.reached, **counts))
        if not any(counts.values()) and not missed:
            return receipt, False
        receipt = msgspec.structs.replace(
            receipt,
            outside=self._outside(receipt.agent_id),
            unfinished=None,
        )
        number, sealed = await self._eraser.erase(receipt.agent_id, plan, receipt, _event(receipt, 0))
        receipt = msgspec.structs.replace(receipt, audit_seq=sealed.seq)
        receipt = await self._proven(receipt, unproven, missed)
        await self._store.set_receipt(receipt.agent_id, number, receipt)
        return receipt, True

    # ── everything that came of it ──

    async def _finish(self, number: int, receipt: ForgetReceipt, unproven: Unproven) -> ForgetReceipt:
        agent_id, left = receipt.agent_id, receipt.unfinished
        await self._eraser.drop_parts(agent_id, left.parts if left is not None else [])
        counts, missed = await self._forgotten_with_room(await self._erased(receipt, unproven))
        receipt = msgspec.structs.replace(
            receipt, reached=msgspec.structs.replace(receipt.reached, **counts), unfinished=None
        )
        if unproven.selection is not None:
            missed += await self._eraser.late(agent_id, unproven.selection, unproven.began)
        receipt = await self._proven(receipt, unproven, missed)
        await self._store.set_receipt(agent_id, number, receipt)
        self._unproven.pop(receipt.id, None)
        return receipt

    async def _erased(self, receipt: ForgetReceipt, unproven: Unproven) -> Erased:
        left = receipt.unfinished or Unfinished(summaries=[], lessons=[], parts=[])
        selection, known = unproven.selection, unproven.known
        phrases = known.phrases if selection is None else selection.matching or ()
        return Erased(
            agent_id=receipt.agent_id,
            spans=receipt.spans,
            says=self._search.says(receipt.probes, Known(phrases, known.probed)),
            selection=selection,
            places=await places_in(self._store, receipt.agent_id, receipt.spans),
            summaries=left.summaries,
            lessons=left.lessons,
            taught_by=unproven.taught_by,
            relinked=unproven.relinked,
        )

    async def _forgotten_with_room(self, erased: Erased) -> tuple[dict[str, int], list[Residue]]:
        """`_forgotten`; where that lacks room, once more with what the first try has freed."""
        try:
            return await self._forgotten(erased)
        except StoreFull:
            await self._store.purge()
            return await self._forgotten(erased)

    async def _forgotten(self, erased: Erased) -> tuple[dict[str, int], list[Residue]]:
        """From each projection and each copy, or only counted there. One that lacks room keeps none of the others back:
        they may make some. A copy that fails is told as what it is: left."""
        counts: dict[str, int] = {}
        missed: list[Residue] = []
        lacking: StoreFull | None = None
        for projection in self._projections:
            try:
                removal = await projection.forget(erased)
            except (StoreFull, OSError) as error:
                lacking = _for_want_of_room(error)
            else:
                counts |= removal.counts
                missed += removal.residue
        for copy in self.copies:
            try:
                removal = await copy.forget(erased)
            except (OffbookError, OSError) as error:
                log.warning("not forgotten there", action="forget.elsewhere", what=copy.name, detail=str(error))
                missed.append(Residue(where=copy.name, what=f"could not be looked through: {error}"))
            else:
                counts |= removal.counts
        if lacking is not None:
            raise lacking
        return counts, missed

    # ── the proof ──

    async def _proven(self, receipt: ForgetReceipt, unproven: Unproven, missed: Sequence[Residue]) -> ForgetReceipt:
        agent_id, known = receipt.agent_id, unproven.known
        await self._store.purge()
        for _ in range(ROUNDS):
            stray = await self._search.strays(agent_id, receipt.probes, known)
            if not stray:
                break
            await self._store.erase_stray(agent_id, stray)
            await self._store.purge()
        await self._search.sync_folders()
        # Other messages were looked through when the probes were chosen, and those since then by what is meant, as the
        # backups were. Who started anew does not know it: then all is looked through, and what says it is told.
        is_known = unproven.selection is not None
        with_log = not is_known and receipt.how == "matching"
        erased = (await self._erased(receipt, unproven))._replace(says=self._search.says(receipt.probes, known))
        residue, _ = await self._search.search(receipt, erased, known, with_log=with_log, elsewhere=self._folders)
        copies = [each for each in self.copies if each.folder is not None or not is_known]
        residue += await self._search_copies(erased._replace(selection=None), copies)
        return signed(msgspec.structs.replace(receipt, residue=[*missed, *residue][:MOST_NAMED]), self._key)

    async def _search_copies(self, erased: Erased, copies: Sequence[ExternalCopy]) -> list[Residue]:
        found: list[Residue] = []
        for each in copies:
            try:
                found += await each.search(erased)
            except (OffbookError, OSError) as error:
                found.append(Residue(where=each.name, what=f"not looked through: {error}"))
        return found

    @property
    def _folders(self) -> frozenset[str]:
        """Of the data folder, those that somebody looks through by themselves."""
        return frozenset(each.folder for each in self.copies if each.folder is not None)

    def _outside(self, agent_id: str) -> list[str]:
        return [
            *OUTSIDE,
            *self._store.out_of_reach,
            *(where for each in self.copies for where in each.outside(agent_id)),
        ]


def _for_want_of_room(error: StoreFull | OSError) -> StoreFull:
    if isinstance(error, StoreFull):
        return error
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        raise error
    return StoreFull(str(error))


def _event(receipt: ForgetReceipt, sessions: int) -> AuditDraft:
    details = {
        "how": receipt.how,
        "sessions": sessions,
        "reason": receipt.reason,
        "receipt": receipt.id,
        "spans": msgspec.to_builtins(receipt.spans),
    }
    return AuditDraft(verb="forget", actor=receipt.by, details=details)
