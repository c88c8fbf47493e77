"""A check: one promise, the verbs it needs, and how to find out whether a provider holds it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import msgspec

from offbook.contrib.conformance.provider import Provider

Examine = Callable[[Provider], Awaitable[None]]

MOST_SHOWN = 300
"""Characters of an answer that a report shows: enough to recognise it."""
MOST_FAULTS_SHOWN = 8


class Check(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    promise: int
    """1 to 7 as in the contract; 0 for the shape of an answer, on which all of them rest."""
    holds: str
    verbs: tuple[str, ...]
    examine: Examine


class Unmet(Exception):
    """The provider does not hold what was promised."""


class NotApplicable(Exception):
    """This check says nothing about such a provider."""


def check(promise: int, *verbs: str) -> Callable[[Examine], Check]:
    """Makes a check of a function: its name is the id, its docstring says what holds."""

    def as_check(examine: Examine) -> Check:
        name: str = examine.__name__
        holds = " ".join((examine.__doc__ or "").split())
        return Check(id=name.replace("_", "-"), promise=promise, holds=holds, verbs=verbs, examine=examine)

    return as_check


def expect(what: str, expected: object, came: object) -> None:
    if came != expected:
        raise Unmet(f"{what}: expected {_shown(expected)}, came {_shown(came)}")


def expect_that(is_so: bool, what: str, came: object) -> None:
    if not is_so:
        raise Unmet(f"expected {what}, came {_shown(came)}")


def expect_no_faults(faults: Sequence[str]) -> None:
    """All of a table's faults at once: one run tells everything there is to mend."""
    if faults:
        hidden = len(faults) - MOST_FAULTS_SHOWN
        more = [f"and {hidden} more"] if hidden > 0 else []
        raise Unmet("\n".join([*faults[:MOST_FAULTS_SHOWN], *more]))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}… ({len(text):,} characters)"


# ── What the suite found, as values ──

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
