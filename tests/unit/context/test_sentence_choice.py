from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.context.sentence_choice import told_within

ANSWER = (
    "Great question! I am so glad you asked. The deploy fails because the token expired on Monday. "
    "Renew it in the vault and restart the runner. Let me know if you need anything else! Have a lovely day!"
)


def test_what_fits_is_told_whole() -> None:
    assert told_within(f"  {ANSWER}\n", len(ANSWER), is_user=False) == ANSWER


def test_substance_comes_before_pleasantries_in_its_own_order_and_gaps_are_marked() -> None:
    assert told_within(ANSWER, 115, is_user=False) == (
        "… The deploy fails because the token expired on Monday. Renew it in the vault and restart the runner. …"
    )


def test_what_was_asked_for_is_told_wherever_it_stands() -> None:
    filler = "We also moved the desks on the second floor. " * 30
    text = f"{filler}Ines carries an EpiPen since the biscuit. {filler}"
    told = told_within(text, 200, asked={"epipen", "ines"}, is_user=True)
    assert "Ines carries an EpiPen since the biscuit." in told
    assert told.startswith("… ")
    assert told.endswith(" …")


@given(st.text(max_size=400), st.integers(0, 300))
def test_never_longer_than_there_is_room_unless_one_sentence_is(text: str, room: int) -> None:
    told = told_within(text, room, is_user=True)
    assert len(told) <= room or told == text.strip()


@pytest.mark.parametrize("room", [40, 80, 120])
def test_sentences_stay_whole(room: int) -> None:
    told = told_within(ANSWER, room, is_user=False)
    for part in told.split("…"):
        assert part.strip() in ANSWER
        assert not part.strip() or part.strip()[-1] in ".!"
