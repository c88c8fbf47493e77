from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from offbook.model.memory_entry import Supersession
from offbook.search.resolve import RETRACTED, resolve_supersession

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


def link(old: int, new: int, kind: str = "correct", day: int | None = None) -> Supersession:
    return Supersession(
        old_place=old, new_place=new, kind=kind, at=BEGINNING + timedelta(days=new if day is None else day)
    )


def shown(found: list[tuple[int, float]], *links: Supersession, history: bool = False) -> list[int]:
    return [one.place for one in resolve_supersession(found, links, include_superseded=history).resolved]


def test_without_corrections_all_stand_best_first() -> None:
    outcome = resolve_supersession([(1, 3.0), (2, 2.0), (3, 1.0)], [], include_superseded=False)
    assert [(one.place, one.score) for one in outcome.resolved] == [(1, 3.0), (2, 2.0), (3, 1.0)]
    assert outcome.gone == {}


def test_a_correction_takes_the_place_and_the_rank_of_what_it_corrects() -> None:
    outcome = resolve_supersession([(1, 3.0), (2, 2.0)], [link(1, 9)], include_superseded=False)
    first, second = outcome.resolved
    assert (first.place, first.score, first.replaces, first.superseded_by) == (9, 3.0, [1], None)
    assert (second.place, second.replaces) == (2, [])
    assert outcome.gone[1].new_place == 9


def test_both_found_the_correction_is_shown_once_with_the_better_score() -> None:
    outcome = resolve_supersession([(1, 3.0), (2, 2.5), (9, 1.0)], [link(1, 9)], include_superseded=False)
    assert [(one.place, one.score) for one in outcome.resolved] == [(9, 3.0), (2, 2.5)]


def test_the_end_of_a_chain_stands_for_all_of_it() -> None:
    chain = [link(1, 2), link(2, 3), link(3, 4)]
    assert shown([(1, 3.0), (2, 2.0), (3, 1.0)], *chain) == [4]
    assert shown([(1, 3.0)], *(link(place, place + 1) for place in range(1, 30))) == [30]


def test_what_was_replaced_twice_gives_way_to_the_newest() -> None:
    assert shown([(1, 3.0)], link(1, 2, day=1), link(1, 3, day=2)) == [3]
    assert shown([(1, 3.0)], link(1, 3, day=1), link(1, 2, day=2)) == [2]
    both = resolve_supersession([(1, 3.0), (2, 1.0)], [link(1, 3), link(2, 3)], include_superseded=False)
    assert [(one.place, one.replaces) for one in both.resolved] == [(3, [1, 2])]


def test_what_was_taken_back_goes_without_a_successor() -> None:
    taken_back = link(1, 2, RETRACTED)
    outcome = resolve_supersession([(1, 3.0), (5, 1.0)], [taken_back], include_superseded=False)
    assert [one.place for one in outcome.resolved] == [5]
    assert outcome.gone == {1: taken_back}
    assert shown([(1, 3.0)], link(1, 2), link(2, 3, RETRACTED)) == []
    # The words of taking back answer nothing; where they also replace something they stay.
    assert resolve_supersession([(2, 1.0)], [taken_back], include_superseded=False).resolved == []
    assert shown([(2, 1.0)], taken_back, link(7, 2)) == [2]


def test_history_shows_what_was_found_and_what_became_of_it() -> None:
    outcome = resolve_supersession([(1, 3.0), (2, 2.0)], [link(1, 2), link(2, 3)], include_superseded=True)
    assert [(one.place, one.replaces, one.superseded_by) for one in outcome.resolved] == [(1, [], 2), (2, [1], 3)]
    assert outcome.gone == {}


def test_a_ring_ends() -> None:
    assert len(shown([(1, 3.0), (2, 2.0)], link(1, 2, day=1), link(2, 1, day=1))) <= 2


links = st.lists(
    st.builds(
        lambda old, gap, kind, day: link(old, old + gap, kind, day),
        st.integers(1, 30),
        st.integers(1, 8),
        st.sampled_from(["correct", "restate", RETRACTED]),
        st.integers(0, 9),
    ),
    max_size=30,
    unique_by=lambda one: (one.old_place, one.new_place),
)
found = st.dictionaries(st.integers(1, 40), st.floats(-10, 10), max_size=20).map(
    lambda scores: sorted(scores.items(), key=lambda pair: -pair[1])
)


@given(found, links)
def test_nothing_replaced_is_shown_nothing_twice_and_every_heir_is(
    found: list[tuple[int, float]], links: list[Supersession]
) -> None:
    outcome = resolve_supersession(found, links, include_superseded=False)
    places = [one.place for one in outcome.resolved]
    replaced = {one.old_place for one in links}
    takes_back = {one.new_place for one in links if one.kind == RETRACTED} - {
        one.new_place for one in links if one.kind != RETRACTED
    }
    assert replaced.isdisjoint(places)
    assert len(places) == len(set(places))
    assert [one.score for one in outcome.resolved] == sorted((one.score for one in outcome.resolved), reverse=True)
    for place, _ in found:
        assert (place in places) == (place not in replaced and place not in takes_back)
        assert (place in outcome.gone) == (place in replaced)
        if (heir := _heir(place, links)) is not None and heir not in takes_back:
            assert heir in places


@given(found, links)
def test_history_leaves_nothing_out(found: list[tuple[int, float]], links: list[Supersession]) -> None:
    outcome = resolve_supersession(found, links, include_superseded=True)
    assert sorted(one.place for one in outcome.resolved) == sorted(place for place, _ in found)
    replaced = {one.old_place for one in links}
    assert all((one.superseded_by is not None) == (one.place in replaced) for one in outcome.resolved)


def _heir(place: int, links: list[Supersession]) -> int | None:
    while own := [one for one in links if one.old_place == place]:
        last = max(own, key=lambda one: (one.at, one.new_place))
        if last.kind == RETRACTED:
            return None
        place = last.new_place
    return place
