from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.model.schedule import SHOWN_AFTER, due, next_turn, pause

seconds = st.floats(min_value=0, max_value=1e9)
spans = st.floats(min_value=0.1, max_value=1e6)
turns = st.dictionaries(st.text(max_size=3), seconds, max_size=12)


@pytest.mark.parametrize(("failures", "wait"), [(0, 300), (1, 5), (2, 30), (3, 300), (100, 300)])
def test_a_failure_is_tried_again_soon_then_later_then_at_the_usual_turn(failures: int, wait: float) -> None:
    assert next_turn(1000.0, every=300, failures=failures, is_done=True) == 1000 + wait


def test_what_is_not_done_goes_on_at_once_unless_it_failed() -> None:
    assert next_turn(1000.0, every=300, failures=0, is_done=False) == 1000
    assert next_turn(1000.0, every=300, failures=1, is_done=False) == 1005


@given(seconds, spans, st.integers(min_value=0, max_value=10**6), st.booleans())
def test_a_turn_is_never_in_the_past_and_never_further_than_the_usual_one(
    at: float, every: float, failures: int, is_done: bool
) -> None:
    turn = next_turn(at, every=every, failures=failures, is_done=is_done)
    assert at <= turn <= at + every
    assert turn == at + every or failures < SHOWN_AFTER, "one that goes on failing costs no more than one that works"


@given(turns, seconds)
def test_those_are_due_whose_turn_has_come_and_first_who_waited_longest(turns: dict[str, float], at: float) -> None:
    found = due(turns, at)
    assert set(found) == {key for key, turn in turns.items() if turn <= at}
    assert [turns[key] for key in found] == sorted(turns[key] for key in found)


@given(turns, seconds, spans)
def test_a_pause_ends_no_later_than_a_turn_comes_and_never_goes_on_for_ever(
    turns: dict[str, float], at: float, longest: float
) -> None:
    wait = pause(turns, at, longest=longest)
    assert 0 <= wait <= longest
    assert wait > 0 or any(turn <= at for turn in turns.values()), "nobody's turn, and no pause: a loop that spins"
    assert all(turn >= at + wait - 1e-6 for turn in turns.values() if turn > at)


@given(st.lists(seconds, min_size=1, max_size=8), st.data())
def test_in_turns_nobody_is_left_out(first: list[float], data: st.DataObject) -> None:
    """Whoever is never done goes behind all who have waited longer."""
    waiting = dict(enumerate(first))
    at = max(first)
    for key in due(waiting, at):
        at += data.draw(st.floats(min_value=0.01, max_value=10))
        waiting[key] = next_turn(at, every=300, failures=0, is_done=False)
    assert len(set(due(waiting, at))) == len(first)
