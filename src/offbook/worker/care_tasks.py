"""What maintenance does for an index and for tiers: a piece at a time, and nothing where nothing has happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from offbook.log.audit_chain import GENESIS
from offbook.log.store import Store
from offbook.model.maintenance import Piece
from offbook.model.settings import Settings
from offbook.model.types import AuditHead
from offbook.worker import ageing
from offbook.worker.indexes import Indexes

if TYPE_CHECKING:
    from offbook.search.index.agent_index import AgentIndex

PIECE_SECONDS = 0.5

log = structlog.get_logger("offbook.maintenance")


class IndexTask:
    """Takes what the index does not have yet, and has embedded what has no vector."""

    def __init__(
        self, store: Store, indexes: Indexes, *, embed: Callable[[str], None], unembedded: Callable[[str], int]
    ) -> None:
        self._store = store
        self._indexes = indexes
        self._embed = embed
        self._unembedded = unembedded
        self._whole_at: dict[str, AuditHead] = {}
        """Where an agent's chain ended when nothing was left to do: an index is not opened to find that again."""

    async def run(self, agent_id: str) -> Piece:
        head = await self._store.audit_head(agent_id)
        if self._whole_at.get(agent_id, GENESIS) == head:
            return Piece()
        before = await self._indexes.change(agent_id, _rows)
        async with self._indexes.following(agent_id, seconds=PIECE_SECONDS, is_patient=True) as (index, has_all):
            indexed = index.rows.count - before
        await self._indexes.commit(agent_id)
        waiting = self._unembedded(agent_id)
        if waiting:
            self._embed(agent_id)
        elif has_all:
            self._whole_at[agent_id] = head
        did = {"indexed": indexed} if indexed else {}
        return Piece(did=did | ({"waiting": waiting} if has_all else {}), is_done=has_all)


class TiersTask:
    """Sends to cold storage what is too much to be hot."""

    def __init__(self, store: Store, indexes: Indexes, settings: Settings) -> None:
        self._store = store
        self._indexes = indexes
        self._settings = settings
        self._settled_at: dict[str, AuditHead] = {}
        """Where an agent's chain ended when nothing was to go: time alone makes nothing hot."""

    async def run(self, agent_id: str) -> Piece:
        head = await self._store.audit_head(agent_id)
        if self._settled_at.get(agent_id, GENESIS) == head:
            return Piece()
        async with self._indexes.following(agent_id, seconds=PIECE_SECONDS, is_patient=True) as (index, has_all):
            if not has_all:
                return Piece(is_done=False)
            moved = await ageing.offload(self._store, agent_id, index, self._settings.for_agent(agent_id))
        if not moved:
            self._settled_at[agent_id] = head
            return Piece()
        log.info("offloaded", action="memory.offload", agent=agent_id, moved=moved)
        return Piece(did={"offloaded": moved})


def _rows(index: AgentIndex) -> int:
    return index.rows.count
