"""What goes by rule: messages that are older than an agent keeps them. The clock is not trusted when it leaps."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from offbook.forget.forgetting import Forgetting
from offbook.forget.retention_rule import SETTLED_AFTER, Clock, Look, looked
from offbook.log.store import Store
from offbook.model.errors import StoreError
from offbook.model.receipt import Selection
from offbook.model.settings import Settings
from offbook.model.types import Caller, now
from offbook.projections.base import Batch, Progress

RETENTION = Caller(name="offbook")
"""Who forgets by rule: nobody asked for it."""
RETENTION_EVERY = timedelta(days=1)
"""It reads the whole log."""
CLOCK = "retention-clock"
"""The note of what was seen of the clock."""


class Retention:
    def __init__(self, store: Store, forgetting: Forgetting, settings: Settings) -> None:
        self._store = store
        self._forgetting = forgetting
        self._settings = settings

    async def run(self, batch: Batch) -> Progress:
        """Forget what is older than the agent's rule allows; without a rule nothing."""
        agent_id = batch.agent_id
        days = self._settings.for_agent(agent_id).archive.retention_days
        if days is None:
            return Progress()
        at = now()
        look = await self._look(agent_id, at, days)
        done = (
            Progress()
            if look.before is None
            else await self._retained(agent_id, Selection(before=look.before, at=at), days)
        )
        if look.is_waiting_for is not None:
            raise StoreError(_leapt(look, look.is_waiting_for))
        return done

    async def _retained(self, agent_id: str, selection: Selection, days: int) -> Progress:
        receipt = await self._forgetting.forget(agent_id, selection, reason=f"kept for {days} days", by=RETENTION)
        if receipt.residue:
            where = ", ".join(sorted({one.where for one in receipt.residue})[:5])
            raise StoreError(f"what was forgotten by rule is still in {where}: see whether that can be written")
        return Progress(did={"forgotten": receipt.reached.messages} if receipt.reached.messages else {})

    async def _look(self, agent_id: str, at: datetime, days: int) -> Look:
        """At the clock, and noted: where nobody says anything, that is what there is to know of it."""
        heard = await self._store.newest_audit_events(agent_id, limit=1, until=at - SETTLED_AFTER)
        seen = _clock(await self._store.agent_note(agent_id, CLOCK))
        look = looked(seen, heard[0].at if heard else None, at, days)
        await self._store.set_agent_note(agent_id, CLOCK, msgspec.json.encode(look.clock).decode(), None)
        return look


def _clock(note: str | None) -> Clock | None:
    try:
        return None if note is None else msgspec.json.decode(note, type=Clock)
    except msgspec.MsgspecError:
        return None  # as if it was never looked at


def _leapt(look: Look, until: datetime) -> str:
    says, left, until_then = (f"{each:%Y-%m-%d %H:%M} UTC" for each in (look.clock.last, look.clock.left, until))
    return (
        f"the clock says {says}, and before it said {left}: nothing more is forgotten by rule until it has gone on "
        f"like this for a day ({until_then}). Set it right if it is wrong; where it was wrong before, or the machine "
        "was off for so long, there is nothing to do"
    )
