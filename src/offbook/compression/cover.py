"""Which summaries stand for the older part of a session: each stretch once, older ones coarser. Pure.

Summaries of one level never overlap, and those of the first level lie end to end. A cover is chosen from the newest
end: summaries of level 1 while their budget lasts, then of level 2, then of level 3. What one level leaves of its
budget flows to the next finer one (C5). Where the budget ends in the middle of a merged summary, that summary
stands for the whole of its stretch, and the finer ones inside it give way: no stretch is shown at two levels (C3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from offbook.summaries import Node

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
