"""Who may write. A row of the database, by the database's clock: taken for some seconds, renewed with every write.

`epoch` rises each time it changes hands, and every transaction that writes holds the row with its own: one that was
overtaken finds another epoch and writes nothing more, however long it was stopped in between.

`writes` counts those transactions. Whoever holds the lease knows which number comes next: any other one is an older
copy of the database, as after a failover to a standby that had not all of it.

A second row, `alive`, is renewed by another connection while a long transaction holds the first.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from offbook.log.postgres.connection import PostgresConnection
from offbook.log.postgres.dialect import SCHEMA
from offbook.model.errors import LogLost, StoreBusy, StoreOwned

LEASE_SECONDS = 15.0
NODES = "nodes"
"""Who holds it where several nodes write, all of them together: `nodes` has the rest."""
NEVER = datetime(1970, 1, 1, tzinfo=UTC)

_TAKE = """
UPDATE lease SET holder = ?, node = ?, epoch = epoch + 1, until = clock_timestamp() + make_interval(secs => ?)
WHERE lease = 'store' AND (until < clock_timestamp() OR node = ?)
  AND (node = ? OR NOT EXISTS (SELECT 1 FROM lease alive WHERE alive.lease = 'alive' AND alive.epoch = lease.epoch
                               AND alive.until >= clock_timestamp()))
RETURNING epoch, writes
"""
_HOLD = """
UPDATE lease SET writes = writes + 1, until = clock_timestamp() + make_interval(secs => ?)
WHERE lease = 'store' AND epoch = ? AND node = ? RETURNING writes
"""
_RELEASE = "UPDATE lease SET until = to_timestamp(0) WHERE epoch = ?"
_SHOW = """
SELECT holder, node, ends, ends > clock_timestamp(), epoch FROM (
    SELECT store.*, greatest(store.until, alive.until) AS ends FROM lease store
    LEFT JOIN lease alive ON alive.lease = 'alive' AND alive.epoch = store.epoch WHERE store.lease = 'store'
) AS held
"""
_KEEP_ALIVE = """
INSERT INTO lease (lease, holder, node, epoch, until)
SELECT 'alive', holder, node, epoch, clock_timestamp() + make_interval(secs => ?) FROM lease
WHERE lease = 'store' AND epoch = ? AND node = ?
ON CONFLICT (lease) DO UPDATE SET holder = excluded.holder, node = excluded.node, epoch = excluded.epoch,
    until = excluded.until
"""
_END = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = ? AND datname = current_database() AND pid <> pg_backend_pid()
"""
_WRITES = "SELECT writes, epoch, node FROM lease WHERE lease = 'store' FOR UPDATE"
_RENEW = "UPDATE lease SET until = clock_timestamp() + make_interval(secs => ?) WHERE lease = 'store'"

OLDER = (
    "the database is an older copy of itself, as after a failover to a standby that had not all of it: this provider "
    "writes nothing more; connect it to the newest copy and start it again, it says then whether anything is lost"
)


class Held(NamedTuple):
    """`is_held`: now, by the database's clock."""

    holder: str
    node: str
    until: datetime
    is_held: bool
    epoch: int


class Lease:
    def __init__(self, connection: PostgresConnection, *, holder: str, node: str, seconds: float) -> None:
        """Takes it. StoreOwned where another node holds it; the same `node` takes it from its own earlier process: the
        lock on its data folder proves that one to be gone."""
        self._connection = connection
        self.seconds = seconds
        held = shown(connection)
        row = None
        if held.node == node or not held.is_held:
            # One that was stopped in the middle of a transaction holds the row, and would for good.
            end_connections(connection, writer_name(held.node))
            row = connection.execute(_TAKE, (holder, node, float(seconds), node, node)).fetchone()
        if row is None:
            raise _owned(shown(connection))
        self.epoch, self._committed = row
        if node != NODES:
            _evict_nodes(connection)
        self._node = node
        self._newest = self._committed
        """The number of the last transaction that is known to be there, and of the last that may be."""

    def hold(self) -> None:
        """At the beginning of a transaction: it is ours until that ends. StoreOwned where it is not, LogLost where the
        database is an older copy."""
        number = self._connection.execute(_HOLD, (self.seconds, self.epoch, self._node)).get
        if number is None:
            held = shown(self._connection)
            if held.epoch < self.epoch:
                raise LogLost(OLDER)
            raise StoreOwned(f"{held.holder} holds this database now: this provider writes nothing more; stop it")
        self._refuse_older(number - 1)
        self._committed = self._newest = number - 1

    def committing(self) -> None:
        """From now on until `committed` the transaction may be there."""
        self._newest = self._committed + 1

    def committed(self) -> None:
        self._committed = self._newest

    def is_committed(self) -> bool:
        """Whether the transaction whose commit was not answered is there. Waits for it where it is still under way, and
        for the standby where there is one: what ended the connection may have ended that wait."""
        self._connection.execute("BEGIN")
        try:
            writes, epoch, node = self._connection.execute(_WRITES).fetchone() or (0, 0, "")
            if epoch < self.epoch:
                raise LogLost(OLDER)
            if (epoch, node) != (self.epoch, self._node):
                raise StoreBusy("the database changed hands before it answered: send it again")
            self._refuse_older(writes)
            if writes == self._newest:
                self._connection.execute(_RENEW, (self.seconds,))
                self._connection.commit()
                return True
        finally:
            if not self._connection.is_lost and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        self._newest = self._committed
        return False

    def _refuse_older(self, writes: int) -> None:
        if not self._committed <= writes <= self._newest:
            raise LogLost(OLDER)

    def keep_alive(self, other: PostgresConnection) -> None:
        """By another connection, while ours is at work."""
        other.execute(_KEEP_ALIVE, (self.seconds, self.epoch, self._node))

    def release(self) -> None:
        self._connection.execute(_RELEASE, (self.epoch,))


def writer_name(node: str) -> str:
    """What the database shows of the connection that writes."""
    return f"offbook writer {node}"[:63]


def end_connections(connection: PostgresConnection, name: str) -> None:
    connection.execute(_END, (name,)).fetchall()


def shown(connection: PostgresConnection) -> Held:
    return Held(*connection.execute(_SHOW).fetchone() or ("nobody", "", NEVER, False, 0))


def refuse_held(connection: PostgresConnection, *nodes: str) -> None:
    """StoreOwned where another than these holds it. Before anything is changed, also the tables."""
    if connection.execute("SELECT to_regclass(?)::text", (f"{SCHEMA}.lease",)).get is not None:
        held = shown(connection)
        if held.is_held and held.node not in nodes:
            raise _owned(held)


def _evict_nodes(connection: PostgresConnection) -> None:
    """Their lease has lapsed: one that wakes up finds nothing that is its own."""
    for (node,) in connection.execute("SELECT node FROM nodes").fetchall():
        end_connections(connection, writer_name(node))
    connection.execute("DELETE FROM nodes")
    connection.execute("UPDATE buckets SET owner = 0, epoch = epoch + 1 WHERE owner <> 0")


def _owned(held: Held) -> StoreOwned:
    return StoreOwned(
        f"{held.holder} holds this database until {held.until:%Y-%m-%d %H:%M:%S} UTC, longer while it runs: "
        "stop it, or wait until then where it is gone"
    )
