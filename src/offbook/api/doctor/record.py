"""The record itself, as one moment of it looks: beside a provider or without one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from offbook.api.doctor.derived import check_derived
from offbook.api.doctor.finding import FAULTS_SHOWN, Finding
from offbook.api.doctor.upkeep import check_backups
from offbook.log.blobs import BlobFiles
from offbook.log.opening import open_snapshot
from offbook.log.sql.schema import latest_version
from offbook.log.store import Store
from offbook.log.verification import LARGE_PART, salvage_told, salvages, verify
from offbook.model.errors import KeyNeeded, SettingsError, StoreCorrupt, StoreError
from offbook.model.home import Home
from offbook.model.settings import Settings
from offbook.model.types import Fault, Scope, now

MESSAGES_LOOKED_AT = 1_000
"""Of each session: the newest ones, whose large parts are compared with their digests."""
SESSIONS_LOOKED_AT = 20
CLOCK_TOLERANCE = timedelta(minutes=5)
SCHEMA_WITH_SUMMARIES = 3
MENDS = (
    "`offbook restore` from a backup has all that was there then; without one, stop the provider, and `offbook doctor "
    "--fix` saves what can be read"
)

Check = Callable[[], Awaitable[Finding]]
Told = Callable[[int], None]


async def check_store(
    home: Home,
    settings: Settings | None = None,
    *,
    is_quick: bool = False,
    progress: Told = lambda steps: None,
) -> list[Finding]:
    """All of the below; a quick look leaves out what takes as long as there is history. `settings`: None where they
    cannot be read."""
    of_store = (settings or Settings()).store
    try:
        store = open_snapshot(home, of_store)
    except KeyNeeded:
        return []  # the check of the encryption tells of it
    except (StoreError, SettingsError) as error:
        if of_store.url is not None:
            return []  # the check of the database tells of it
        return [Finding(check="store", level="fail", what=f"{home.database}: {error.detail}", mend=MENDS)]
    checks: dict[str, Check] = {
        "schema": lambda: check_schema(store),
        "messages": lambda: check_newest(store, now()),
        "capture": lambda: check_capture(store),
        "backups": lambda: check_backups(store, home),
    }
    if not is_quick:
        checks |= {
            "references": lambda: check_large_parts(store, BlobFiles(home.blobs)),
            "summaries": lambda: check_summaries(store, home, settings),
            "integrity": lambda: check_integrity(store),
            "audit": lambda: check_audit(store, BlobFiles(home.blobs), progress),
        }
    try:
        return [await _finding_of(name, check) for name, check in checks.items()]
    finally:
        await store.close()


async def _finding_of(name: str, check: Check) -> Finding:
    try:
        return await check()
    except StoreError as error:
        return Finding(check=name, level="fail", what=error.detail, mend=MENDS)


async def check_schema(store: Store) -> Finding:
    found, newest = await store.schema_version(), latest_version()
    note = f"; the next `offbook serve` brings it to {newest}" if found < newest else ""
    return Finding(check="schema", level="ok", what=f"version {found}{note}")


async def check_capture(store: Store) -> Finding:
    """What clients say they sent against what arrived."""
    for agent_id in await store.agents():
        for capture in await store.captures(agent_id):
            if capture.missing:
                lost = f"{capture.missing:,} of {capture.sent:,} messages of {capture.client}"
                what = f"agent {agent_id}: {lost} never arrived"
                mend = "look for a full or deleted outbox; record them again from the host's transcript"
                return Finding(check="capture", level="warn", what=what, mend=mend)
    return Finding(check="capture", level="ok", what="all that was sent arrived")


async def check_newest(store: Store, at: datetime) -> Finding:
    """When the last message came: proof that turns go through here, and that the clocks agree."""
    newest = None
    for agent_id in await store.agents():
        for session in await store.sessions(agent_id, limit=1):
            newest = session if newest is None or session.last_at > newest.last_at else newest
    if newest is None:
        mend = 'offbook record chat "My cat is called Ada."'
        return Finding(check="messages", level="warn", what="none arrived yet", mend=mend)
    what = f"the newest is of {newest.last_at:%Y-%m-%d %H:%M:%S} UTC (agent {newest.agent_id}, {newest.session_id})"
    if newest.last_at > at + CLOCK_TOLERANCE:
        mend = "set the clock of the machine that sent it, or of this one: recency goes by it"
        return Finding(check="messages", level="warn", what=f"{what}, which is in the future", mend=mend)
    return Finding(check="messages", level="ok", what=what)


async def check_large_parts(store: Store, blobs: BlobFiles) -> Finding:
    """The large parts of the newest messages are there and what they were."""
    looked_at, lost = 0, []
    for agent_id in await store.agents():
        for session in await store.sessions(agent_id, limit=SESSIONS_LOOKED_AT):
            scope = Scope(agent_id=agent_id, session_id=session.session_id)
            after = max(0, session.last_seq - MESSAGES_LOOKED_AT)
            for logged in await store.messages(scope, after_seq=after, limit=MESSAGES_LOOKED_AT):
                for reference in logged.entry.blobs:
                    looked_at += 1
                    try:
                        await blobs.get(agent_id, reference.sha256)
                    except StoreCorrupt as error:
                        lost.append(error.detail)
    if lost:
        what = f"large parts of the newest messages that cannot be read back: {len(lost):,} of {looked_at:,}; {lost[0]}"
        mend = "`offbook restore` from a backup; all else can be read, and says where they are lost"
        return Finding(check="references", level="fail", what=what, mend=mend)
    return Finding(
        check="references",
        level="ok",
        what=f"the large parts of the newest messages are whole ({looked_at:,} looked at)",
    )


async def check_summaries(store: Store, home: Home, settings: Settings | None) -> Finding:
    schema = await store.schema_version()
    if schema < SCHEMA_WITH_SUMMARIES:
        return Finding(check="summaries", level="ok", what="none yet: the next `offbook serve` makes room for them")
    return await check_derived(store, home, settings or Settings(), is_current=schema == latest_version())


async def check_integrity(store: Store) -> Finding:
    faults = [fault async for fault in store.faults()]
    return _of_faults(
        "integrity",
        faults,
        "the file is sound" if store.kind == "sqlite" else "PostgreSQL's own tools look at its files",
    )


async def check_audit(store: Store, blobs: BlobFiles, progress: Told) -> Finding:
    agents = await store.agents()
    faults = [fault for agent in agents async for fault in verify(store, agent, blobs=blobs, progress=progress)]
    told = [f"; {agent}: {salvage_told(event)}" for agent in agents for event in await salvages(store, agent)]
    return _of_faults("audit", faults, f"every chain is whole, and all it vouches for{''.join(told)}")


def _of_faults(check: str, faults: list[Fault], all_well: str) -> Finding:
    if not faults:
        return Finding(check=check, level="ok", what=all_well)
    shown = "; ".join(fault.what for fault in faults[:FAULTS_SHOWN])
    is_of_log = not all(fault.what.startswith(LARGE_PART) for fault in faults)
    mend = f"`offbook audit --verify` names every place; {MENDS if is_of_log else '`offbook restore` from a backup'}"
    return Finding(check=check, level="fail", what=f"faults: {len(faults):,}; {shown}", mend=mend)
