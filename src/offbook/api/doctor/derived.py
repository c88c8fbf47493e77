"""What compression made of the log: can it still be read. The log itself is sound without it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from offbook.api.doctor.finding import FAULTS_SHOWN, Finding
from offbook.context.session_notes import STATE_NOTE, THREAD_NOTE, Thread
from offbook.log.store import Store
from offbook.model.errors import StoreCorrupt
from offbook.model.types import Fault, Scope
from offbook.rules.state.working_state import WorkingState

SESSIONS_AT_A_TIME = 100
LASTING = (
    "`offbook restore` from a backup made before: nothing makes these again, not even `offbook compress`, which leaves "
    "what is there; the messages they were made of are untouched"
)
PASSING = "go on with the session: its next message has what was noted of it made anew from the log"
NOTES: tuple[tuple[str, type, str], ...] = (
    (STATE_NOTE, WorkingState, "the working state"),
    (THREAD_NOTE, Thread, "what its turns are about"),
)


async def check_derived(store: Store) -> Finding:
    """Reads all of it, a page at a time."""
    lasting = [fault async for fault in store.derived_faults()]
    passing: list[Fault] = []
    for agent_id in await store.agents():
        async for fault, is_made_anew in _damaged_states(store, agent_id):
            (passing if is_made_anew else lasting).append(fault)
    faults = [*lasting, *passing]
    if not faults:
        return Finding(check="summaries", level="ok", what="all that was made of the log can be read")
    shown = "; ".join(_told(fault) for fault in faults[:FAULTS_SHOWN])
    mend = LASTING if lasting else PASSING
    return Finding(check="summaries", level="warn", what=f"faults: {len(faults):,}; {shown}", mend=mend)


async def _damaged_states(store: Store, agent_id: str) -> AsyncIterator[tuple[Fault, bool]]:
    """Notes of sessions that cannot be read, and whether the provider makes them anew."""
    after: str | None = None
    while sessions := await store.sessions_after(agent_id, after=after, limit=SESSIONS_AT_A_TIME):
        after = sessions[-1].session_id
        for session_id in [session.session_id for session in sessions]:
            for name, kind, told in NOTES:
                what = f"{told} cannot be read"
                try:
                    note = await store.session_note(Scope(agent_id=agent_id, session_id=session_id), name)
                    if note:
                        msgspec.json.decode(note, type=kind)
                except StoreCorrupt:
                    yield Fault(what=what, agent_id=agent_id, session_id=session_id), False
                except msgspec.DecodeError as error:
                    yield Fault(what=f"{what} ({error})", agent_id=agent_id, session_id=session_id), True


def _told(fault: Fault) -> str:
    whose = [f"agent {fault.agent_id}" if fault.agent_id else None, fault.session_id]
    named = ", ".join(each for each in whose if each)
    return f"{fault.what}, of {named}" if named else fault.what
