"""The verbs of forgetting: what is meant, checked before anything is touched, and the receipts of what is gone."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from offbook.api.recall_service import place_of_entry
from offbook.forget.forgetting import Forgetting
from offbook.forget.receipts import in_a_line
from offbook.ingest.scope import checked_session, checked_text
from offbook.ingest.secret_scan import redact_text
from offbook.log.erasure import SHORTEST_MATCHING_CHARS, folded
from offbook.log.store import Store
from offbook.model.errors import NotFound, WrongShape
from offbook.model.receipt import ForgetCheck, ForgetReceipt, KeptReceipt, Selection
from offbook.model.settings import Settings
from offbook.model.types import EMBEDDED, AuditDraft, Caller

MOST_RECEIPTS = 1_000
"""Of those that are listed: years of daily retention."""


class ForgetService:
    def __init__(self, store: Store, settings: Settings, forgetting: Forgetting) -> None:
        self._store = store
        self._settings = settings
        self._forgetting = forgetting

    async def forget(
        self,
        agent_id: str,
        *,
        entry_ids: Sequence[str] | None = None,
        session_id: str | None = None,
        matching: str | Sequence[str] | None = None,
        secrets: bool = False,
        everything: bool = False,
        reason: str = "",
        dry_run: bool = False,
        by: Caller = EMBEDDED,
    ) -> ForgetReceipt:
        """Forget messages for good, with everything that came of them, and prove it: those named, those of a session,
        those that say something, those that hold secrets, or all of the agent's. With `dry_run`: what that would
        touch."""
        given = {
            "entryIds": entry_ids,
            "sessionId": session_id,
            "matching": matching,
            "secrets": secrets or None,
            "everything": everything or None,
        }
        named = [name for name, value in given.items() if value is not None]
        if len(named) != 1:
            names = ", ".join(f"`{name}`" for name in given)
            raise WrongShape(f"say what is meant by one of {names}, not by {len(named)}")
        checked_text(reason, "reason")
        said = None if matching is None else (matching,) if isinstance(matching, str) else tuple(matching)
        for each in said or ():
            checked_text(each, "matching")
            if len(folded(each)) < SHORTEST_MATCHING_CHARS:
                raise WrongShape(f"`matching` is shorter than {SHORTEST_MATCHING_CHARS} characters: say more of it")
            if folded(each) in folded(reason):
                raise WrongShape("`reason` repeats what is to be forgotten, and is kept: give another")
        reason, _ = redact_text(reason)
        places = frozenset(map(place_of_entry, entry_ids)) if entry_ids is not None else None
        selection = Selection(
            entry_places=places,
            session_id=checked_session(session_id),
            matching=said,
            with_secrets=secrets,
            everything=everything,
            with_personal_numbers=self._settings.for_agent(agent_id).redaction.personal_numbers,
        )
        return await self._forgetting.forget(agent_id, selection, reason=reason, by=by, dry_run=dry_run)

    async def verify_forgotten(
        self, receipt: ForgetReceipt, *, matching: str | None = None, by: Caller = EMBEDDED
    ) -> ForgetCheck:
        """Look everywhere for what the receipt says is gone. Grows with history."""
        if receipt.agent_id not in await self._store.agents():
            raise NotFound(f"there is no agent {receipt.agent_id!r} here: ask the provider that gave the receipt")
        if matching is not None:
            checked_text(matching, "matching")
            if len(folded(matching)) < SHORTEST_MATCHING_CHARS:
                raise WrongShape(f"`matching` is shorter than {SHORTEST_MATCHING_CHARS} characters: say more of it")
        check = await self._forgetting.check(receipt, matching)
        details = {"receipt": receipt.id[:64], "genuine": check.is_genuine, "residue": len(check.residue)}
        await self._store.record(receipt.agent_id, AuditDraft(verb="forget/verify", actor=by.name, details=details))
        return check

    async def forget_receipt(self, agent_id: str, receipt_id: str) -> ForgetReceipt:
        """One that the store keeps, to be verified."""
        for _, receipt in await self._store.receipts(agent_id):
            if receipt.id == receipt_id:
                if receipt.unfinished is None:
                    return receipt
                raise NotFound(f"{receipt_id} has no receipt yet: it broke off, and is finished at the next start")
        raise NotFound(f"agent {agent_id!r} has no receipt {receipt_id!r}: `offbook forget --receipts` lists them")

    async def forget_receipts(self, agent_id: str, *, by: Caller = EMBEDDED) -> list[KeptReceipt]:
        """Those that the store keeps, the newest first: also of what was forgotten by rule, or after a crash."""
        if agent_id not in await self._store.agents():
            raise NotFound(f"there is no agent {agent_id!r} here: `offbook status` lists them")
        kept = [in_a_line(receipt) for _, receipt in reversed(await self._store.receipts(agent_id))]
        event = AuditDraft(verb="forget/verify", actor=by.name, details={"receipts": len(kept)})
        await self._store.record(agent_id, event)
        return kept[:MOST_RECEIPTS]

    async def check_receipt(
        self,
        agent_id: str,
        *,
        receipt: ForgetReceipt | None = None,
        receipt_id: str | None = None,
        matching: str | None = None,
        by: Caller = EMBEDDED,
    ) -> ForgetCheck:
        """`verify_forgotten` of a receipt, or of one that the store keeps, which is then answered too; without either
        those that it keeps are listed."""
        if receipt is not None and receipt_id is not None:
            raise WrongShape("give `receipt` or `receiptId`, not both")
        if receipt is not None:
            return await self.verify_forgotten(receipt, matching=matching, by=by)
        if receipt_id is None:
            kept = await self.forget_receipts(agent_id, by=by)
            return ForgetCheck(is_genuine=True, searched={}, residue=[], receipts=kept)
        receipt = await self.forget_receipt(agent_id, receipt_id)
        check = await self.verify_forgotten(receipt, matching=matching, by=by)
        return msgspec.structs.replace(check, receipt=receipt)
