"""Reading what turns were prepared with.

By the key of a session rather than its number: a turn may be prepared before anything was said in its session.
"""

from __future__ import annotations

from datetime import datetime

import apsw
import msgspec

from offbook.audit import micros
from offbook.errors import StoreCorrupt
from offbook.store.sqlite.compression_reads import inflated
from offbook.store.sqlite.damage import UNREADABLE, unreadable
from offbook.store.sqlite.places import LARGEST_NUMBER
from offbook.store.sqlite.recall_reads import agent_number
from offbook.turns import TurnMemory
from offbook.types import Scope

memory_decoder = msgspec.json.Decoder(TurnMemory)

_NEWEST = """
SELECT payload FROM turn_memories WHERE memory = (
    SELECT memory FROM turn_memories WHERE agent = ? AND session_key = ? AND at <= ? ORDER BY memory DESC LIMIT 1
)
"""


def turn_memory(connection: apsw.Connection, scope: Scope, at: datetime | None) -> TurnMemory | None:
    payload = newest_payload(connection, agent_number(connection, scope.agent_id), scope.session_id, at)
    try:
        return None if payload is None else unpacked(payload)
    except UNREADABLE as error:
        # The audit chain knows nothing of it, so it is the doctor who finds the others.
        what = f"what turns of session {scope.session_id!r} of agent {scope.agent_id!r} were prepared with"
        raise StoreCorrupt(f"{unreadable(what, error)}: `offbook doctor` finds what else is damaged") from error


def newest_payload(
    connection: apsw.Connection, agent: int | None, session_key: str, at: datetime | None = None
) -> bytes | None:
    """The newest is the one kept last, whatever the clock says."""
    through = LARGEST_NUMBER if at is None else micros(at)
    found: bytes | None = connection.execute(_NEWEST, (agent, session_key, through)).get
    return found


def unpacked(payload: bytes) -> TurnMemory:
    return memory_decoder.decode(inflated(payload))
