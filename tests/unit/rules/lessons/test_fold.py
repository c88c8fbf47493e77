"""The same again is one lesson, what changed takes the place of what was; twice the same piece leaves the same."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.model.lesson import Lesson
from offbook.rules.lessons.fold import folded, holding, spoken_against
from offbook.rules.lessons.reader import LessonMention
from tests.unit.rules.lessons.lessons import NOON, fields_of, kept, said

SENTENCES = (
    "I prefer tabs over spaces.",
    "I prefer spaces over tabs.",
    "My birthday is on 5 May.",
    "My birthday is on 6 May.",
    "I hate cilantro.",
    "I love cilantro.",
    "Our database version is 15.",
    "Our database version is 16.",
    "We'll use uv instead of poetry.",
    "We'll use poetry instead of uv.",
    "Please always answer in German.",
    "To deploy, run make release and restart the worker.",
    "I'm allergic to peanuts.",
    "My favourite colour is blue.",
    "My favourite colour is green now, not blue.",
    "My favourite colour is no longer green.",
    "We decided to use MySQL for reporting.",
    "We decided to use MariaDB for reporting instead of MySQL.",
    "We're no longer using MySQL for reporting.",
    "Always use tabs for indentation.",
    "Use spaces for indentation from now on, not tabs.",
    "No longer use tabs for indentation.",
)


def learnt(known: list[Lesson], sayings: list[LessonMention]) -> list[Lesson]:
    """As the worker does it: what was outdated when it was learnt is noted in a second step."""
    found = folded(known, sayings)
    there = kept(found.drafts, known, sayings, found.replaced)
    ids = {one.key: one.id for one in there}
    return kept([], there, [], {ids[old]: new for old, new in found.outdated.items()})


def what_holds(lessons: list[Lesson]) -> list[tuple[str, str, int, float]]:
    return sorted((one.key, one.text, one.times, round(one.confidence, 3)) for one in holding(lessons))


def test_said_again_it_is_the_same_lesson_and_surer() -> None:
    first = learnt([], said("I prefer tabs over spaces.", 1))
    (again,) = learnt(first, said("I prefer tabs over spaces!", 2))
    assert (again.id, again.times) == (first[0].id, 2)
    assert again.confidence > first[0].confidence
    assert again.first_seen < again.last_seen


def test_a_changed_value_takes_the_place_of_the_older_one() -> None:
    first = learnt([], said("My birthday is on 5 May.", 1))
    both = learnt(first, said("Sorry, my birthday is on 6 May.", 2))
    old, new = sorted(both, key=lambda one: one.id)
    assert old.replaced_by == new.id
    assert new.replaced_by is None


def test_who_changes_their_mind_back_is_believed() -> None:
    there: list[Lesson] = []
    for seq, text in enumerate(("I hate cilantro.", "I love cilantro.", "I hate cilantro."), 1):
        there = learnt(there, said(text, seq))
    (one,) = holding(there)
    assert (one.text, one.times) == ("They hate cilantro.", 2)


def test_what_arrives_late_is_replaced_by_what_was_said_since() -> None:
    newer = learnt([], said("My birthday is on 6 May.", 9))
    both = learnt(newer, said("My birthday is on 5 May.", 1))
    assert [one.text for one in holding(both)] == ["Their birthday is on 6 May."]


def test_a_move_needs_a_word_of_change() -> None:
    first = learnt([], said("I live in Lisbon.", 1))
    assert len(holding(learnt(first, said("I live in Chiado.", 2)))) == 2
    (one,) = holding(learnt(first, said("I moved to Berlin.", 2)))
    assert one.text == "They moved to Berlin."


def test_both_may_be_true_but_the_older_one_is_doubted() -> None:
    both = learnt(learnt([], said("I live in Lisbon.", 1)), said("I live in Chiado.", 2))
    assert spoken_against(both) == {both[0].id}


def test_what_a_person_rejected_replaces_nothing_and_stays_rejected() -> None:
    (first,) = learnt([], said("My birthday is on 5 May.", 1))
    (wrong,) = learnt([], said("My birthday is on 6 May.", 2))
    rejected = Lesson(**{**fields_of(wrong), "id": "lesson-0002", "status": "rejected"})
    found = folded([first, rejected], said("My birthday is on 6 May.", 3))
    assert found.replaced == {}
    assert [draft.key for draft in found.drafts] == [rejected.key]


def test_what_was_rejected_outdates_nothing() -> None:
    (wrong,) = learnt([], said("My birthday is on 6 May.", 9))
    rejected = Lesson(**{**fields_of(wrong), "status": "rejected"})
    found = folded([rejected], said("My birthday is on 5 May.", 1))
    assert (found.outdated, found.replaced) == ({}, {})


def test_of_two_values_at_one_moment_both_hold() -> None:
    both = said("My birthday is on 5 May.", 1, at=NOON) + said("My birthday is on 6 May.", 2, at=NOON)
    assert len(holding(learnt([], both))) == 2


def test_the_newest_words_are_kept() -> None:
    newer = learnt([], said("I prefer tabs to spaces.", 9))
    (one,) = learnt(newer, said("I prefer tabs over spaces.", 1))
    assert (one.text, one.times) == ("They prefer tabs to spaces.", 2)
    (again,) = learnt([one], said("I prefer tabs over spaces.", 10))
    assert again.text == "They prefer tabs over spaces."


def test_a_place_that_is_known_teaches_nothing_new() -> None:
    first = learnt([], said("I prefer tabs over spaces.", 1))
    assert folded(first, said("I prefer tabs over spaces.", 1)).drafts == []


pieces = st.lists(st.tuples(st.sampled_from(SENTENCES), st.integers(1, 60)), max_size=12, unique_by=lambda one: one[1])


@settings(deadline=None)
@given(pieces, st.randoms(use_true_random=False), st.integers(1, 5))
def test_in_which_pieces_and_order_the_messages_come_does_not_matter(
    told: list[tuple[str, int]], chance: object, size: int
) -> None:
    sayings = [one for text, seq in told for one in said(text, seq)]
    at_once = learnt([], sayings) if sayings else []
    mixed = list(sayings)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    there: list[Lesson] = []
    for start in range(0, len(mixed), size):
        there = learnt(there, mixed[start : start + size])
    assert what_holds(there) == what_holds(at_once)


@settings(deadline=None)
@given(pieces)
def test_a_piece_done_twice_leaves_the_same(told: list[tuple[str, int]]) -> None:
    sayings = [one for text, seq in told for one in said(text, seq)]
    once = learnt([], sayings)
    assert folded(once, sayings).drafts == []
    assert learnt(once, sayings) == once
