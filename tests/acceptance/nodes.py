"""Several real nodes over one database, writers that never give up, and what must be true of the log afterwards."""

from __future__ import annotations

import http.client
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import psycopg

from offbook.log.postgres.store import PostgresStore
from offbook.log.verification import verify
from offbook.model.types import Scope
from tests.acceptance.daemon import UNHURRIED, WITHOUT_MODEL, Daemon, Reply, message
from tests.ports import free_port
from tests.processes import Offbook

LEASE_SECONDS = 4.0
ANSWER_SECONDS = 3.0
"""A node that is stopped takes connections and answers nothing."""
PATIENCE_SECONDS = 120.0
SESSION = "chat"


class Ack(NamedTuple):
    """A message that was acknowledged. `epoch`: of its agent's bucket, where who wrote it knew."""

    agent_id: str
    id: str
    epoch: int | None = None


class Node:
    def __init__(self, folder: Path, url: str, number: int) -> None:
        self.home = folder / f"node{number}"
        self.port = free_port()
        self._database = url
        self._log = folder / f"node{number}.log"
        self.daemon: Daemon | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OFFBOOK_")}
        return inherited | {
            "OFFBOOK_HOME": str(self.home),
            "OFFBOOK_PORT": str(self.port),
            "OFFBOOK_STORE_URL": self._database,
            "OFFBOOK_STORE_NODE_URL": self.url,
            "OFFBOOK_STORE_LEASE": f"{LEASE_SECONDS:g}s",
            **UNHURRIED,
            **WITHOUT_MODEL,
        }

    def start(self) -> None:
        with self._log.open("ab") as output:
            process = Offbook("serve", env=self.environ, stdout=output, stderr=output)
        self.daemon = Daemon(self.home, self.port, process, self._log)

    @property
    def running(self) -> Daemon:
        assert self.daemon is not None
        return self.daemon

    def send(self, signal_number: signal.Signals) -> None:
        self.running.process.send_signal(signal_number)

    def kill(self) -> None:
        self.running.process.kill()
        self.running.process.wait()

    def ask(self, verb: str, **fields: Any) -> Reply | None:
        """None where no answer comes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS)
        try:
            headers = {"authorization": f"Bearer {self.running.token}"}
            connection.request("POST", f"/v1/{verb}", msgspec.json.encode(fields), headers)
            response = connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()


class Cluster:
    def __init__(self, url: str, nodes: int) -> None:
        self.url = url
        self._folder = Path(tempfile.mkdtemp(prefix="ob"))
        self.nodes = [Node(self._folder, url, number) for number in range(nodes)]

    def __enter__(self) -> Cluster:
        """All at once."""
        try:
            for node in self.nodes:
                node.start()
            for node in self.nodes:
                node.running.wait_until_ready()
            self.settle()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            if node.daemon is not None and node.daemon.process.poll() is None:
                node.send(signal.SIGCONT)
                node.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def owners(self) -> dict[int, str]:
        """The URL of the node that has each bucket."""
        with psycopg.connect(self.url) as connection:
            rows = connection.execute(
                "SELECT bucket, url FROM offbook.buckets JOIN offbook.nodes ON nodes.number = buckets.owner"
            ).fetchall()
        return dict(rows)

    def settle(self) -> None:
        """Until each node that runs has its share."""
        running = {node.url for node in self.nodes if node.running.process.poll() is None}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            owners = self.owners()
            if len(owners) == 1024 and set(owners.values()) == running:
                return
            assert time.monotonic() < deadline, f"{len(owners)} buckets have an owner"
            time.sleep(0.1)

    def cut(self) -> None:
        """Every connection of every node to the database."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND application_name LIKE 'offbook%'"
            )


@dataclass
class Writer:
    """Sends each message of its agent through any node until it is acknowledged, and reads what it was told."""

    cluster: Cluster
    agent_id: str
    seed: int
    is_over: threading.Event
    acks: list[Ack] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def run(self) -> None:
        chosen = random.Random(self.seed)
        while not self.is_over.is_set():
            number = len(self.acks) + 1
            said = message(f"Message {number}.", id=str(number))
            reply = chosen.choice(self.cluster.nodes).ask(
                "onMessage", agentId=self.agent_id, sessionId=SESSION, message=said
            )
            if reply is None or reply.status != 200:
                if reply is not None and not reply.json()["retryable"]:
                    self.faults.append(f"{self.agent_id} {number}: {reply.body.decode()}")
                time.sleep(0.1)
                continue
            self.acks.append(Ack(self.agent_id, str(number)))
            if number % 4 == 0:
                self._read(chosen.choice(self.cluster.nodes), number)

    def _read(self, node: Node, number: int) -> None:
        """Whoever answers has all that was acknowledged before it was asked."""
        reply = node.ask("log", agentId=self.agent_id, sessionId=SESSION, afterSeq=number - 1)
        if reply is not None and reply.status == 200:
            found = [each["message"]["id"] for each in reply.json()["messages"]]
            if found != [str(number)]:
                self.faults.append(f"{self.agent_id}: {number} was acknowledged, and then {found} was read")


class Epochs:
    """Looked at again and again: none ever falls."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._known: dict[int, int] = {}
        self.faults: list[str] = []

    def look(self) -> None:
        with psycopg.connect(self._url) as connection:
            for bucket, epoch in connection.execute("SELECT bucket, epoch FROM offbook.buckets").fetchall():
                if epoch < self._known.get(bucket, 0):
                    self.faults.append(f"the epoch of bucket {bucket} fell to {epoch}")
                self._known[bucket] = epoch


async def faults_of(store: PostgresStore, acks: Sequence[Ack]) -> list[str]:
    """Acknowledged is in the log, once, in the order of acknowledgement, by one owner after the other; the chain holds."""
    by_agent: dict[str, list[Ack]] = {}
    for ack in acks:
        by_agent.setdefault(ack.agent_id, []).append(ack)
    faults: list[str] = []
    for agent_id, its in by_agent.items():
        logged = [entry.message.id for entry in await logged_messages(store, agent_id)]
        faults += [f"{agent_id}: {fault}" for fault in order_faults(logged, its)]
        faults += [f"{agent_id}: {fault}" async for fault in verify(store, agent_id)]
    return faults


def order_faults(logged: Sequence[str | None], acks: Sequence[Ack]) -> Iterable[str]:
    places: Mapping[str | None, int] = {id_: place for place, id_ in enumerate(logged)}
    if len(places) != len(logged):
        yield "something is there twice"
    if lost := [ack.id for ack in acks if ack.id not in places]:
        yield f"acknowledged and lost: {lost}"
    there = [ack for ack in acks if ack.id in places]
    if [places[ack.id] for ack in there] != sorted(places[ack.id] for ack in there):
        yield "another order than that of the acknowledgements"
    epochs = [ack.epoch for ack in sorted(there, key=lambda ack: places[ack.id]) if ack.epoch is not None]
    if epochs != sorted(epochs):
        yield f"written by an owner that was overtaken: epochs {epochs}"


async def logged_messages(store: PostgresStore, agent_id: str) -> list[Any]:
    found: list[Any] = []
    scope = Scope(agent_id=agent_id, session_id=SESSION)
    while page := await store.messages(scope, after_seq=len(found), limit=1_000):
        found += page
    return found
