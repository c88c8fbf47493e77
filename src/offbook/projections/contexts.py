"""Contexts that stand by: of the sizes that were asked for lately, and slot B where a session nears a swap.

They are kept in memory only, with the version of what they were made from; made again, they are the same.
"""

from __future__ import annotations

import structlog

from offbook.context.context_cache import ContextCache
from offbook.context.reader import SessionReader
from offbook.context.slots import Slots
from offbook.log.store import Store
from offbook.model.errors import OffbookError
from offbook.model.types import Scope
from offbook.projections.base import Batch, Erased, Finding, Progress, Removal

QUIET_SECONDS = 0.3
"""Nothing must have been said for this long: what is made ready is out of date with the next message."""
MOST_POSTPONED = 20
"""Times that getting ready waits for a quiet moment."""

log = structlog.get_logger("offbook.slots")


class ContextProjection:
    name = "contexts"

    def __init__(self, store: Store, reader: SessionReader, cache: ContextCache, slots: Slots) -> None:
        self._store = store
        self._reader = reader
        self._cache = cache
        self._slots = slots
        self._heard: dict[Scope, tuple[int, int]] = {}
        """Where each session that is waited for ended, and how often it was looked at since."""
        self._wanted: set[Scope] = set()

    async def advance(self, batch: Batch) -> Progress:
        if batch.session_id is None:
            return Progress(is_idle=True)
        scope = Scope(agent_id=batch.agent_id, session_id=batch.session_id)
        try:
            return await self._advance(scope)
        except OffbookError as error:
            self._done(scope)
            log.warning("not ready", action="swap.prepare", agent=scope.agent_id, detail=error.detail)
            return Progress(is_idle=True)

    async def forget(self, erased: Erased) -> Removal:
        if not erased.is_dry_run:
            await self.rebuild(erased.agent_id)
        return Removal()

    def let_go(self, agent_id: str) -> None:
        for scope in [scope for scope in {*self._heard, *self._wanted} if scope.agent_id == agent_id]:
            self._done(scope)
        self._reader.let_go(agent_id)
        self._cache.let_go(agent_id)
        self._slots.let_go(agent_id)

    async def rebuild(self, agent_id: str) -> None:
        self._reader.let_go(agent_id)
        self._cache.let_go(agent_id)
        self._slots.let_go(agent_id)

    async def check(self, agent_id: str, erased: Erased | None = None) -> list[Finding]:
        if erased is not None:
            return []
        found: list[Finding] = []
        for scope, last_seq in self._slots.standing_by(agent_id).items():
            session = await self._store.session(scope)
            if session is None or session.last_seq < last_seq:
                found.append(Finding(scope.session_id, "the context that stands by is of another history"))
        return found

    def waiting(self, agent_id: str | None) -> int:
        """Sessions near a swap whose slot B is being made."""
        return sum(agent_id is None or scope.agent_id == agent_id for scope in self._wanted)

    async def _advance(self, scope: Scope) -> Progress:
        session = await self._store.session(scope)
        if session is None:
            self._done(scope)
            return Progress()
        last_seq, looks = self._heard.get(scope, (-1, 0))
        if scope not in self._heard and await self._slots.wants_slot_b(scope, session):
            self._wanted.add(scope)
        is_new = session.last_seq != last_seq and looks < MOST_POSTPONED
        if is_new and not await self._cache.is_short(scope, session):
            self._heard[scope] = (session.last_seq, looks + 1)
            return Progress(is_done=False, again_seconds=QUIET_SECONDS)
        try:
            await self._cache.prepare(scope, session)
            await self._slots.prepare(scope, session)
        finally:
            self._done(scope)
        return Progress()

    def _done(self, scope: Scope) -> None:
        self._heard.pop(scope, None)
        self._wanted.discard(scope)
