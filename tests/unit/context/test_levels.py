from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from offbook.context.cover import MessageSpan, due, next_merge


def message_spans(*tokens: int) -> list[MessageSpan]:
    return [MessageSpan(number * 10 + 1, number * 10 + 10, one) for number, one in enumerate(tokens)]


def test_the_newest_tokens_of_an_active_session_are_not_due() -> None:
    assert due(message_spans(6_000, 6_000, 6_000), 2_000, 30_000) == 0
    assert due(message_spans(6_000, 6_000, 6_000, 6_000, 6_000, 6_000), 0, 30_000) == 1
    assert due(message_spans(6_000, 6_000), 30_000, 30_000) == 2


def test_of_a_session_that_is_over_everything_is_due() -> None:
    assert due(message_spans(6_000, 100), 0, 0) == 2


@given(st.lists(st.integers(0, 10_000), max_size=20), st.integers(0, 40_000), st.integers(0, 60_000))
def test_what_is_due_lies_behind_the_boundary_and_nothing_behind_it_is_left(
    tokens: list[int], rest: int, boundary: int
) -> None:
    count = due(message_spans(*tokens), rest, boundary)
    if count:
        assert sum(tokens[count:]) + rest >= boundary
    if count < len(tokens):
        assert sum(tokens[count + 1 :]) + rest < boundary


def test_too_few_do_not_merge() -> None:
    assert next_merge([], 6) == []
