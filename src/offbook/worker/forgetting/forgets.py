"""Who is asked to forget: one at a time for an agent, with nobody writing down meanwhile what is about to go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta

import msgspec
import structlog

from offbook.forget.retention import SETTLED_AFTER, Clock, Look, looked
from offbook.log.store import Store
from offbook.model.errors import OffbookError, StoreError
from offbook.model.maintenance import Piece
from offbook.model.receipt import ForgetReceipt
from offbook.model.settings import Settings
from offbook.model.types import Caller, now
from offbook.worker.forgetting.flow import Forgetting
from offbook.worker.forgetting.meant import Meant

RETENTION = Caller(name="offbook")
"""Who forgets by rule: nobody asked for it."""
RETENTION_EVERY = timedelta(days=1)
"""It reads the whole log."""
CLOCK = "retention-clock"
"""The note of what was seen of the clock."""

log = structlog.get_logger("offbook.worker")


class Forgets:
    def __init__(
        self,
        store: Store,
        forgetting: Forgetting,
        settings: Settings,
        *,
        without_models: Callable[[str], AbstractContextManager[None]],
        take_edits: Callable[[str], Awaitable[object]],
        afterwards: Callable[[str], Awaitable[None]],
    ) -> None:
        """`without_models`: meanwhile none writes for the agent, so that whoever is at work is done soon. `take_edits`:
        what a person wrote into pages of the wiki, which would come into the log after it was forgotten there.
        `afterwards`: all of the agent's is looked at again."""
        self._store = store
        self.forgetting = forgetting
        self._settings = settings
        self._without_models = without_models
        self._take_edits = take_edits
        self._afterwards = afterwards
        self._locks: dict[str, asyncio.Lock] = {}
        self._under_way: set[asyncio.Task[ForgetReceipt]] = set()

    @asynccontextmanager
    async def apart(self, agent_id: str) -> AsyncIterator[None]:
        """Not while something of the agent's is being forgotten: it would be written down again."""
        async with self._locks.setdefault(agent_id, asyncio.Lock()):
            yield

    @asynccontextmanager
    async def _first(self, agent_id: str) -> AsyncIterator[None]:
        """As `apart`, without waiting for what a model writes: that may take minutes, and would not be kept."""
        async with AsyncExitStack() as stack:
            with self._without_models(agent_id):
                await stack.enter_async_context(self.apart(agent_id))
            yield

    async def forget(
        self, agent_id: str, meant: Meant, *, reason: str, by: Caller, dry_run: bool = False
    ) -> ForgetReceipt:
        """Goes on where whoever asked has left: half forgotten is not forgotten."""
        task = asyncio.create_task(self._forget(agent_id, meant, reason=reason, by=by, dry_run=dry_run))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def resume(self, agent_id: str) -> None:
        """Finish what a stop broke off."""
        async with self.apart(agent_id):
            await self.forgetting.resume(agent_id)

    async def finish(self, agent_id: str) -> Piece:
        """What could not be finished when it was asked for: a disk was full, a reader in the way."""
        if agent_id not in self.forgetting.unfinished:
            return Piece()
        async with self.apart(agent_id):
            return Piece(did={"finished": await self.forgetting.finish(agent_id)})

    async def retain(self, agent_id: str) -> Piece:
        """Forget what is older than the agent's rule allows; without a rule nothing."""
        days = self._settings.for_agent(agent_id).archive.retention_days
        if days is None:
            return Piece()
        at = now()
        look = await self._look(agent_id, at, days)
        done = (
            Piece() if look.before is None else await self._retained(agent_id, Meant(before=look.before, at=at), days)
        )
        if look.is_waiting_for is not None:
            raise StoreError(_leapt(look, look.is_waiting_for))
        return done

    async def _retained(self, agent_id: str, meant: Meant, days: int) -> Piece:
        receipt = await self.forget(agent_id, meant, reason=f"kept for {days} days", by=RETENTION)
        if receipt.residue:
            where = ", ".join(sorted({one.where for one in receipt.residue})[:5])
            raise StoreError(f"what was forgotten by rule is still in {where}: see whether that can be written")
        return Piece(did={"forgotten": receipt.reached.messages} if receipt.reached.messages else {})

    async def close(self) -> None:
        """What was not done is finished at the next start."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _look(self, agent_id: str, at: datetime, days: int) -> Look:
        """At the clock, and noted: where nobody says anything, that is what there is to know of it."""
        heard = await self._store.newest_audit_events(agent_id, limit=1, until=at - SETTLED_AFTER)
        seen = _clock(await self._store.agent_note(agent_id, CLOCK))
        look = looked(seen, heard[0].at if heard else None, at, days)
        await self._store.set_agent_note(agent_id, CLOCK, msgspec.json.encode(look.clock).decode(), None)
        return look

    async def _forget(self, agent_id: str, meant: Meant, *, reason: str, by: Caller, dry_run: bool) -> ForgetReceipt:
        if dry_run:
            async with self._first(agent_id):
                await self._edits_taken(agent_id)
            return await self.forgetting.forget(agent_id, meant, reason=reason, by=by, dry_run=True)
        async with self._first(agent_id):
            await self.forgetting.finish(agent_id)
            await self._edits_taken(agent_id)
            receipt = await self.forgetting.forget(agent_id, meant, reason=reason, by=by)
        if receipt.signature:
            await self._afterwards(agent_id)
        return receipt

    async def _edits_taken(self, agent_id: str) -> None:
        try:
            await self._take_edits(agent_id)
        except OffbookError as error:
            # No reason to keep anything: what is left in the pages is found there, and told.
            log.warning("edits were not taken", action="forget.edits", agent=agent_id, detail=str(error))


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
