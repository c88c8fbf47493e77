"""The verbs of forgetting, for asyncio."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from offbook.client.asking import Asking
from offbook.model.receipt import ForgetCheck, ForgetReceipt, Forgot, KeptReceipt

PATIENCE_SECONDS = 600.0
"""The whole history is looked through, more than once: the answer may be long in coming."""


class AsyncForgetting(Asking):
    async def forget(
        self,
        *,
        entry_ids: Sequence[str] | None = None,
        session_id: str | None = None,
        matching: str | None = None,
        reason: str = "",
        dry_run: bool = False,
        agent_id: str | None = None,
    ) -> ForgetReceipt:
        """Forget messages for good: those named, those of a session, or those that hold a text. With `dry_run` the
        receipt says what that would touch. What this client recorded and did not deliver yet is not forgotten: `flush`
        first."""
        body = self._of(
            session_id, agent_id, entryIds=entry_ids, matching=matching, reason=reason, dryRun=dry_run or None
        )
        return (await self._ask("forget", body, Forgot, extra_seconds=PATIENCE_SECONDS)).receipt

    async def verify_forgotten(
        self, receipt: ForgetReceipt | str, *, matching: str | None = None, agent_id: str | None = None
    ) -> ForgetCheck:
        """Whether the receipt is the provider's own, and whether anything of what it names can still be found. One that
        the provider keeps (`forget_receipts`) can be named by its id; `agent_id` is then whose it is."""
        more = {} if matching is None else {"matching": matching}
        if isinstance(receipt, str):
            body = self._of(None, agent_id, receiptId=receipt, **more)
        else:
            body = {"receipt": msgspec.to_builtins(receipt), **more}
        return await self._ask("forget/verify", body, ForgetCheck, extra_seconds=PATIENCE_SECONDS)

    async def forget_receipts(self, *, agent_id: str | None = None) -> list[KeptReceipt]:
        """What was forgotten so far, the newest first, also by rule."""
        return (await self._ask("forget/verify", self._of(None, agent_id), ForgetCheck)).receipts
