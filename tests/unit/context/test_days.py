from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.context.days import day_of_heading, heading, heading_chars, with_dates

DAY = date(2024, 1, 1)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("we met yesterday", "we met 31 December 2023"),
        ("Tomorrow we ship", "2 January we ship"),
        ("3 days ago, two days ago", "29 December 2023, 30 December 2023"),
        ("last month and next year", "December and 2025"),
        ("the day before yesterday", "the day before yesterday"),
        ("it feels like just yesterday", "it feels like just yesterday"),
        ("before last year", "before 2023"),
        ("last week", "last week"),
    ],
)
def test_words_about_days_become_dates(said: str, meant: str) -> None:
    assert with_dates(said, DAY) == meant


def test_at_the_ends_of_time_words_stay() -> None:
    assert with_dates("yesterday", date.min) == "yesterday"
    assert with_dates("tomorrow", date.max) == "tomorrow"


@given(st.dates(), st.dates() | st.none())
def test_a_heading_is_read_as_it_was_written(day: date, before: date | None) -> None:
    text = heading(day, before)
    assert len(text) == heading_chars(day, before)
    assert day_of_heading(text, before) == day


@pytest.mark.parametrize("line", ["[8 May]", "[31 February 2023]", "[note]", "8 May 2023", "They: [8 May 2023]"])
def test_other_lines_are_no_headings(line: str) -> None:
    assert day_of_heading(line, None) is None
