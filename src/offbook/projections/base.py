"""What a projection is: something derived from the log.

Killed anywhere and run again, it is the same; rebuilt, it equals what grew. Everything that is done for all of them
(cursors, fairness, retry, backlog, health) is the `Runner`'s; what is forgotten goes from each by `forget`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from offbook.model.receipt import ForgottenSpan, Residue, Selection
from offbook.model.types import Value

Says = Callable[[str], bool]
"""Tells whether a text says any of what was erased."""


class Batch(NamedTuple):
    """A bounded piece of work: from where the projection's durable cursor stands, for one agent."""

    agent_id: str
    session_id: str | None = None
    """The session that has news; None where it is the agent's turn and no session is named."""
    seconds: float = 0.5
    """After which it is another agent's turn."""


class Progress(Value, frozen=True):
    """What was done in one bounded piece of work. `did` counts things by name; nothing done is an empty one."""

    did: dict[str, int] = msgspec.field(default_factory=dict)
    is_done: bool = True
    """Nothing is left to do now; else it is asked again, after others had their turn."""
    waits: list[str] | None = None
    """What waits for a person, each named; None where it was not looked."""
    again_seconds: float | None = None
    """When to ask again; None: at once where it is not done, else when there are news."""
    sessions: tuple[str, ...] = ()
    """Sessions that were found to have something to do."""
    is_idle: bool = False
    """Nothing had changed, so there is nothing that others could follow."""


class Erased(NamedTuple):
    """What is to go from everything that came of it, or should be gone."""

    agent_id: str
    spans: Sequence[ForgottenSpan]
    says: Says
    selection: Selection | None = None
    """How it was named, where that is still known; some of it may be in copies only."""
    places: Sequence[int] = ()
    summaries: Sequence[str] = ()
    """Those that were written again without it."""
    lessons: Sequence[str] = ()
    taught_by: Sequence[int] = ()
    """Places of others that taught one of the lessons, too."""
    relinked: Collection[int] | None = None
    """Places of those that may replace others now; None where that is not known."""
    is_dry_run: bool = False
    """Only count."""

    @property
    def has_words(self) -> bool:
        """Also where no message says it."""
        return bool(self.spans or self.lessons or (self.selection is not None and self.selection.matching))


class Removal(NamedTuple):
    """What went, or would go: by the field of `Reached` that counts it; and what could not be removed."""

    counts: Mapping[str, int] = {}
    residue: Sequence[Residue] = ()


class Finding(NamedTuple):
    """Something of a projection that is not as the log says it should be."""

    where: str
    what: str
    mend: str | None = None
    """What to do about it; None where it is made good by itself."""


@runtime_checkable
class KeepsState(Protocol):
    """A projection that keeps something of agents in memory."""

    def let_go(self, agent_id: str) -> None:
        """Keep nothing of the agent's: another node has it."""


class Projection(Protocol):
    """Something derived from the log."""

    name: str

    async def advance(self, batch: Batch) -> Progress:
        """A bounded piece of what is left to do. Run twice, or killed half-way and run again, it leaves the same."""

    async def forget(self, erased: Erased) -> Removal:
        """Called once the log and what the store derives from it are without it. No byte stays here."""

    async def rebuild(self, agent_id: str) -> None:
        """Throw it away; what `advance` makes from the log's beginning equals what grew. Not beside an `advance` for
        the same agent: see `Runner.apart`."""

    async def check(self, agent_id: str, erased: Erased | None = None) -> list[Finding]:
        """What is damaged or missing; with `erased`, only whether any of that is left."""
