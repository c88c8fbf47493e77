"""Which agents a node answers for, where several nodes share one database."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol


class Owners(Protocol):
    when_lost: Callable[[Collection[int]], None] | None
    """Told, in whatever thread, of buckets that are another's now. None of them is taken again before `let_go`."""

    when_taken: Callable[[], None] | None
    """Told, in whatever thread, that there are more than before."""

    def bucket(self, agent_id: str) -> int: ...

    def epoch(self, agent_id: str) -> int | None:
        """Rises each time the agent's bucket changes hands. None where it is not this node's, or may not be."""

    def url(self, agent_id: str) -> str | None:
        """Of the other node that has the agent; None where none is known to."""

    def let_go(self, buckets: Collection[int]) -> None:
        """Nothing is kept in memory of these any more."""
