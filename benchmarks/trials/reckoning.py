"""After the harm: is everything that was acknowledged in the log, once, in its place, and the store sound?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from benchmarks.trials.requests import Acknowledgement, Planned, content_of
from offbook.log.blobs import BlobFiles
from offbook.log.opening import open_snapshot
from offbook.log.reading import LogReader
from offbook.log.store import Store
from offbook.log.verification import verify
from offbook.model.home import Home
from offbook.model.settings import load
from offbook.model.types import LoggedMessage, Scope

MESSAGES_AT_A_TIME = 1_000


class Reckoning(msgspec.Struct, frozen=True):
    """`faults` is what matters; the rest says how much was looked at."""

    faults: list[str]
    messages: int
    acknowledged: int
    stored_unacknowledged: int
    """Sent, stored, and the answer lost: what a retry meets as a duplicate."""


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[Store]:
    store = open_snapshot(Home(home), load(home, environ={}).settings.store)
    try:
        yield store
    finally:
        await store.close()


async def logged_ids(home: Path, scope: Scope) -> list[str | None]:
    async with opened(home) as store:
        return [logged.message.id async for logged in _log(store, scope)]


async def all_faults(home: Path) -> list[str]:
    """What the store's own checks find: SQLite's, the audit chains', the messages' hashes, the counts."""
    faults: list[str] = []
    async with opened(home) as store:
        faults += [fault.what async for fault in store.faults()]
        for agent_id in await store.agents():
            faults += [f"{agent_id}: {fault.what} ({fault.seq})" async for fault in verify(store, agent_id)]
            sessions = await store.sessions(agent_id, limit=2**31)
            counted, there = (await store.counts(agent_id)).messages, sum(session.last_seq for session in sessions)
            if counted != there:
                faults.append(f"{agent_id}: {counted} messages counted, {there} there")
    return faults


async def reckon(home: Path, acknowledgements: Iterable[Acknowledgement], sent: Iterable[Planned]) -> Reckoning:
    """`sent` are all requests that were ever sent, whatever became of them."""
    acknowledged = list(acknowledgements)
    faults = await all_faults(home)
    stored = acknowledged_messages = 0
    async with opened(home) as store:
        reader = LogReader(store, BlobFiles(Home(home).blobs))
        planned = _by_scope(sent)
        for scope, requests in planned.items():
            log = [logged async for logged in _log(store, scope)]
            seqs = _seqs(log)
            answered = [each for each in acknowledged if each.planned.scope == scope]
            faults += _log_faults(scope, log)
            faults += _acknowledgement_faults(seqs, answered)
            faults += _order_faults(seqs, requests)
            faults += await _content_faults(reader, scope, log, requests)
            stored += len(log)
            acknowledged_messages += sum(len(each.planned.ids) for each in answered)
        faults += await _capture_faults(store, acknowledged)
    return Reckoning(
        faults=faults,
        messages=stored,
        acknowledged=acknowledged_messages,
        stored_unacknowledged=stored - acknowledged_messages,
    )


async def _log(store: Store, scope: Scope) -> AsyncIterator[LoggedMessage]:
    after = 0
    while page := await store.messages(scope, after_seq=after, limit=MESSAGES_AT_A_TIME):
        for logged in page:
            yield logged
        after = page[-1].seq


def _by_scope(sent: Iterable[Planned]) -> dict[Scope, list[Planned]]:
    by_scope: dict[Scope, list[Planned]] = {}
    for planned in sent:
        by_scope.setdefault(planned.scope, []).append(planned)
    return by_scope


def _seqs(log: Iterable[LoggedMessage]) -> dict[str, int]:
    return {logged.message.id or "": logged.seq for logged in log}


def _log_faults(scope: Scope, log: list[LoggedMessage]) -> list[str]:
    where = f"{scope.agent_id}/{scope.session_id}"
    faults = []
    if [logged.seq for logged in log] != list(range(1, len(log) + 1)):
        faults.append(f"{where}: sequence numbers are not contiguous")
    if len(_seqs(log)) != len(log):
        faults.append(f"{where}: {len(log) - len(_seqs(log))} messages are there twice")
    return faults


def _acknowledgement_faults(seqs: dict[str, int], acknowledged: Iterable[Acknowledgement]) -> list[str]:
    faults = []
    for each in acknowledged:
        found = [seqs[id_] for id_ in each.planned.ids if id_ in seqs]
        if len(found) != len(each.planned.ids):
            faults.append(f"{each.planned.name}: acknowledged, but {len(each.planned.ids) - len(found)} are lost")
        elif (min(found), max(found)) != (each.first_seq, each.last_seq):
            faults.append(
                f"{each.planned.name}: acknowledged as {each.first_seq} to {each.last_seq}, "
                f"stored as {min(found)} to {max(found)}"
            )
        if each.accepted + each.duplicates != len(each.planned.ids):
            faults.append(f"{each.planned.name}: {each.accepted} accepted and {each.duplicates} duplicates")
    return faults


def _order_faults(seqs: dict[str, int], requests: Iterable[Planned]) -> list[str]:
    """What one writer sent one after the other lies in that order; what it sent again stays where it was."""
    reached: dict[str, int] = {}
    faults = []
    firsts = dict.fromkeys((planned.writer, id_) for planned in requests for id_ in planned.ids)
    for writer, id_ in firsts:
        seq = seqs.get(id_)
        if seq is not None and seq <= reached.get(writer, 0):
            faults.append(f"{id_}: stored as {seq}, after {reached[writer]}")
        reached[writer] = max(reached.get(writer, 0), seq or 0)
    return faults


async def _content_faults(
    reader: LogReader, scope: Scope, log: Iterable[LoggedMessage], requests: Iterable[Planned]
) -> list[str]:
    """Every message is what was sent, its large parts back in place; nothing is there that nobody sent."""
    chars = {id_: planned.chars for planned in requests for id_ in planned.ids}
    faults = []
    for logged in log:
        id_ = logged.message.id or ""
        if id_ not in chars:
            faults.append(f"{scope.session_id}: {id_!r} was never sent")
        elif (await reader.whole(scope, logged)).content != content_of(id_, chars[id_]):
            faults.append(f"{id_}: the content is not what was sent")
    return faults


async def _capture_faults(store: Store, acknowledged: list[Acknowledgement]) -> list[str]:
    """What the provider counts per writer is what was acknowledged."""
    through: dict[tuple[str, str], int] = {}
    for each in acknowledged:
        key = each.planned.scope.agent_id, each.planned.writer
        through[key] = max(through.get(key, 0), each.planned.last_ordinal)
    faults = []
    for agent_id in {agent_id for agent_id, _ in through}:
        for capture in await store.captures(agent_id):
            expected = through.get((agent_id, capture.client), 0)
            if capture.missing or capture.received < expected:
                faults.append(f"{capture.client}: {capture.received} received of {expected}, {capture.missing} missing")
    return faults
