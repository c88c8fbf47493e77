"""What happened to a session's context, for whoever wants to see it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, NamedTuple

from offbook.summaries import Ledger

EventKind = Literal["started", "swapped", "kept", "away", "slow", "refused", "wrong", "compacted"]
"""`started` and `swapped`: something of the provider's is in use. `kept`: the provider saw no need. `away`, `slow`,
`refused`, `wrong`: the agent went on with what it had. `compacted`: by the agent's own means."""


class SwapEvent(NamedTuple):
    """Sizes are those of slot A by our estimate, before and after."""

    kind: EventKind
    at: datetime
    reason: str
    generation: int
    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int


class SwapStats(NamedTuple):
    swaps: int
    generation: int
    compactions: int
    """How often the agent had to do without."""
    fallbacks: Mapping[str, int]
    """How often the agent went on with what it had, by why."""
    waited_ms: float
    """What the agent has waited for the provider, in all."""
    used_tokens: int
    last_ledger: Ledger | None
    """What the last swap kept and what it left out."""


LEAST_OF_ESTIMATE = 0.5
"""No tokenizer is better than that by our estimate: a lower count leaves something out, such as what was cached."""


class Meter:
    """How many tokens the next prompt has: what the model's provider last counted, and our estimate of what changed.

    What it counted beyond our estimate is the host's own (instructions, tools) and stays; what it counted below it is a
    tokenizer better than we think, and scales.
    """

    def __init__(self) -> None:
        self._given = 0
        self._beside = 0
        self._reported: int | None = None

    def give(self, slot_tokens: int, beside: int = 0) -> None:
        """This much of slot A goes into the next prompt, and this much of memory beside it."""
        self._given = slot_tokens + beside
        self._beside = beside

    def report(self, prompt_tokens: int | None) -> None:
        """What that prompt took. No prompt takes nothing: then it was not counted."""
        if prompt_tokens is not None and prompt_tokens > 0:
            self._reported, self._estimated = prompt_tokens, self._given

    def used(self, slot_tokens: int) -> int:
        total = slot_tokens + self._beside
        if self._reported is None:
            return total
        if self._reported >= self._estimated:
            return total + self._reported - self._estimated
        return int(total * max(self._reported / self._estimated, LEAST_OF_ESTIMATE))
