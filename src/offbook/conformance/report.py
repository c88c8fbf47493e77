"""What the suite found, as values."""

from __future__ import annotations

from typing import Literal

import msgspec

Outcome = Literal["passed", "failed", "not offered"]


class Result(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of one check. `holds` is the promise in words, `detail` what was expected and what came."""

    check: str
    promise: int
    holds: str
    outcome: Outcome
    detail: str
    seconds: float


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    endpoint: str
    agent_id: str
    """Everything the suite wrote belongs to this agent, or to one whose name begins with it."""
    results: list[Result]
    seconds: float

    def with_outcome(self, outcome: Outcome) -> list[Result]:
        return [result for result in self.results if result.outcome == outcome]

    @property
    def is_conforming(self) -> bool:
        return not self.with_outcome("failed")
