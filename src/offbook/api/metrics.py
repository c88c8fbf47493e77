"""What is counted, for Prometheus. One registry per daemon, none for the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from offbook.model.status import TaskHealth
from offbook.model.types import now

LATENCY_BUCKETS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    def __init__(
        self,
        version: str,
        queued_writes: Callable[[], int],
        *,
        maintenance: Callable[[], Sequence[TaskHealth]] = list,
        failures: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        """`maintenance`: how each task is; `failures`: how often each has failed."""
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "offbook_requests",
            "Requests answered, by verb and HTTP status.",
            ["verb", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "offbook_request_seconds",
            "Time from a request's last byte to its answer.",
            ["verb"],
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        messages = Counter("offbook_messages", "Messages taken, by outcome.", ["outcome"], registry=self.registry)
        self.accepted = messages.labels("accepted")
        self.duplicates = messages.labels("duplicate")
        self.conflicts = messages.labels("conflict")
        # Looking a label up costs more than counting: each is looked up once.
        self._requests_of = cache(self._requests.labels)
        self._seconds_of = cache(self._seconds.labels)
        waiting = Gauge("offbook_queued_writes", "Writes waiting for the writer thread.", registry=self.registry)
        waiting.set_function(queued_writes)
        self.registry.register(_Maintained(maintenance, failures))
        Gauge("offbook_build_info", "The version that runs.", ["version"], registry=self.registry).labels(version).set(
            1
        )

    def answered(self, verb: str, status: int, seconds: float) -> None:
        self._requests_of(verb, status).inc()
        self._seconds_of(verb).observe(seconds)

    def refused(self, status: int) -> None:
        """Before there was a whole request."""
        self._requests_of("other", status).inc()

    def render(self) -> bytes:
        return generate_latest(self.registry)


class _Maintained(Collector):
    """What maintenance counts by itself, read when it is asked for."""

    def __init__(self, health: Callable[[], Sequence[TaskHealth]], failures: Callable[[], Mapping[str, int]]) -> None:
        self._health = health
        self._failures = failures

    def collect(self) -> Iterator[Metric]:
        tasks = self._health()
        failing = sum(task.error is not None for task in tasks)
        yield GaugeMetricFamily("offbook_maintenance_failing", "Tasks of maintenance that fail now.", value=failing)
        runs = CounterMetricFamily("offbook_maintenance_runs", "Runs of maintenance, by task.", labels=["task"])
        failed = CounterMetricFamily("offbook_maintenance_failures", "Those that failed, by task.", labels=["task"])
        age = GaugeMetricFamily(
            "offbook_maintenance_success_age_seconds", "Since a task last worked, by task.", labels=["task"]
        )
        at, failures = now(), self._failures()
        for task in tasks:
            runs.add_metric([task.task], task.runs)
            failed.add_metric([task.task], failures.get(task.task, 0))
            if task.last_success is not None:
                age.add_metric([task.task], max(0.0, (at - task.last_success).total_seconds()))
        yield from (runs, failed, age)
