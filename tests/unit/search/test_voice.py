from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.search.query import as_spoken, read_query

SPEAKERS = ("Caroline", "Mel", "Melanie", "James", "J.P.", "李明")


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [
        ("When did Caroline go to the support group?", "When did I go to the support group?"),
        ("What is Caroline's dog called?", "What is my dog called?"),
        ("What is caroline’s dog called?", "What is my dog called?"),
        ("Where is James' book?", "Where is my book?"),
        ("What did Melanie paint?", "What did I paint?"),
        ("What did Mel paint?", "What did I paint?"),
        ("What do Caroline and Melanie's kids like?", "What do I and my kids like?"),
        ("Who sells caramel to Melanie?", "Who sells caramel to I?"),
        ("Where is the ship?", "Where is the ship?"),
        ("The harbour is deep.", "The harbour is deep."),
        ("Do you remember my recipe?", "recipe"),
    ],
)
def test_speakers_speak_for_themselves(asked: str, spoken: str) -> None:
    assert as_spoken(read_query(asked, SPEAKERS)) == spoken


@given(st.text(max_size=200), st.lists(st.text(max_size=12), max_size=4))
def test_any_text_and_any_names_can_be_spoken(asked: str, names: list[str]) -> None:
    query = read_query(asked, names)
    assert bool(as_spoken(query)) == bool(query.text)
