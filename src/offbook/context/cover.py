"""Which summaries stand for the older part of a session: each stretch once, older ones coarser. Pure.

Summaries of one level never overlap, and those of the first level lie end to end. A cover is chosen from the newest
end: summaries of level 1 while their budget lasts, then of level 2, then of level 3. What one level leaves of its
budget flows to the next finer one (C5). Where the budget ends in the middle of a merged summary, that summary
stands for the whole of its stretch, and the finer ones inside it give way: no stretch is shown at two levels (C3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from offbook.model.content import tool_calls, tool_results
from offbook.model.summary import Node, Summary
from offbook.model.types import Message

SHARES = {1: 0.45, 2: 0.3}
"""Of the room for summaries, for the finer levels; the coarsest there is gets the rest."""


def level_budgets(chars: Mapping[int, int], room: int, caps: Mapping[int, int]) -> dict[int, int]:
    """How many characters each level may take: its share, at most its cap, and what the coarser ones leave over.

    `chars`: what all summaries of a level would take.
    """
    budgets: dict[int, int] = {}
    levels = sorted(chars, reverse=True)
    left_over = 0
    for level in levels:
        share = SHARES.get(level, 0.25)
        budgets[level] = min(caps.get(level, room), int(room * share)) + left_over
        left_over = max(0, budgets[level] - chars[level])
    if levels:
        # What the caps do not forbid and nobody else asks for is the finest level's.
        finest = levels[-1]
        others = sum(min(budgets[level], chars[level]) for level in levels[:-1])
        budgets[finest] = max(budgets[finest], min(caps.get(finest, room) + left_over, room - others))
    return budgets


def cover(levels: Mapping[int, Sequence[Node]], through_seq: int, budgets: Mapping[int, int]) -> list[Node]:
    """The summaries that stand for everything up to `through_seq`, oldest first; as far back as they reach.

    `levels` holds, for each level, its summaries newest first. The budget of the coarsest level does not bind: what
    is too long is shown in a shorter form.
    """
    by_end = {level: {node.last_seq: node for node in nodes} for level, nodes in levels.items()}
    coarsest = max(levels, default=0)
    chosen: list[Node] = []
    spent = dict.fromkeys(levels, 0)
    level, at = min(levels, default=0), through_seq
    while at > 0:
        node = _ending_at(by_end, at, level)
        is_over = node is not None and node.level == level and spent[level] + node.chars > budgets.get(level, 0)
        if level < coarsest and (node is None or is_over):
            level += 1
            if (merged := _holding(levels.get(level, ()), at)) is not None:
                at = _give_way(chosen, spent, merged, at)
            continue
        if node is None:
            break
        chosen.append(node)
        spent[node.level] += node.chars
        at = node.first_seq - 1
    return chosen[::-1]


def _ending_at(by_end: Mapping[int, Mapping[int, Node]], at: int, level: int) -> Node | None:
    """Of the wanted level, else the next finer one that ends there: what is not merged yet stays as it is."""
    for one in range(level, 0, -1):
        node = by_end.get(one, {}).get(at)
        if node is not None:
            return node
    return None


def _holding(nodes: Sequence[Node], at: int) -> Node | None:
    return next((node for node in nodes if node.first_seq <= at <= node.last_seq), None)


def _give_way(chosen: list[Node], spent: dict[int, int], merged: Node, at: int) -> int:
    """Takes back what was chosen inside a coarser summary; returns where the cover goes on."""
    while chosen and chosen[-1].first_seq <= merged.last_seq:
        node = chosen.pop()
        spent[node.level] -= node.chars
        at = node.last_seq
    return at


# ── Where a session is cut into stretches that become summaries. Pure; the same log is cut the ──

LONGEST_WAIT_MESSAGES = 50
"""A call that is not answered by then is taken not to be: it no longer keeps a cut away."""
LONGEST_WAIT_CHUNKS = 4
"""Nor does any in a stretch that is that many times as long as it should be."""
MOST_MESSAGES = 2_000
"""Of one stretch, however little they say: heartbeats are messages too."""


class MessageSpan(NamedTuple):
    """Messages of one session that belong together. `tokens` leaves out noise."""

    first_seq: int
    last_seq: int
    tokens: int


class Cutter:
    """Takes a session's messages in their order and says where each stretch ends."""

    def __init__(self, chunk_tokens: int, *, after_seq: int = 0) -> None:
        self._chunk_tokens = chunk_tokens
        self._first_seq = after_seq + 1
        self._last_seq = after_seq
        self._tokens = 0
        self._calls: dict[str, int] = {}
        """Calls without an answer so far, and where they were made."""

    @property
    def rest(self) -> MessageSpan | None:
        """What has come since the last cut."""
        if self._last_seq < self._first_seq:
            return None
        return MessageSpan(self._first_seq, self._last_seq, self._tokens)

    def take(self, seq: int, message: Message, tokens: int) -> MessageSpan | None:
        """One more message; returns the stretch that ends right before it, where one does."""
        finished = self.rest if self._ends_before(message) else None
        if finished is not None:
            self._first_seq, self._tokens = seq, 0
        self._last_seq = seq
        self._tokens += tokens
        for call_id in tool_results(message):
            self._calls.pop(call_id, None)
        answered_here = set(tool_results(message))
        for call_id in tool_calls(message):
            if call_id not in answered_here:
                self._calls[call_id] = seq
        return finished

    def end(self) -> MessageSpan | None:
        """The session is over here, for now: the rest is a stretch of its own."""
        finished = self.rest
        self._first_seq, self._tokens = self._last_seq + 1, 0
        self._calls.clear()
        return finished

    def _ends_before(self, message: Message) -> bool:
        count = self._last_seq - self._first_seq + 1
        if (self._tokens < self._chunk_tokens and count < MOST_MESSAGES) or self.is_waiting() or tool_results(message):
            return False
        is_new_exchange = message.role == "user"
        return is_new_exchange or self._tokens >= 2 * self._chunk_tokens or count >= MOST_MESSAGES

    def is_waiting(self) -> bool:
        """Whether a call has no answer so far, and one may still come."""
        if self._tokens >= LONGEST_WAIT_CHUNKS * self._chunk_tokens:
            return False
        for call_id, seq in list(self._calls.items()):
            if self._last_seq - seq >= LONGEST_WAIT_MESSAGES:
                del self._calls[call_id]
        return bool(self._calls)


