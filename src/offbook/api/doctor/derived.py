"""What was made of the log: is it as the log says. The log itself is sound without it.

A loop over the projections' own checks. What is made good by itself is no fault: only what asks something of a person
is told.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from offbook.api.background import Background
from offbook.api.doctor.finding import FAULTS_SHOWN, Finding
from offbook.log.blobs import BlobFiles
from offbook.log.store import Store
from offbook.model.errors import StoreCorrupt, StoreError
from offbook.model.home import Home
from offbook.model.settings import Settings, without_plain_copies
from offbook.model.types import Fault
from offbook.projections import base
from offbook.projections.session_state import LASTING

OPENED_BY_ONE = frozenset({"search_index"})
"""Whoever opens it may write, and a provider may have it open: `check_index` asks that one."""
PERMISSIONS = "mend the permissions of what it names, or run as its owner"


async def check_derived(store: Store, home: Home, settings: Settings, *, is_current: bool = True) -> Finding:
    """Reads all of it, a page at a time. `is_current`: the file has what projections read; one of before has not."""
    faults = [(fault, LASTING) async for fault in store.derived_faults()]
    unreadable = [fault for fault, _ in faults]
    async for agent_id, found in _found(store, home, settings, await store.agents() if is_current else []):
        is_named = any(one.agent_id == agent_id and one.what.startswith(f"{found.where} ") for one in unreadable)
        if found.mend is not None and not is_named:
            faults.append((Fault(what=found.what, agent_id=agent_id, session_id=found.where), found.mend))
    if not faults:
        return Finding(check="summaries", level="ok", what="all that was made of the log can be read")
    shown = "; ".join(_format(fault) for fault, _ in faults[:FAULTS_SHOWN])
    mends = dict.fromkeys(mend for _, mend in faults)
    mend = LASTING if LASTING in mends else "; ".join(mends)
    return Finding(check="summaries", level="warn", what=f"faults: {len(faults):,}; {shown}", mend=mend)


async def _found(
    store: Store, home: Home, settings: Settings, agents: Sequence[str]
) -> AsyncIterator[tuple[str, base.Finding]]:
    background = Background(
        store,
        BlobFiles(home.blobs),
        without_plain_copies(settings) if home.is_encrypted else settings,
        indexes=home.indexes,
        models=home.models,
        summaries=home.summaries,
        frame_key=b"",
        folder=home.folder,
    )
    try:
        for agent_id in agents:
            for projection in background.projections:
                if projection.name in OPENED_BY_ONE:
                    continue
                try:
                    for found in await projection.check(agent_id):
                        yield agent_id, found
                except StoreCorrupt:
                    continue  # the log's own checks name the place
                except (StoreError, OSError) as error:
                    what = error.detail if isinstance(error, StoreError) else str(error)
                    yield agent_id, base.Finding(projection.name, f"it cannot be looked at: {what}", PERMISSIONS)
    finally:
        await background.close()


def _format(fault: Fault) -> str:
    whose = [f"agent {fault.agent_id}" if fault.agent_id else None, fault.session_id]
    named = ", ".join(each for each in whose if each)
    return f"{fault.what}, of {named}" if named else fault.what
