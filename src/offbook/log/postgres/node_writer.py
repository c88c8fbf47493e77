"""The writer of one of several nodes: it writes for the agents that it has, and each transaction makes sure of that."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

import psycopg

from offbook.log.postgres.connection import LOST, PostgresConnection
from offbook.log.postgres.lease import OLDER, end_connections
from offbook.log.postgres.nodes import LOOKS, Nodes, bucket_of
from offbook.log.postgres.writer import PostgresWriter
from offbook.log.sql.connection import Connection
from offbook.log.sql.ledger import Ledger
from offbook.log.sql.rows import AgentRow
from offbook.model.errors import AgentMoved, LogLost, OffbookError, StoreBusy, StoreError, StoreOwned

log = logging.getLogger("offbook.store")

MOVED = "another node answers for this agent now: send it again in a moment"

_HOLD = """
WITH alive AS (SELECT number FROM nodes WHERE number = ? FOR KEY SHARE)
UPDATE node_writes SET writes = writes + 1 FROM alive WHERE node_writes.number = alive.number RETURNING writes
"""
_WRITES = "SELECT writes FROM node_writes WHERE number = ? FOR UPDATE"
_TOUCH = "UPDATE node_writes SET writes = writes WHERE number = ?"
_EPOCHS = "SELECT bucket, epoch FROM buckets WHERE owner = ? AND bucket = ANY(?) FOR SHARE"


class NodeLease:
    """Holds this node's row of `nodes` through each transaction: nobody takes it for dead before that has ended.
    Otherwise as `lease.Lease`, with a counter of its own."""

    def __init__(self, connection: PostgresConnection, nodes: Nodes) -> None:
        self._connection = connection
        self._nodes = nodes
        self.seconds = nodes.seconds
        self.number = nodes.number
        """Under which the transaction writes that is under way."""
        self._committed = self._newest = 0

    def hold(self) -> None:
        if self.number != self._nodes.number:
            self.number, self._committed, self._newest = self._nodes.number, 0, 0
        writes = self._connection.execute(_HOLD, (self.number,)).get
        if writes is None:
            self._refuse_older(self._connection.execute(_WRITES, (self.number,)).get)
            raise StoreBusy("this node was taken for dead and begins anew: send it again in a moment")
        self._refuse_older(writes - 1)
        self._committed = self._newest = writes - 1

    def committing(self) -> None:
        self._newest = self._committed + 1

    def committed(self) -> None:
        self._committed = self._newest

    def is_committed(self) -> bool:
        self._connection.execute("BEGIN")
        try:
            writes = self._connection.execute(_WRITES, (self.number,)).get
            self._refuse_older(writes)
            if writes == self._newest:
                # Waits for the standby where there is one: what ended the connection may have ended that wait.
                self._connection.execute(_TOUCH, (self.number,))
                self._connection.commit()
                return True
        finally:
            if not self._connection.is_lost and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        self._newest = self._committed
        return False

    def _refuse_older(self, writes: int | None) -> None:
        if writes is None or not self._committed <= writes <= self._newest:
            raise LogLost(OLDER)

    def keep_alive(self, other: PostgresConnection) -> None:
        raise AssertionError("the nodes renew by themselves")

    def release(self) -> None:
        self._nodes.leave()


class NodeLedger(Ledger):
    def __init__(self, connection: Connection, nodes: Nodes) -> None:
        super().__init__(connection)
        self._nodes = nodes
        self._held_at_last: object = nodes.held
        self._epochs: dict[int, int] = {}
        """Of the buckets that the transaction writes for."""

    def begin(self) -> None:
        """What was kept of agents goes with any change of whose they are: others may have written since."""
        if self._held_at_last is not self._nodes.held:
            self._held_at_last = self._nodes.held
            self.forget()
        self._epochs.clear()

    def check(self, agent_id: str) -> None:
        self._check_bucket(bucket_of(agent_id))

    def _check_bucket(self, bucket: int) -> None:
        epoch = self._nodes.held.get(bucket)
        if epoch is None:
            raise AgentMoved(MOVED)
        self._epochs[bucket] = epoch

    def _agent(self, name: str) -> AgentRow:
        self.check(name)
        is_known = name in self._agents
        agent = super()._agent(name)
        if not is_known:  # the clock of the node that had it before may be ahead of ours
            newest = self._connection.execute("SELECT max(touched) FROM sessions WHERE agent = ?", (agent.agent,)).get
            self._activity = max(self._activity, newest or 0)
        return agent

    def flush(self) -> None:
        for agent in self._unnoted.values():
            self.check(agent.name)
        super().flush()

    def confirm(self, number: int) -> None:
        """At the transaction's end: every bucket it wrote for is held by this node, at the epoch it was begun with, and
        stays so until it is committed. AgentMoved where one is not."""
        if not self._epochs:
            return
        found = dict(self._connection.execute(_EPOCHS, (number, list(self._epochs))).fetchall())
        if found != self._epochs:
            self._nodes.lose([bucket for bucket, epoch in self._epochs.items() if found.get(bucket) != epoch])
            raise AgentMoved(MOVED)


class NodeWriter(PostgresWriter):
    _is_of_several = True
    _ledger: NodeLedger
    _lease: NodeLease

    def __init__(
        self,
        url: str,
        *,
        holder: str,
        node: str,
        node_url: str,
        head: Path | None,
        lease_seconds: float,
        max_queued: int,
    ) -> None:
        self.nodes = Nodes(url, holder=holder, node=node, node_url=node_url, seconds=lease_seconds)
        super().__init__(
            url,
            holder=holder,
            node=node,
            head=head,
            is_unfinished=False,
            lease_seconds=lease_seconds,
            max_queued=max_queued,
        )

    def _taken(self, holder: str, node: str, seconds: float) -> NodeLease:
        # Of this folder's earlier process, which the lock on the folder proves to be gone.
        end_connections(self._connection, self._name)
        self.nodes.join()
        self.nodes.look()
        return NodeLease(self._connection, self.nodes)

    def _new_ledger(self, connection: Connection) -> NodeLedger:
        return NodeLedger(connection, self.nodes)

    def refuse_lapsed(self) -> None:
        self.refuse_ended()
        if self.nodes.is_lapsed:
            raise StoreBusy(f"the lease was not renewed in time, another node may have it ({LOST})")

    def _hold(self) -> None:
        super()._hold()
        self._ledger.begin()

    def _commit(self) -> None:
        self._ledger.confirm(self._lease.number)
        super()._commit()

    def _patience(self) -> float | None:
        return self.nodes.seconds / LOOKS

    def _between_groups(self) -> None:
        self._held.keep_only(lambda agent_id: bucket_of(agent_id) in self.nodes.held)
        if self.ended is not None or not self.nodes.to_release:
            return
        try:
            with self._errors():
                self.nodes.release(self._connection)
        except StoreError as error:
            log.warning("not released: %s", error.detail, extra={"action": "node.release"})

    def renew(self) -> None:
        """The nodes do, by a connection of their own."""

    def _keep_alive(self) -> None:
        """In a thread of its own."""
        while not self._is_over.wait(self.nodes.seconds / LOOKS) and self.ended is None:
            try:
                self.nodes.look()
            except StoreOwned as error:
                self.ended = error
                log.error("nothing more is written: %s", error.detail, extra={"action": "store.lease"})
            except (psycopg.Error, OffbookError) as error:
                log.warning("the lease is not renewed: %s", type(error).__name__, extra={"action": "store.lease"})
        if self.ended is not None:
            self.nodes.lose(list(self.nodes.held))

    def _close(self) -> None:
        super()._close()
        with suppress(psycopg.Error):
            self.nodes.close()
