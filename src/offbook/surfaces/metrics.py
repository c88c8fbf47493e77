"""What is counted, for Prometheus. One registry per daemon, none for the process."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

LATENCY_BUCKETS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    def __init__(self, version: str, queued_writes: Callable[[], int]) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "offbook_requests",
            "Requests answered, by verb and HTTP status.",
            ["verb", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "offbook_request_seconds",
            "Time from a request's last byte to its answer.",
            ["verb"],
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        self.messages = Counter("offbook_messages", "Messages taken, by outcome.", ["outcome"], registry=self.registry)
        for outcome in ("accepted", "duplicate", "conflict"):
            self.messages.labels(outcome)
        Gauge("offbook_queued_writes", "Writes waiting for the writer thread.", registry=self.registry).set_function(
            queued_writes
        )
        Gauge("offbook_build_info", "The version that runs.", ["version"], registry=self.registry).labels(version).set(
            1
        )

    def render(self) -> bytes:
        return generate_latest(self.registry)
