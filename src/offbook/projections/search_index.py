"""The search index of each agent as a projection: takes what the log has and the index has not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from offbook.log.audit_chain import GENESIS
from offbook.log.store import Store
from offbook.model.types import AuditHead
from offbook.projections.base import Batch, Erased, Finding, Progress, Removal
from offbook.projections.indexes import Indexes
from offbook.projections.log_pages import living_messages
from offbook.search.index.text import is_indexed

if TYPE_CHECKING:
    from offbook.search.index.agent_index import AgentIndex

FOLLOW_SECONDS = 0.5
"""For who asks what lies where."""
FORGET_FOLLOW_SECONDS = 5.0
REINDEX = "`offbook reindex` makes the index anew"

log = structlog.get_logger("offbook.index")


class SearchIndex:
    name = "search_index"

    def __init__(self, store: Store, indexes: Indexes, *, unembedded: Callable[[str], int]) -> None:
        """`unembedded`: how many of an agent's messages wait for a vector."""
        self._store = store
        self._indexes = indexes
        self._unembedded = unembedded
        self._whole_at: dict[str, AuditHead] = {}
        """Where an agent's chain ended when nothing was left to do: an index is not opened to find that again."""
        self._met: set[str] = set()
        self._taken: dict[str, int] = {}
        """How many rows an agent's index had at the last look: who asks takes some, too, and followers are to know."""

    async def advance(self, batch: Batch) -> Progress:
        agent_id = batch.agent_id
        head = await self._store.audit_head(agent_id)
        if self._whole_at.get(agent_id, GENESIS) == head:
            await self._indexes.commit(agent_id)
            return Progress(is_idle=True, again_seconds=self._indexes.next_look(agent_id))
        before = self._taken.get(agent_id)
        before = await self._rows(agent_id) if before is None else before
        async with self._indexes.following(agent_id, seconds=batch.seconds, is_patient=True) as (index, has_all):
            indexed = index.rows.count - before
            self._taken[agent_id] = index.rows.count
        await self._indexes.commit(agent_id)
        did = {"indexed": indexed} if indexed > 0 else {}
        if not has_all:
            return Progress(did=did, is_done=False)
        waiting = self._unembedded(agent_id)
        if not waiting:
            self._whole_at[agent_id] = head
        # Also at the first look: of vectors, something may have been left undone by a stop.
        is_idle = not did and not waiting and agent_id in self._met
        self._met.add(agent_id)
        again_seconds = self._indexes.next_look(agent_id)
        return Progress(did=did | {"waiting": waiting}, again_seconds=again_seconds, is_idle=is_idle)

    def let_go(self, agent_id: str) -> None:
        self._whole_at.pop(agent_id, None)
        self._met.discard(agent_id)
        self._taken.pop(agent_id, None)

    async def forget(self, erased: Erased) -> Removal:
        """Its files hold words in many places, so it is made again; who asks meanwhile finds what is taken by then."""
        agent_id = erased.agent_id
        if erased.is_dry_run:
            return Removal({"index_entries": self._rows_at(self._indexes.peek(agent_id), erased)})
        if not erased.spans:
            return Removal()
        await self._indexes.rebuild(agent_id, keeps_flags=True)
        has_all = False
        while not has_all:
            async with self._indexes.following(agent_id, seconds=FORGET_FOLLOW_SECONDS, is_patient=True) as (
                _,
                has_all,
            ):
                pass
        await self._indexes.commit(agent_id, at_once=True)
        return Removal()

    async def rebuild(self, agent_id: str) -> None:
        self._whole_at.pop(agent_id, None)
        await self._indexes.rebuild(agent_id)

    async def check(self, agent_id: str, erased: Erased | None = None) -> list[Finding]:
        async with self._indexes.following(agent_id, seconds=FORGET_FOLLOW_SECONDS) as (index, has_all):
            if erased is not None:
                return [Finding("the search index", "an entry")] * self._rows_at(index, erased)
            if not has_all:
                trouble = self._indexes.trouble(agent_id)
                return [Finding("the search index", trouble or "messages wait to be indexed")]
            indexed = set(index.rows.view()["place"].tolist())
        should_be = {one.place async for one in living_messages(self._store, agent_id) if is_indexed(one)}
        found = [Finding("the search index", f"{len(should_be - indexed):,} messages are missing", REINDEX)]
        found += [Finding("the search index", f"{len(indexed - should_be):,} entries are of no message", REINDEX)]
        return [one for one in found if not one.what.startswith("0 ")]

    # ── what verbs ask of it ──

    async def matching(self, agent_id: str, keyword: str | None, session: int | None, limit: int) -> list[int]:
        """Where the messages lie that have the keyword's words, or all of a session: the newest of them. What was
        acknowledged is waited for, as for a forget: what is pinned or not must not hang on how busy the machine is."""
        from offbook.search.candidates import matching_rows

        async with self._indexes.following(agent_id, seconds=FORGET_FOLLOW_SECONDS, is_patient=True) as (index, _):
            rows = await asyncio.to_thread(matching_rows, index, keyword, session, limit)
            return [int(place) for place in index.rows.view()["place"][rows]]

    async def newest(self, agent_id: str, limit: int) -> list[int]:
        """Where the newest messages lie, newest first."""
        async with self._indexes.following(agent_id, seconds=FOLLOW_SECONDS) as (index, _):
            return [int(place) for place in index.rows.view()["place"][-limit:][::-1]]

    # ── how ──

    async def _rows(self, agent_id: str) -> int:
        index = self._indexes.peek(agent_id)
        return index.rows.count if index is not None else await self._indexes.change(agent_id, _count)

    def _rows_at(self, index: AgentIndex | None, erased: Erased) -> int:
        places = list(erased.places)
        return int((index.rows.find(places) >= 0).sum()) if index is not None and places else 0


def _count(index: AgentIndex) -> int:
    return index.rows.count
