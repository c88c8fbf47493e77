"""Faults against every verb: what the user sees is an answer or an error that says what to do, and whose fault it is."""

from __future__ import annotations

import pytest
from benchmarks.prove.fault_matrix import QUICK, cell_of, is_right, tried
from benchmarks.prove.planted import Planted, samples
from benchmarks.provider import working_folder

from offbook.api.verbs import VERBS
from tests.acceptance.daemon import Reply

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
PROBLEM = b'{"type":"urn:offbook:problem:%b","title":"t","status":%d,"detail":"%b","retryable":%b}'
PLANTED = Planted("a", "s", ("w", "x", "y"), "m", "m1", "m2", "L1-0001", "lesson-0001", "r", {}, 1, [], None)


def test_every_verb_has_a_valid_request() -> None:
    assert samples(PLANTED).keys() == VERBS.keys()


def problem(status: int, slug: bytes, detail: bytes = b"do this", retryable: bytes = b"true") -> Reply:
    return Reply(status, {"content-type": "application/problem+json"}, PROBLEM % (slug, status, detail, retryable))


@pytest.mark.parametrize(
    ("reply", "cell", "if_ours", "if_theirs"),
    [
        (Reply(200, {}, b"{}"), "200", True, False),
        (Reply(200, {}, b'{"degraded":["text: away"]}'), "200 degraded", True, False),
        (problem(507, b"store-full"), "507 store-full, retryable", True, False),
        (problem(500, b"store-corrupt", retryable=b"false"), "500 store-corrupt", True, False),
        (problem(422, b"wrong-shape", retryable=b"false"), "422 wrong-shape", False, True),
        (problem(500, b"x", b" "), "500: a problem document that does not say what to do", False, False),
        (Reply(500, {}, b"oh"), "500: no problem document but nothing", False, False),
    ],
)
def test_a_cell_says_what_came_and_whether_it_is_right(reply: Reply, cell: str, if_ours: bool, if_theirs: bool) -> None:
    assert cell_of(reply) == cell
    assert is_right(cell, is_ours=True) is if_ours
    assert is_right(cell, is_ours=False) is if_theirs


def test_whatever_fails_every_verb_answers_or_says_what_to_do() -> None:
    with working_folder() as folder:
        found = tried(folder, QUICK)
    assert found.wrong == []
    assert [row["verb"] for row in found.matrix] == list(VERBS)
    assert any(row["a page of the messages damaged"] == "500 store-corrupt" for row in found.matrix)
