"""The ways in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from offbook.projections.wiki.index_page import (
    DayLine,
    LessonLine,
    SessionLine,
    agent_index,
    agents_index,
    lessons_index,
)
from tests.unit.projections.wiki.reading import read
from tests.unit.projections.wiki.test_escaping import ANY

LINE = LessonLine(id="lesson-0001", kind="fact", status="learnt", text="Ada lives in Rome.")


def test_agents_are_sorted_and_their_folders_found() -> None:
    page = agents_index(["main", "a/b", "CON"])
    assert read(page).links == ["%2543%254F%254E/index.md", "a%252Fb/index.md", "main/index.md"]


def test_an_agent_has_counts_lessons_sessions_and_days() -> None:
    page = agent_index(
        "main",
        days=[
            DayLine(day="2026-11-14", files=["a.md"], messages=[1]),
            DayLine(day="2026-11-15", files=["b.md", "b-2.md"], messages=[2000, 5]),
        ],
        newest=[SessionLine(session_id="chat", messages=2006, day="2026-11-15", file="b-2.md", anchor="s1-2006")],
        sessions=1,
        cold_pages=0,
        lessons=[LINE],
    )
    found = read(page)
    assert found.headings == ["main", "Lessons", "Facts", "Sessions", "2026-11", "Days"]
    assert "2,006 messages in 1 session, on 2 days" in found.texts
    assert found.links == [
        "../index.md",
        "lessons/index.md",
        "lessons/lesson-0001.md",
        "sources/session-logs/b-2.md#s1-2006",
        "sources/session-logs/b.md",
        "sources/session-logs/b-2.md",
        "sources/session-logs/a.md",
    ]


def test_lessons_stand_by_kind_and_those_that_do_not_hold_apart() -> None:
    lines = [
        LINE,
        LessonLine(id="lesson-10000", kind="fact", status="accepted", text="b", about="Ada"),
        LessonLine(id="lesson-0002", kind="decision", status="learnt", text="c"),
        LessonLine(id="lesson-0003", kind="fact", status="rejected", text="d"),
        LessonLine(id="lesson-0004", kind="fact", status="learnt", text="e", replaced_by="lesson-0001"),
    ]
    page = lessons_index("main", lines[::-1])
    assert read(page).headings == ["Lessons of main", "Decisions", "Facts", "No longer holds", "Rejected"]
    assert read(page).links[1:] == [f"lesson-{number}.md" for number in ("0002", "0001", "10000", "0004", "0003")]
    assert "lesson-10000: b (Ada) · accepted" in read(page).texts


@given(ANY, ANY, st.text(min_size=1, max_size=30))
def test_nothing_in_a_name_or_a_statement_is_more_than_text(text: str, about: str, agent: str) -> None:
    line = LessonLine(id="lesson-0001", kind="fact", status="edited", text=text, about=about)
    session = SessionLine(session_id=about or "x", messages=1, day="2026-11-15", file="a.md", anchor="s1-1")
    page = agent_index(agent, days=[], newest=[session], sessions=1, cold_pages=0, lessons=[line])
    assert len(read(page).headings) == 5
    assert len(read(page).links) == 4
    assert not read(page).html
    assert read(lessons_index(agent, [line])).links == ["../index.md", "lesson-0001.md"]
