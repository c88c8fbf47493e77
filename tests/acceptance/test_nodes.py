"""Several nodes over one PostgreSQL: any takes any request, one has each agent, and what is killed or stopped loses
nothing. `make prove-cluster` runs more rounds and shows them."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from offbook.contrib.conformance import CHECKS, run
from offbook.log.postgres.nodes import bucket_of
from offbook.log.postgres.store import PostgresStore
from tests.acceptance.daemon import Reply, message
from tests.acceptance.nodes import (
    PATIENCE_SECONDS,
    SESSION,
    Ack,
    Cluster,
    Epochs,
    Node,
    Writer,
    faults_of,
    order_faults,
)
from tests.postgres_server import new_database
from tests.processes import OFFBOOK

ROUNDS = int(os.environ.get("PROVE_CLUSTER", "3"))
IS_CAMPAIGN = "PROVE_CLUSTER" in os.environ
NODES = 3 if IS_CAMPAIGN else 2
ISOLATION = 4
"""The promise whose checks ask for the most agents."""
WRITERS = 4
SEED = int(os.environ.get("PROVE_SEED", "1"))


def answered(ask: Callable[[], Reply | None]) -> Reply:
    """Where agents are just moving it is told to try again, and does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        reply = ask()
        if reply is not None and reply.status != 503:
            return reply
        assert time.monotonic() < deadline
        time.sleep(0.1)


def agent_of(cluster: Cluster, node: Node) -> str:
    owners = cluster.owners()
    return next(name for name in map("agent-{}".format, range(10_000)) if owners.get(bucket_of(name)) == node.url)


@pytest.mark.timeout(300)
def test_any_node_takes_any_request() -> None:
    with Cluster(new_database(), 2) as cluster:
        one, other = cluster.nodes
        agent_id = agent_of(cluster, one)
        said = message("The harbour opens at nine.", id="1")
        sent = answered(lambda: other.ask("onMessage", agentId=agent_id, sessionId=SESSION, message=said))
        assert sent.json()["accepted"] == 1
        for node in cluster.nodes:
            log = answered(lambda node=node: node.ask("log", agentId=agent_id, sessionId=SESSION))  # type: ignore[misc]
            assert [each["message"]["id"] for each in log.json()["messages"]] == ["1"]
            found = answered(lambda node=node: node.ask("recall", agentId=agent_id, sessionId=SESSION, query="harbour"))  # type: ignore[misc]
            assert "harbour" in found.body.decode()
        # Refused by the node that has it, told by the one that was asked.
        refused = answered(lambda: other.ask("expand", agentId=agent_id, summaryId="L1-0003"))
        assert refused.status == 404
        assert refused.json()["type"].endswith("not-found")
        # Who asks is written down by the node that has the agent; and nobody else says who that is.
        events = answered(lambda: one.ask("audit", agentId=agent_id)).json()
        assert events["verified"]
        assert {event["actor"] for event in events["events"]} == {"owner"}
        forged = {"authorization": f"Bearer {one.running.token}", "offbook-caller": '{"name":"owner"}'}
        assert one.running.send("POST", "/v1/log", {"sessionId": SESSION}, forged).status == 401
        shown = subprocess.run(
            [OFFBOOK, "nodes", "--json"], env=one.environ, capture_output=True, check=True, timeout=120
        )
        nodes = msgspec.json.decode(shown.stdout)["nodes"]
        assert {node["url"] for node in nodes} == {one.url, other.url}
        assert sum(node["buckets"] for node in nodes) == 1024
        # What goes on is not passed on.
        watched = other.running.send(
            "POST", "/ui/events", {"agentId": agent_id}, {"authorization": f"Bearer {other.running.token}"}
        )
        assert watched.status == 503
        assert one.url in watched.json()["detail"]
        conforms(one)
        woken_answers_with_what_was_said_meanwhile(cluster, agent_id)


def conforms(node: Node) -> None:
    """Whichever node has the agents of the checks."""
    checks = [check for check in CHECKS if IS_CAMPAIGN or check.promise == ISOLATION]
    report = asyncio.run(run(node.running.tcp_endpoint, node.running.token, checks=checks))
    assert [result for result in report.results if result.outcome != "passed"] == []
    assert len(report.results) == len(checks) > 5


def woken_answers_with_what_was_said_meanwhile(cluster: Cluster, agent_id: str) -> None:
    """The node that has the agent is stopped beyond its lease, with an index and a context of it in memory."""
    one, other = cluster.nodes
    said = message("The lighthouse opens at ten.", id="2")
    one.send(signal.SIGSTOP)
    try:
        sent = answered(lambda: other.ask("onMessage", agentId=agent_id, sessionId=SESSION, message=said))
        assert sent.json()["accepted"] == 1
    finally:
        one.send(signal.SIGCONT)

    def recalled() -> Reply | None:
        return one.ask("recall", agentId=agent_id, sessionId=SESSION, query="Which lighthouse opens at ten?")

    first = recalled()
    assert first is None or first.status == 503 or "lighthouse opens" in first.body.decode()
    cluster.settle()
    assert "lighthouse opens" in answered(recalled).body.decode()
    assert "taken for dead" in one.running.log.read_text()
    assert cluster.owners()[bucket_of(agent_id)] == one.url, "it comes back to the node that is to have it"


