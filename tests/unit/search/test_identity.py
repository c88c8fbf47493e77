from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.search.words import entry_id, place_named

LARGEST = 2**63 - 1


@given(st.integers(1, LARGEST))
def test_every_place_has_a_name_that_leads_back_to_it(place: int) -> None:
    assert place_named(entry_id(place)) == place


@given(st.text(max_size=20) | st.from_regex(r"m[0-9a-f]{1,17}"))
def test_a_name_is_that_of_one_place_or_of_none(name: str) -> None:
    place = place_named(name)
    assert place is None or (entry_id(place) == name and 0 < place <= LARGEST)


@pytest.mark.parametrize(
    "name", ["", "m", "m0", "m01", "M1", "m1\n", " m1", "m1 ", "m-1", "1", "mA", "m１", "m8000000000000000", "x1"]
)
def test_what_is_no_name(name: str) -> None:
    assert place_named(name) is None


def test_the_first_and_the_last() -> None:
    assert (place_named("m1"), place_named("m7fffffffffffffff")) == (1, LARGEST)