# ── Which of all an agent's summaries are shown at the start of a context: recent ones fine, o ──

COARSEST = 3
"""Levels above share the budget of this one."""
NAME_TOKENS = 8
"""What the name and the line's end add to a summary."""


def chosen(summaries: Sequence[Summary], budgets: Mapping[int, int], most_tokens: int) -> list[Summary]:
    """Those to be shown: the coarsest level first, oldest first inside a level. `budgets`: tokens by level.

    Of one tree, either a summary or those it merges. The oldest are left out where even the coarsest do not fit.
    """
    known = {one.id: one for one in summaries}
    merged: dict[str, list[Summary]] = {}
    for one in summaries:
        if one.parent in known:
            merged.setdefault(known[one.parent].id, []).append(one)
    room = _Room(budgets, most_tokens)
    shown: list[Summary] = []
    for root in _newest_first([one for one in summaries if one.parent not in known]):
        if room.has({_bucket(root): cost(root)}):
            room.take({_bucket(root): cost(root)})
            shown.append(root)
    return sorted(_refined(shown, merged, room), key=lambda one: (-one.draft.level, one.draft.first_at, one.id))


def cost(summary: Summary) -> int:
    return summary.draft.tokens + NAME_TOKENS


def _refined(shown: Sequence[Summary], merged: Mapping[str, Sequence[Summary]], room: _Room) -> list[Summary]:
    """The newest in as much detail as there is room for."""
    refined: list[Summary] = []
    waiting = _newest_first(shown)
    while waiting:
        one = waiting.pop(0)
        finer = merged.get(one.id, ())
        change = {_bucket(one): -cost(one)}
        for part in finer:
            change[_bucket(part)] = change.get(_bucket(part), 0) + cost(part)
        if len(finer) == len(one.draft.sources) > 0 and room.has(change):
            room.take(change)
            waiting = [*_newest_first(finer), *waiting]
        else:
            refined.append(one)
    return refined


def _newest_first(summaries: Sequence[Summary]) -> list[Summary]:
    return sorted(summaries, key=lambda one: (one.draft.last_at, one.id), reverse=True)


def _bucket(summary: Summary) -> int:
    return min(summary.draft.level, COARSEST)


class _Room:
    """What is left. A level and those above it may take their budgets together: so unused budget flows down."""

    def __init__(self, budgets: Mapping[int, int], most_tokens: int) -> None:
        self._left: dict[int, int] = {}
        together = 0
        for level in range(COARSEST, 0, -1):
            together += budgets.get(level, 0)
            self._left[level] = min(together, most_tokens)

    def has(self, change: Mapping[int, int]) -> bool:
        return all(self._after(level, change) >= 0 for level in self._left)

    def take(self, change: Mapping[int, int]) -> None:
        self._left = {level: self._after(level, change) for level in self._left}

    def _after(self, level: int, change: Mapping[int, int]) -> int:
        return self._left[level] - sum(tokens for one, tokens in change.items() if one >= level)


# ── What is due: which stretches become summaries, and which summaries merge. Pure ──


SHORTEST_REST = 12
"""What is added to a session after its end waits until it is a twelfth of a chunk, or the session has been silent for
long: one that ends with every turn would have a summary for each else."""


def least_rest(chunk_tokens: int, *, is_past: bool, has_summaries: bool) -> int:
    """How many tokens the rest of a session that is over must have to become a summary: no session is without one."""
    return max(1, chunk_tokens // SHORTEST_REST) if has_summaries and not is_past else 1


def due(finished: Sequence[MessageSpan], rest_tokens: int, boundary_tokens: int) -> int:
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
