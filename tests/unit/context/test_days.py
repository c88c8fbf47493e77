from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.context.days import day_of_heading, heading, heading_chars


@given(st.dates(), st.dates() | st.none())
def test_a_heading_is_read_as_it_was_written(day: date, before: date | None) -> None:
    text = heading(day, before)
    assert len(text) == heading_chars(day, before)
    assert day_of_heading(text, before) == day


@pytest.mark.parametrize("line", ["[8 May]", "[31 February 2023]", "[note]", "8 May 2023", "They: [8 May 2023]"])
def test_other_lines_are_no_headings(line: str) -> None:
    assert day_of_heading(line, None) is None
