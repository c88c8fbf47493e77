"""The verbs of forgetting, for callers that block."""

from __future__ import annotations

from collections.abc import Sequence

from offbook.client.blocking_lessons import BlockingLessons
from offbook.model.receipt import ForgetCheck, ForgetReceipt, KeptReceipt


class BlockingForgetting(BlockingLessons):
    def forget(
        self,
        *,
        entry_ids: Sequence[str] | None = None,
        session_id: str | None = None,
        matching: str | None = None,
        reason: str = "",
        dry_run: bool = False,
        agent_id: str | None = None,
    ) -> ForgetReceipt:
        return self._run(
            self._client.forget(
                entry_ids=entry_ids,
                session_id=session_id,
                matching=matching,
                reason=reason,
                dry_run=dry_run,
                agent_id=agent_id,
            )
        )

    def verify_forgotten(
        self, receipt: ForgetReceipt | str, *, matching: str | None = None, agent_id: str | None = None
    ) -> ForgetCheck:
        return self._run(self._client.verify_forgotten(receipt, matching=matching, agent_id=agent_id))

    def forget_receipts(self, *, agent_id: str | None = None) -> list[KeptReceipt]:
        return self._run(self._client.forget_receipts(agent_id=agent_id))
