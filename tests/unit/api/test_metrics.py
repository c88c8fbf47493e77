from __future__ import annotations

from datetime import timedelta

from offbook.api.metrics import Metrics
from offbook.model.status import TaskHealth
from offbook.model.types import now


def health(task: str, **fields: object) -> TaskHealth:
    return TaskHealth(**{"task": task, "runs": 0, "failures": 0, "did": {}} | fields)  # type: ignore[arg-type]


def test_maintenance_is_counted_by_task() -> None:
    tasks = [
        health("index", runs=7, last_success=now() - timedelta(seconds=90)),
        health("wiki", runs=3, failures=3, error="the disk is full"),
        health("tiers", last_success=now() + timedelta(days=9)),
    ]
    metrics = Metrics("1", lambda: 0, maintenance=lambda: tasks, failures=lambda: {"wiki": 5})
    lines = metrics.render().decode().splitlines()
    assert "offbook_maintenance_failing 1.0" in lines
    assert 'offbook_maintenance_runs_total{task="index"} 7.0' in lines
    assert 'offbook_maintenance_failures_total{task="wiki"} 5.0' in lines
    assert 'offbook_maintenance_failures_total{task="index"} 0.0' in lines
    ages = {line.partition("}")[0]: float(line.rpartition(" ")[2]) for line in lines if "success_age_seconds{" in line}
    assert set(ages) == {
        'offbook_maintenance_success_age_seconds{task="index"',
        'offbook_maintenance_success_age_seconds{task="tiers"',
    }
    assert 89 < ages['offbook_maintenance_success_age_seconds{task="index"'] < 900
    assert ages['offbook_maintenance_success_age_seconds{task="tiers"'] == 0, "a clock that jumped back"


def test_without_maintenance_nothing_fails() -> None:
    assert b"offbook_maintenance_failing 0.0" in Metrics("1", lambda: 0).render()
