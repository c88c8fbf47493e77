"""Several nodes over one database: who is there, and which of them has which agents.

Agents fall into buckets by a hash of their name. A node holds a bucket as long as its own row in `nodes` is there,
which it renews by the database's clock. Who finds one that was not renewed in time removes it: from then on its buckets
are free, and it finds out with its next write or renewal. It comes back under another number, with nothing.

Each statement is a transaction of its own: a node that is stopped between two of them keeps nobody waiting.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple

from offbook.log.postgres.connection import PostgresConnection
from offbook.log.postgres.lease import NODES, Lease, end_connections, shown, writer_name
from offbook.log.store import ChangeKind, Versions
from offbook.model.version import VERSION

log = logging.getLogger("offbook.store")

BUCKETS = 1024
"""As the migration makes them. With more, nodes differ less in what they have; all are read with every look."""
LOOKS = 10
"""In the time that a lease lasts."""
NOBODY = 0

_JOIN = """
INSERT INTO nodes (node, holder, url, version, until)
VALUES (?, ?, ?, ?, clock_timestamp() + make_interval(secs => ?)) RETURNING number
"""
_RENEW = "UPDATE nodes SET until = clock_timestamp() + make_interval(secs => ?) WHERE number = ?"
_RENEW_STORE = """
UPDATE lease SET until = clock_timestamp() + make_interval(secs => ?) WHERE lease = (
    SELECT lease FROM lease WHERE lease = 'store' AND node = ? FOR UPDATE SKIP LOCKED
)
"""
_TAKE = """
UPDATE buckets SET owner = ?, epoch = epoch + 1 WHERE bucket IN (
    SELECT bucket FROM buckets WHERE bucket = ANY(?) AND owner = ANY(?) FOR UPDATE SKIP LOCKED
) RETURNING bucket, epoch
"""
_RELEASE = """
UPDATE buckets SET owner = 0, epoch = epoch + 1
WHERE owner = ? AND (bucket, epoch) IN (SELECT * FROM unnest(?::bigint[], ?::bigint[]))
"""
_LEAVE = (
    "UPDATE buckets SET owner = 0, epoch = epoch + 1 WHERE owner = ?",
    "DELETE FROM nodes WHERE number = ?",
    "DELETE FROM node_writes WHERE number = ?",
)
_SHOW = """
SELECT number, node, holder, url, version, extract(epoch FROM until - clock_timestamp())::float8, started_at,
       (SELECT count(*) FROM buckets WHERE owner = number)
FROM nodes ORDER BY number
"""


class NodeRow(NamedTuple):
    number: int
    node: str
    holder: str
    url: str
    version: str
    seconds_left: float
    """Of its lease, by the database's clock. Below 0 it may be removed."""
    started_at: datetime
    buckets: int


def shown_nodes(connection: PostgresConnection) -> list[NodeRow]:
    return [NodeRow(*row) for row in connection.execute(_SHOW)]


def bucket_of(agent_id: str) -> int:
    return int.from_bytes(blake2b(agent_id.encode(), digest_size=8).digest()) % BUCKETS


def proposed(bucket: int, nodes: Iterable[str]) -> str:
    """Which of the nodes is to have the bucket: the one whose hash with it is highest. When one comes or goes, only
    what that one has moves."""
    return max(nodes, key=lambda node: blake2b(f"{bucket} {node}".encode(), digest_size=8).digest())


