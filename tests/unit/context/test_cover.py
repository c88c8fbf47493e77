from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from offbook.context.cover import cover, level_budgets
from offbook.model.summary import Node

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
PLENTY = 10**9


def node(level: int, first: int, last: int, chars: int = 100) -> Node:
    return Node(
        id=f"L{level}-{last:04}",
        level=level,
        first_seq=first,
        last_seq=last,
        chars=chars,
        tokens=chars // 4,
        brief="",
        first_at=NOON,
        last_at=NOON,
    )


def tree(leaves: int, fan: int = 3, levels: int = 3, size: int = 10) -> dict[int, list[Node]]:
    """Summaries of messages 1 … leaves * size, newest first; as many merged as can be."""
    found = {1: [node(1, index * size + 1, (index + 1) * size) for index in range(leaves)]}
    for level in range(2, levels + 1):
        below = found[level - 1]
        found[level] = [
            node(level, below[start].first_seq, below[start + fan - 1].last_seq)
            for start in range(0, len(below) // fan * fan, fan)
        ]
    return {level: nodes[::-1] for level, nodes in found.items()}


def assert_covers(nodes: list[Node], last: int, first: int = 1) -> None:
    at = first - 1
    for one in nodes:
        assert one.first_seq == at + 1
        at = one.last_seq
    assert at == last


def test_with_room_for_all_the_finest_are_chosen() -> None:
    chosen = cover(tree(20), 200, {1: PLENTY, 2: PLENTY, 3: PLENTY})
    assert_covers(chosen, 200)
    assert {one.level for one in chosen} == {1}


def test_with_no_room_the_coarsest_are_chosen_and_what_is_not_merged_stays() -> None:
    chosen = cover(tree(20), 200, {})
    assert_covers(chosen, 200)
    assert [one.level for one in chosen] == [3, 3, 1, 1]


def test_older_is_coarser() -> None:
    chosen = cover(tree(40), 400, {1: 500, 2: 300})
    assert_covers(chosen, 400)
    levels = [one.level for one in chosen]
    assert set(levels) == {1, 2, 3}
    assert levels == sorted(levels, reverse=True)


def test_no_stretch_is_shown_at_two_levels_where_a_budget_ends_inside_a_merged_one() -> None:
    for budget in range(0, 1_200, 50):
        chosen = cover(tree(12), 120, {1: budget, 2: PLENTY})
        assert_covers(chosen, 120)
        assert sum(one.chars for one in chosen if one.level == 1) <= max(budget, 0) + 0


def test_what_was_not_read_is_not_covered_and_what_was_is() -> None:
    levels = tree(40)
    read = {level: nodes[:4] for level, nodes in levels.items()}
    chosen = cover(read, 400, {1: PLENTY, 2: PLENTY})
    assert chosen[-1].last_seq == 400
    assert_covers(chosen, 400, first=chosen[0].first_seq)
    assert chosen[0].level == 3


def test_a_session_that_went_on_after_its_rest_was_merged_elsewhere_is_covered() -> None:
    levels = {1: [node(1, index * 10 + 1, index * 10 + 10) for index in range(9)][::-1], 2: [node(2, 61, 90)], 3: []}
    chosen = cover(levels, 90, {})
    assert_covers(chosen, 90)
    assert [one.level for one in chosen] == [1] * 6 + [2]


@given(st.integers(0, 60), st.integers(2, 6), st.lists(st.integers(0, 3_000), min_size=3, max_size=3))
def test_every_cover_is_exact(leaves: int, fan: int, budgets: list[int]) -> None:
    chosen = cover(tree(leaves, fan), leaves * 10, dict(enumerate(budgets, 1)))
    assert_covers(chosen, leaves * 10)
    assert len({one.id for one in chosen}) == len(chosen)


@given(
    st.lists(st.integers(0, 200_000), min_size=3, max_size=3),
    st.integers(0, 400_000),
    st.lists(st.integers(0, 120_000), min_size=3, max_size=3),
)
def test_budgets_flow_down_and_never_exceed_caps_and_what_flowed(chars: list[int], room: int, caps: list[int]) -> None:
    wanted, capped = dict(enumerate(chars, 1)), dict(enumerate(caps, 1))
    budgets = level_budgets(wanted, room, capped)
    assert budgets[3] <= capped[3]
    assert budgets[2] <= capped[2] + max(0, budgets[3] - wanted[3])
    assert all(budget >= 0 for budget in budgets.values())


def test_what_a_level_does_not_use_flows_to_the_next_finer_one() -> None:
    caps = {1: 120_000, 2: 120_000, 3: 120_000}
    without = level_budgets({1: 500_000, 2: 500_000, 3: 0}, 200_000, caps)
    with_all = level_budgets({1: 500_000, 2: 500_000, 3: 500_000}, 200_000, caps)
    assert without[2] > with_all[2]
