from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.log.alignment import unsaved


def new_in(given_text: str, logged_text: str) -> str:
    """Each letter is a message."""
    given_bytes = [letter.encode() for letter in given_text]
    places = unsaved(given_bytes, [letter.encode() for letter in logged_text])
    return "".join(given_text[place] for place in places)


@pytest.mark.parametrize(
    ("context", "log", "new"),
    [
        ("", "", ""),
        ("ab", "", "ab"),
        ("ab", "ab", ""),
        ("abc", "ab", "c"),
        ("bc", "ab", "c"),  # the host has dropped the beginning
        ("Sbc", "ab", "Sc"),  # and put a summary in its place
        ("abcd", "ac", "bd"),  # one was missed in the middle
        ("yy", "y", "y"),
        ("yxy", "yxy", ""),
        ("yxyy", "yxy", "y"),
        ("xyz", "abc", "xyz"),
        ("ba", "a", "b"),
    ],
)
def test_what_is_new(context: str, log: str, new: str) -> None:
    assert new_in(context, log) == new


letters = st.text(alphabet="abc", max_size=12)


@given(letters, letters)
def test_a_context_that_goes_on_from_the_log_adds_just_what_is_new(log: str, new: str) -> None:
    assert sorted(new_in(log + new, log)) == sorted(new)


@given(letters, letters)
def test_saving_twice_saves_once(context: str, log: str) -> None:
    after = log + new_in(context, log)
    assert new_in(context, after) == ""


def test_many_equal_messages_are_no_more_work_than_others() -> None:
    """Quadratic here would be a billion steps: the test would not end."""
    log = [b"beat" if place % 3 else b"ok" for place in range(40_000)]
    context = list(chain(log[-20_000:], [b"new"] * 10))
    assert len(unsaved(context, log)) == 10
