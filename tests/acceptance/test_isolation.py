"""A token of one agent, with the ids of another: nothing of it comes back, and nothing of it changes."""

from __future__ import annotations

import pytest
from benchmarks.prove.foreign_ids import requests, unknown_fields
from benchmarks.prove.isolation import State, Tally, changes, tried
from benchmarks.prove.planted import samples
from benchmarks.provider import working_folder

from offbook.api.verbs import VERBS
from tests.acceptance.test_fault_matrix import PLANTED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_every_field_is_known_to_name_something_or_nothing() -> None:
    assert unknown_fields() == []


def test_every_verb_is_asked_with_the_other_agent() -> None:
    made = list(requests(samples(PLANTED), PLANTED, "main"))
    assert {one.verb for one in made if one.kind == "agent"} == VERBS.keys() - {"ping"}
    assert {"entry", "event", "job", "lesson", "message", "receipt", "record", "session", "summary", "words"} < {
        one.kind for one in made
    }


def test_what_comes_back_or_changes_is_told() -> None:
    tally = Tally(PLANTED._replace(words=("sentinel",)))
    tally.note("HTTP", "recall", "words", b"sentinel", b"you said sentinel")
    assert tally.wrong == []
    tally.note("HTTP", "recall", "session", b"other", b"it says sentinel")
    assert len(tally.wrong) == 1
    before = State([1], [2], ["m1"], ["L1-0001"], {"local": 3})
    assert changes(before, before) == []
    assert len(changes(before, before._replace(pinned=[], actors={"local": 9, "token:bob": 1}))) == 2


def test_nothing_of_another_agent_comes_back_and_nothing_of_it_changes() -> None:
    with working_folder() as folder:
        found = tried(folder, is_quick=True)
    assert found.wrong == []
    assert found.figures["verbs that show it to its owner"] == 8
    assert {str(row["verb"]) for row in found.matrix} >= VERBS.keys() - {"ping"}
