from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.rules.supersession.lesson_links import adds_to, claim_of


@pytest.mark.parametrize(
    ("old", "new", "adds"),
    [
        ("My birthday is 5 May.", "Their birthday is 5 May 1990.", True),
        ("My birthday is 5 May.", "Their birthday is 6 May 1990.", False),
        ("I like tea.", "They like green tea.", True),
        ("I like tea.", "They do not like tea.", False),
        ("I don't like tea.", "They don't like tea or coffee.", True),
        ("My sister lives in Graz.", "Their sister no longer lives in Graz but in Vienna.", False),
        ("My sister lives in Graz.", "Their sister lived in Graz until 2020.", False),
        ("My sister lives in Graz.", "Their sister used to live in Graz.", False),
        ("喜欢茶", "不喜欢茶", False),
        ("我的生日是5月5日", "我的生日是5月5日，1990年", True),
        ("", "anything", False),
        ("!!!", "anything", False),
    ],
)
def test_what_only_adds(old: str, new: str, adds: bool) -> None:
    assert adds_to(new, old) == adds


def test_a_claim_is_what_was_said() -> None:
    assert claim_of("They corrected me: “My daughter is Lena.”") == "My daughter is Lena."
    assert claim_of("They prefer “tabs” over spaces.") == "They prefer “tabs” over spaces."


@given(st.text(), st.text())
def test_any_text_can_be_asked_about(old: str, new: str) -> None:
    adds_to(new, old)
    claim_of(new)
