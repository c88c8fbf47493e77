from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.rules.supersession.supersede import says_more


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "The release is planned for Friday the 20th. Priya is responsible for the release notes.",
            "Actually, the release is on Monday the 23rd, not Friday.",
        ),
        ("My favorite color is green and my favorite food is sushi.", "My favorite color is red."),
        (
            "The plumber comes on Tuesday at 9 and the electrician on Wednesday at 10.",
            "Correction: the electrician comes on Thursday at 10.",
        ),
        ("I work at Bosch as a test engineer and my boss is Heike.", "I work at Siemens now."),
    ],
)
def test_what_stands_beside_it(old: str, new: str) -> None:
    assert says_more(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The staging server runs on port 8080.", "Actually, the staging server now runs on port 9090."),
        ("My favourite colour is green.", "My favourite colour is now blue."),
        ("The deadline is Friday, 12 December.", "The deadline is now Monday."),
        ("I live in Lisbon.", "I moved to Berlin."),
    ],
)
def test_one_thing_only(old: str, new: str) -> None:
    assert not says_more(old, new)


@given(st.text(), st.text())
def test_any_texts(old: str, new: str) -> None:
    assert says_more(old, new) in (True, False)
    assert not says_more(old, old)
