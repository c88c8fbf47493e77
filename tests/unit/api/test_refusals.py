"""Refusals are all counted, and logged only so often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import structlog

from offbook.api.http import HttpSurface
from offbook.api.memory import Memory
from offbook.api.messages import Request
from offbook.api.metrics import Metrics
from offbook.api.refusals import LOGGED_A_MINUTE, RefusalLog
from offbook.model.errors import Forbidden, TooLarge, Unauthorized


class Minutes:
    """In place of the loop's timer: the minute ends when a test says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        assert seconds == 60
        self.waiting.append(call)

    def end(self) -> None:
        (call,) = self.waiting
        self.waiting.clear()
        call()


def actions(logs: list[Any]) -> list[str]:
    return [line["action"] for line in logs]


def test_of_each_reason_the_first_of_a_minute_are_logged_and_the_rest_counted() -> None:
    minutes = Minutes()
    refusals = RefusalLog(minutes.later)
    with structlog.testing.capture_logs() as logs:
        for number in range(LOGGED_A_MINUTE + 500):
            refusals.refused(Unauthorized(f"attempt {number}"), "status")
        for _ in range(LOGGED_A_MINUTE):
            refusals.refused(Forbidden(), "status")
    assert actions(logs) == ["request.refuse"] * 2 * LOGGED_A_MINUTE
    with structlog.testing.capture_logs() as logs:
        minutes.end()
    assert [(line["action"], line["reason"], line["status"], line["more"]) for line in logs] == [
        ("request.refusals", "unauthorized", 401, 500)
    ]
    with structlog.testing.capture_logs() as logs:
        refusals.refused(Unauthorized(), "status")
        minutes.end()
    assert actions(logs) == ["request.refuse"]


async def test_a_request_that_is_refused_is_counted_whether_it_is_logged_or_not() -> None:
    minutes, metrics = Minutes(), Metrics("1", lambda: 0)
    surface = HttpSurface(
        cast(Memory, None),
        metrics,
        dict,
        is_socket=False,
        allowed_hosts=None,
        refusals=RefusalLog(minutes.later),
    )
    with structlog.testing.capture_logs() as logs:
        for _ in range(100):
            assert (await surface(Request("POST", "/v1/status", {b"host": b"localhost"}, b"{}"))).status == 401
        surface.refused(TooLarge("a body larger than is taken"))
    assert actions(logs) == ["request.refuse"] * (LOGGED_A_MINUTE + 1)
    counted = metrics.render().decode()
    assert 'offbook_requests_total{status="401",verb="status"} 100.0' in counted
    assert 'offbook_requests_total{status="413",verb="other"} 1.0' in counted
