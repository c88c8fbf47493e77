"""What is due: which stretches become summaries, and which summaries merge. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from offbook.compression.spans import Stretch
from offbook.summaries import Summary

SHORTEST_REST = 12
"""What is left of a session that is over becomes a summary of its own, if it is a twelfth of a chunk: a session that
ends with every turn would have one for each else."""


def due(finished: Sequence[Stretch], rest_tokens: int, boundary_tokens: int) -> int:
    """How many of the finished stretches lie far enough behind the newest message (C7); oldest first."""
    after = rest_tokens
    for index in range(len(finished) - 1, -1, -1):
        if after >= boundary_tokens:
            return index + 1
        after += finished[index].tokens
    return 0


def next_merge(unmerged: Sequence[Summary], threshold: int) -> list[Summary]:
    """The oldest that merge, of those of one level in order of time; none where they are too few."""
    return list(unmerged[:threshold]) if len(unmerged) >= threshold else []


def left_over(unmerged: Sequence[Summary], is_over: Callable[[str], bool]) -> list[Summary]:
    """Of an agent's summaries of one level, those that no session will merge any more: what sessions that are over
    have left, and what was merged of several."""
    return [summary for summary in unmerged if all(is_over(span.session_id) for span in summary.draft.spans)]
