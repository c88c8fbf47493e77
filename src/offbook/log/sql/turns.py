"""Reading what turns were prepared with.

By the key of a session rather than its number: a turn may be prepared before anything was said in its session.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from datetime import datetime

import msgspec

from offbook.log.audit_chain import micros
from offbook.log.sql.connection import UNREADABLE, Connection, unreadable
from offbook.log.sql.recall_reads import agent_number
from offbook.log.sql.row_ids import LARGEST_NUMBER
from offbook.log.sql.rows import AgentRow
from offbook.log.sql.summary_reads import inflated
from offbook.log.sql.summary_writes import to_be_read_again
from offbook.model.errors import StoreCorrupt
from offbook.model.turn import TurnMemory
from offbook.model.types import Scope

memory_decoder = msgspec.json.Decoder(TurnMemory)

_NEWEST = """
SELECT payload FROM turn_memories WHERE memory = (
    SELECT memory FROM turn_memories WHERE agent = ? AND session_key = ? AND at <= ? ORDER BY memory DESC LIMIT 1
)
"""


def turn_memory(connection: Connection, scope: Scope, at: datetime | None) -> TurnMemory | None:
    payload = newest_payload(connection, agent_number(connection, scope.agent_id), scope.session_id, at)
    try:
        return None if payload is None else unpacked(payload)
    except UNREADABLE as error:
        # The audit chain knows nothing of it, so it is the doctor who finds the others.
        what = f"what turns of session {scope.session_id!r} of agent {scope.agent_id!r} were prepared with"
        raise StoreCorrupt(f"{unreadable(what, error)}: `offbook doctor` finds what else is damaged") from error


def newest_payload(
    connection: Connection, agent: int | None, session_key: str, at: datetime | None = None
) -> bytes | None:
    """The newest is the one kept last, whatever the clock says."""
    through = LARGEST_NUMBER if at is None else micros(at)
    found: bytes | None = connection.execute(_NEWEST, (agent, session_key, through)).get
    return found


def unpacked(payload: bytes) -> TurnMemory:
    return memory_decoder.decode(inflated(payload))


# ── Writing what turns were prepared with. Part of the ledger: in the writer thread, inside it ──


class TurnLedger:
    """`agent` is the ledger's: the row of an agent, made where there is none."""

    def __init__(self, connection: Connection, *, agent: Callable[[str], AgentRow]) -> None:
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
        payload = newest_payload(self._connection, agent, session_key)
        if payload is None:
            return False
        try:
            last = unpacked(payload)
        except UNREADABLE:
            return False  # one that is damaged is no reason to refuse what takes its place
        return (last.epoch, last.text) == (memory.epoch, memory.text)


def packed(memory: TurnMemory) -> bytes:
    """As it is kept. Done before it comes to the writer thread."""
    with to_be_read_again("what a turn was prepared with"):
        data = msgspec.json.encode(memory)
        memory_decoder.decode(data)
    return zlib.compress(data, level=1)  # as contexts are
