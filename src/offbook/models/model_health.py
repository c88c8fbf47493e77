"""How a model gets on: what went wrong with it lately, and how long it is left alone after that."""

from __future__ import annotations

from offbook.model.types import Value

FAILURES_THAT_OPEN = 3
FIRST_PAUSE_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 3_600.0


class Breaker(Value, frozen=True):
    """Keeps from asking again and again who cannot answer. After a pause one is let through to try."""

    failures: int = 0
    pause_seconds: float = 0.0
    opened_at: float = 0.0

    def seconds_left(self, at: float) -> float:
        return max(0.0, self.opened_at + self.pause_seconds - at)

    def after_failure(self, at: float) -> Breaker:
        failures = self.failures + 1
        if failures < FAILURES_THAT_OPEN:
            return Breaker(failures=failures)
        pause = min(2 * self.pause_seconds or FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        return Breaker(failures=failures, pause_seconds=pause, opened_at=at)


class ModelHealth:
    """Of a model, as one agent finds it, or all."""

    def __init__(self) -> None:
        self.breaker = Breaker()
        self.trouble: str | None = None

    def format(self, at: float) -> str | None:
        seconds = self.breaker.seconds_left(at)
        return f"{self.trouble} (asked again in {seconds:.0f} seconds)" if self.trouble and seconds else self.trouble

    def clear(self) -> None:
        self.breaker, self.trouble = Breaker(), None