class Nodes:
    """This node among the others. See `log.owners.Owners`."""

    def __init__(self, url: str, *, holder: str, node: str, node_url: str, seconds: float) -> None:
        self._database = url
        self._holder, self._node, self._node_url = holder, node, node_url
        self.seconds = seconds
        self.when_lost: Callable[[Collection[int]], None] | None = None
        self.when_taken: Callable[[], None] | None = None
        self.number = NOBODY
        self.held: Mapping[int, int] = {}
        """Buckets that are ours, and their epochs. Never changed: another takes its place."""
        self.to_release: Mapping[int, int] = {}
        """Not ours any more, once the writer has said so between two transactions; with their epochs."""
        self._renewed_at = 0.0
        self._owners: Mapping[int, int] = {}
        self._urls: Mapping[int, str] = {}
        self._proposals: tuple[frozenset[str], frozenset[int]] = (frozenset(), frozenset())
        self._kept: set[int] = set()
        """Buckets that were lost and are not let go of yet."""
        self._noting = threading.Lock()
        self._connection: PostgresConnection | None = None

    # ── what is asked of it, in any thread ──

    @property
    def is_lapsed(self) -> bool:
        return time.monotonic() - self._renewed_at > self.seconds

    def bucket(self, agent_id: str) -> int:
        return bucket_of(agent_id)

    def epoch(self, agent_id: str) -> int | None:
        return None if self.is_lapsed else self.held.get(bucket_of(agent_id))

    def url(self, agent_id: str) -> str | None:
        owner = self._owners.get(bucket_of(agent_id), NOBODY)
        return self._urls.get(owner) if owner != self.number else None

    def let_go(self, buckets: Collection[int]) -> None:
        with self._noting:
            self._kept.difference_update(buckets)

    # ── what keeps it ──

    def join(self) -> None:
        """Under a new number, with nothing. StoreOwned where one provider alone has the database."""
        self.lose(self.held)
        connection = self._connected()
        began = time.monotonic()
        connection.execute("BEGIN")
        try:
            before = connection.execute("SELECT node FROM lease WHERE lease = 'store' FOR UPDATE").get
            if before == self._node:  # this folder's, before it was one of several
                connection.execute("UPDATE lease SET until = to_timestamp(0) WHERE node = ?", (self._node,))
            Lease(connection, holder="several nodes", node=NODES, seconds=self.seconds)
            if before != NODES:
                connection.execute("SELECT number_by_sequence()").fetchall()
            connection.execute("DELETE FROM nodes WHERE node = ?", (self._node,))
            asked = (self._node, self._holder, self._node_url, VERSION, self.seconds)
            number = connection.execute(_JOIN, asked).get
            connection.execute("INSERT INTO node_writes (number) VALUES (?)", (number,))
            connection.commit()
        except BaseException:
            if not connection.is_lost:
                connection.execute("ROLLBACK")
            raise
        self.number, self._renewed_at = number, began
        log.info("joined as node %d", number, extra={"action": "node.join"})

    def look(self) -> None:
        """Renew, remove those that did not, take what is to be ours, give up what is to be another's."""
        connection = self._connected()
        began = time.monotonic()
        connection.execute(_RENEW, (self.seconds, self.number))
        if not connection.changes():
            log.warning("taken for dead: all is let go of", extra={"action": "node.lost"})
            self.join()
        else:
            self._renewed_at = began
        self._renew_store(connection)
        nodes = {row.number: row for row in shown_nodes(connection)}
        for row in [row for row in nodes.values() if row.seconds_left < 0 and row.number != self.number]:
            if self._is_removed(connection, row):
                del nodes[row.number]
        rows = {bucket: (owner, epoch) for bucket, owner, epoch in connection.execute("SELECT * FROM buckets")}
        self._urls = {number: row.url for number, row in nodes.items()}
        self._owners = {bucket: owner for bucket, (owner, _) in rows.items()}
        self.lose([bucket for bucket, epoch in self.held.items() if rows.get(bucket) != (self.number, epoch)])
        wanted = self._wanted(frozenset(row.node for row in nodes.values()) | {self._node})
        self.lose([bucket for bucket in self.held if bucket not in wanted])
        mine = {bucket: epoch for bucket, (owner, epoch) in rows.items() if owner == self.number}
        self.to_release = {bucket: epoch for bucket, epoch in mine.items() if bucket not in self.held}
        with self._noting:
            free = [bucket for bucket in wanted - mine.keys() - self._kept if rows[bucket][0] not in nodes]
        self._take(connection, free, sorted({rows[bucket][0] for bucket in free}))

    def _take(self, connection: PostgresConnection, free: Collection[int], owners: Collection[int]) -> None:
        """`owners`: those the buckets were seen with, which are gone for good. Whoever took one since has another."""
        if free:
            taken: dict[int, int] = dict(connection.execute(_TAKE, (self.number, list(free), list(owners))).fetchall())
            with self._noting:
                self.held = {**self.held, **taken}
            self._owners = {**self._owners, **dict.fromkeys(taken, self.number)}
            log.info("took %d buckets, has %d", len(taken), len(self.held), extra={"action": "node.take"})
            if self.when_taken is not None:
                self.when_taken()

    def release(self, connection: PostgresConnection) -> None:
        """In the writer's thread, between two transactions: none of its own is under way for them."""
        buckets = self.to_release
        if buckets:
            connection.execute(_RELEASE, (self.number, list(buckets), list(buckets.values())))
            self.to_release = {}

    def leave(self) -> None:
        """For good: others need not wait for the lease to lapse."""
        connection = self._connected()
        for statement in _LEAVE:
            connection.execute(statement, (self.number,))
        connection.execute(
            "UPDATE lease SET until = to_timestamp(0) WHERE node = ? AND NOT EXISTS (SELECT 1 FROM nodes)", (NODES,)
        )
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    # ── how ──

    def _connected(self) -> PostgresConnection:
        if self._connection is None or self._connection.is_lost:
            self._connection = PostgresConnection(self._database, name="offbook lease")
            # What keeps it from others for some seconds need not outlast a failover.
            self._connection.execute("SET synchronous_commit = local")
        return self._connection

    def _renew_store(self, connection: PostgresConnection) -> None:
        """That no provider which is alone takes it. Skipped where another node is about it."""
        connection.execute(_RENEW_STORE, (self.seconds, NODES))
        if not connection.changes() and shown(connection).node != NODES:
            self.join()

    def _is_removed(self, connection: PostgresConnection, row: NodeRow) -> bool:
        """Not where it was renewed meanwhile."""
        # One that was stopped in the middle of a transaction keeps its row from being removed, and would for good.
        end_connections(connection, writer_name(row.node))
        connection.execute("DELETE FROM nodes WHERE number = ? AND until < clock_timestamp()", (row.number,))
        if not connection.changes():
            return False
        log.warning("%s did not renew its lease: removed", row.holder, extra={"action": "node.remove"})
        return True

    def _wanted(self, nodes: frozenset[str]) -> frozenset[int]:
        known, wanted = self._proposals
        if known != nodes:
            wanted = frozenset(bucket for bucket in range(BUCKETS) if proposed(bucket, nodes) == self._node)
            self._proposals = nodes, wanted
        return wanted

    def lose(self, buckets: Collection[int]) -> None:
        """They are another's, or are to be."""
        with self._noting:
            lost = frozenset(buckets) & self.held.keys()
            self._kept.update(lost if self.when_lost is not None else ())
            self.held = {bucket: epoch for bucket, epoch in self.held.items() if bucket not in lost}
        if not lost:
            return
        log.info("gave up %d buckets, has %d", len(lost), len(self.held), extra={"action": "node.lose"})
        if self.when_lost is not None:
            self.when_lost(lost)


class NodeVersions(Versions):
    """What was kept in memory while a bucket was held before is of another version: others have written since."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__()
        self._nodes = nodes

    def of(self, agent_id: str, *kinds: ChangeKind) -> tuple[int, ...]:
        # Twice: whether a count is even says whether an erasure is under way.
        epoch = 2 * self._nodes.held.get(bucket_of(agent_id), 0)
        return tuple(count + epoch for count in super().of(agent_id, *kinds))