class Trial:
    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._random = random.Random(seed)
        self._is_over = threading.Event()
        self._writers = [
            Writer(cluster, f"agent-{number}", seed * 100 + number, self._is_over) for number in range(WRITERS)
        ]
        self._epochs = Epochs(cluster.url)

    @property
    def acks(self) -> list[Ack]:
        return [ack for writer in self._writers for ack in writer.acks]

    @property
    def faults(self) -> list[str]:
        return [*self._epochs.faults, *(fault for writer in self._writers for fault in writer.faults)]

    def run(self, rounds: int) -> None:
        with ThreadPoolExecutor(WRITERS) as threads:
            running = [threads.submit(writer.run) for writer in self._writers]
            try:
                self._go_on()
                for number in range(rounds):
                    self._round(number)
            finally:
                self._is_over.set()
            for each in running:
                each.result()

    def _round(self, number: int) -> None:
        # Each kind in turn, so that few rounds have them all.
        fault = (self._killed, self._stopped, self._cut)[number % 3]
        writer = self._random.choice(self._writers)
        node = self._owner(writer)
        before = len(self.acks)
        taken, seconds = fault(node, bucket_of(writer.agent_id))
        self._cluster.settle()
        self._go_on()
        print(
            f"| {number + 1} | {fault.__name__.strip('_')} | {node.port} | {taken} | {seconds:.1f} s | "
            f"{len(self.acks) - before} | {len(self.faults)} |"
        )

    def _owner(self, writer: Writer) -> Node:
        """Somebody waits for what happens to it."""
        url = self._cluster.owners()[bucket_of(writer.agent_id)]
        return next(node for node in self._cluster.nodes if node.url == url)

    def _go_on(self) -> float:
        """Until every writer was acknowledged something that it sent since, and not only what was under way."""
        began = time.monotonic()
        before = [len(writer.acks) for writer in self._writers]
        while any(len(writer.acks) <= known + 1 for writer, known in zip(self._writers, before, strict=True)):
            assert time.monotonic() - began < PATIENCE_SECONDS, "somebody is not answered any more"
            self._epochs.look()
            time.sleep(0.1)
        return time.monotonic() - began

    def _taken_over(self, node: Node, bucket: int) -> float:
        """Until another has it."""
        began = time.monotonic()
        while self._cluster.owners().get(bucket, node.url) == node.url:
            assert time.monotonic() - began < PATIENCE_SECONDS, "nobody takes it over"
            time.sleep(0.1)
        return time.monotonic() - began

    def _killed(self, node: Node, bucket: int) -> tuple[str, float]:
        node.kill()
        taken = self._taken_over(node, bucket)
        seconds = taken + self._go_on()
        node.start()
        node.running.wait_until_ready()
        return f"{taken:.1f} s", seconds

    def _stopped(self, node: Node, bucket: int) -> tuple[str, float]:
        """Beyond its lease, so that others have its agents when it wakes up."""
        node.send(signal.SIGSTOP)
        try:
            taken = self._taken_over(node, bucket)
            seconds = taken + self._go_on()
        finally:
            node.send(signal.SIGCONT)
        return f"{taken:.1f} s", seconds

    def _cut(self, _node: Node, _bucket: int) -> tuple[str, float]:
        self._cluster.cut()
        return "–", self._go_on()


@pytest.mark.slow
@pytest.mark.timeout(300 + 120 * ROUNDS)
async def test_nothing_acknowledged_is_lost_or_doubled_by_what_happens_to_nodes() -> None:
    url = new_database()
    with Cluster(url, NODES) as cluster:
        trial = Trial(cluster, SEED)
        print(
            "\n| round | what | node | taken over after | all answered after | acknowledged | faults |\n|---|---|---|---|---|---|---|"
        )
        trial.run(ROUNDS)
    store = PostgresStore(url, read_only=True)
    faults = [*trial.faults, *await faults_of(store, trial.acks)]
    await store.close()
    print(f"{len(trial.acks)} messages acknowledged, {len(faults)} faults, seed {SEED}")
    assert faults == []
    assert len(trial.acks) > WRITERS * ROUNDS


def test_the_checker_finds_what_is_lost_doubled_or_out_of_order() -> None:
    acks = [Ack("a", "1", 4), Ack("a", "2", 4), Ack("a", "3", 5)]
    assert list(order_faults(["1", "2", "3"], acks)) == []
    assert list(order_faults(["1", "3"], acks)) == ["acknowledged and lost: ['2']"]
    assert list(order_faults(["1", "2", "2", "3"], acks)) == ["something is there twice"]
    assert len(list(order_faults(["2", "1", "3"], acks))) == 1
    assert len(list(order_faults(["1", "2", "3"], [*acks[:2], Ack("a", "3", 3)]))) == 1
