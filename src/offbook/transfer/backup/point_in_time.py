"""What was unpacked of a backup, cut after a moment, before it is put in its place."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import apsw
import msgspec

from offbook.log.audit_chain import micros, moment
from offbook.log.blobs import BlobFiles
from offbook.log.sqlite import audit_reads, reads
from offbook.log.sqlite.connection import open_reader, store_errors
from offbook.log.sqlite.point_in_time import Cut, cut_after
from offbook.model.errors import InvalidInput, StoreCorrupt
from offbook.model.types import BlobRef
from offbook.transfer.backup.archive import BLOBS, DATABASE, ArchivedAgent, Manifest

_references = msgspec.json.Decoder(list[BlobRef])


def cut_unpacked(unpacked: Path, manifest: Manifest, at: datetime) -> tuple[Manifest, Cut]:
    """Cut the log, let go of the large parts that only what went referred to, and say of it what it holds now.
    Raises InvalidInput where nothing would be left."""
    _refuse_before_everything(unpacked / DATABASE, at)
    cut = cut_after(unpacked / DATABASE, at)
    if not cut.agents:
        return manifest, cut
    with store_errors():
        connection = open_reader(unpacked / DATABASE)
        try:
            agents = [_agent(connection, name) for name in reads.agents(connection)]
            if not agents:
                raise InvalidInput(_nothing_yet(at, "only events of a wrong clock say an earlier time"))
            names = set(_large_parts(connection, BlobFiles(unpacked / BLOBS)))
        finally:
            connection.close()
    for path in (unpacked / BLOBS).rglob("*"):
        if path.is_file() and path.relative_to(unpacked).as_posix() not in names:
            path.unlink()
    missing = [name for name in manifest.missing if name in names]
    return msgspec.structs.replace(manifest, agents=agents, missing=missing), cut


def _refuse_before_everything(database: Path, at: datetime) -> None:
    """An empty memory is nothing to go back to: more likely the year is wrong, or the zone."""
    with store_errors():
        connection = open_reader(database)
        try:
            oldest: int | None = connection.execute("SELECT min(at) FROM audit").get
        finally:
            connection.close()
    if oldest is not None and micros(at) < oldest:
        oldest_moment = moment(oldest).astimezone().isoformat()
        raise InvalidInput(_nothing_yet(at, f"the oldest moment in this backup is {oldest_moment}"))


def _nothing_yet(at: datetime, why: str) -> str:
    when = f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
    return f"on {when} there was nothing yet: {why}. Give --at a later moment; nothing was moved"


def _agent(connection: apsw.Connection, agent_id: str) -> ArchivedAgent:
    counts, head = reads.counts(connection, agent_id), audit_reads.audit_head(connection, agent_id)
    return ArchivedAgent(agent_id=agent_id, messages=counts.messages, sessions=counts.sessions, head=head)


def _large_parts(connection: apsw.Connection, blobs: BlobFiles) -> Iterator[str]:
    for agent_id, references in connection.execute(
        "SELECT a.name, m.blobs FROM messages m JOIN sessions s ON s.session = m.session "
        "JOIN agents a ON a.agent = s.agent WHERE m.blobs IS NOT NULL"
    ):
        try:
            found = _references.decode(str(references))
        except msgspec.DecodeError as error:
            raise StoreCorrupt(
                f"a message of agent {agent_id!r} does not say what its large parts are ({error}): restore the backup "
                "without --at"
            ) from None
        for reference in found:
            yield blobs.path_of(str(agent_id), reference.sha256).relative_to(blobs.root.parent).as_posix()
