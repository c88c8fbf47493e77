"""Pages of our own are known by how they begin, and those of others are not."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from offbook.client.history.conversations import ImportReport
from offbook.contrib.importers.markdown import conversations, is_own_page
from offbook.model.lesson import Lesson, LessonSource
from offbook.projections.wiki.day_page import Shown, cold_page, day_page
from offbook.projections.wiki.index_page import agent_index, agents_index, lessons_index
from offbook.projections.wiki.lesson_page import lesson_page
from offbook.projections.wiki.subject_page import subject_page
from offbook.statements.subjects import Subject
from offbook.transfer.documents.summaries_folder import _head

AT = datetime(2026, 5, 10, 12, tzinfo=UTC)
SAID = Shown(session=1, session_id="chat", seq=1, role="user", text="I drink tea.", at=AT)
LESSON = Lesson(
    id="lesson-0001",
    agent_id="main",
    key="tea",
    kind="preference",
    status="learnt",
    text="Ada drinks tea.",
    confidence=0.8,
    first_seen=AT,
    last_seen=AT,
    times=1,
    learnt_by="rules",
    sources=[LessonSource(session_id="chat", seq=1, at=AT)],
)
OURS = {
    "lesson": lesson_page(LESSON, []),
    "day": day_page("main", "2026-05-10", 1, [SAID]),
    "second part": day_page("main", "2026-05-10", 2, [SAID]),
    "cold": cold_page("main", "m100000001", SAID, "session-main-2026-05-10.md"),
    "agent": agent_index("main", days=[], newest=[], sessions=0, cold_pages=0, lessons=[]),
    "subject": subject_page(Subject("ada", "Ada", "person", ()), "people/ada", [], [], []),
    "agents": agents_index(["main", "a[b]"]),
    "no agents": agents_index([]),
    "lessons": lessons_index("main", []),
    "summary": _head({"id": "0001", "level": "L1", "createdAt": 1, "firstAt": 1, "lastAt": 2}) + "Ada drinks tea.",
}
THEIRS = [
    "",
    "---\n",
    "# Memory\n\n- Ada drinks tea.\n",
    "# Memory\n\n- [notes](notes/index.md)\n- Ada drinks tea.\n",
    "---\nid: 1\nstatus: done\n---\nA note.",
    "---\nagent: main\ndate: 2026-05-10\n---\nWhat I did.",
    "<!--\n  id: 0001\n  level: L1\n  createdAt: 1\n-->\n\nOf the plugin.",
]


@pytest.mark.parametrize("kind", OURS)
def test_our_own_are_known(kind: str) -> None:
    assert is_own_page(OURS[kind])
    assert is_own_page("\ufeff" + OURS[kind].replace("\n", "\r\n"))


@pytest.mark.parametrize("text", THEIRS)
def test_those_of_others_are_not(text: str) -> None:
    assert not is_own_page(text)


def test_of_a_wiki_only_what_a_person_wrote_is_taken(tmp_path: Path) -> None:
    for number, text in enumerate(OURS.values()):
        (tmp_path / f"{number}.md").write_text(text)
    (tmp_path / "mine.md").write_text("Ada has a cat.")
    report = ImportReport(state="", is_dry_run=False)
    found = conversations(tmp_path, report, lambda key: "main")
    assert [each.key for each in found] == ["markdown:mine.md"]
    assert [(left.count, left.what) for left in report.left_out] == [(len(OURS), "pages of Offbook's own")]
    assert report.unreadable == 0
