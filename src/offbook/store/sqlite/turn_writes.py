"""Writing what turns were prepared with. Part of the ledger: in the writer thread, inside its transaction.

Nothing is kept in memory between two writes, so a rollback leaves nothing behind.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import apsw
import msgspec

from offbook.audit import micros
from offbook.store.sqlite import turn_reads
from offbook.store.sqlite.compression_writes import to_be_read_again
from offbook.store.sqlite.damage import UNREADABLE
from offbook.store.sqlite.rows import AgentRow
from offbook.turns import TurnMemory
from offbook.types import Scope


class TurnLedger:
    """`agent` is the ledger's: the row of an agent, made where there is none."""

    def __init__(self, connection: apsw.Connection, *, agent: Callable[[str], AgentRow]) -> None:
        self._connection = connection
        self._agent = agent

    def keep(self, scope: Scope, memory: TurnMemory, payload: bytes) -> None:
        """The same epoch and text as the one before: that one stays, and with it when it was first given."""
        agent = self._agent(scope.agent_id).agent
        if self._is_kept(agent, scope.session_id, memory):
            return
        self._connection.execute(
            "INSERT INTO turn_memories (agent, session_key, at, payload) VALUES (?,?,?,?)",
            (agent, scope.session_id, micros(memory.at), payload),
        )

    def _is_kept(self, agent: int, session_key: str, memory: TurnMemory) -> bool:
        payload = turn_reads.newest_payload(self._connection, agent, session_key)
        if payload is None:
            return False
        try:
            last = turn_reads.unpacked(payload)
        except UNREADABLE:
            return False  # one that is damaged is no reason to refuse what takes its place
        return (last.epoch, last.text) == (memory.epoch, memory.text)


def packed(memory: TurnMemory) -> bytes:
    """As it is kept. Done before it comes to the writer thread."""
    with to_be_read_again("what a turn was prepared with"):
        data = msgspec.json.encode(memory)
        turn_reads.memory_decoder.decode(data)
    return zlib.compress(data, level=1)  # as contexts are
