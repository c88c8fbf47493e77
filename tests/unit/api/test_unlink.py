"""A wrong link is taken back: what had given way holds again, in recall and among the lessons, and stays so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from offbook.api.context_service import ContextService
from offbook.api.recall_service import RecallService
from offbook.context.memory_section import Known, memory_section
from offbook.log.blobs import BlobFiles
from offbook.log.reading import LogReader
from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import NotFound, WrongShape
from offbook.model.lesson import Lesson, LessonDraft
from offbook.model.memory_entry import Supersession
from offbook.model.settings import Settings
from offbook.model.types import AuditDraft, Message
from offbook.projections.lesson_corrections import retire_corrected
from offbook.search.words import entry_id
from tests.unit.projections.conftest import add, places_of

DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
LEARN, LINK = (AuditDraft(verb=verb, actor="test") for verb in ("learn", "supersede"))
NO_BACKGROUND = cast("Any", None)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "offbook.db")
    yield opened
    await opened.close()


async def said(store: SqliteStore, *texts: str) -> list[int]:
    await add(store, *(Message(role="user", content=text, ts=DAY + timedelta(days=n)) for n, text in enumerate(texts)))
    return await places_of(store)


async def learnt(store: SqliteStore, text: str, *places: int) -> Lesson:
    draft = LessonDraft(
        kind="fact", text=text, key=text, confidence=0.9, first_seen=DAY, last_seen=DAY, times=1, places=list(places)
    )
    (lesson,) = await store.keep_lessons("main", [draft], replaced={}, event=LEARN)
    return lesson


async def linked(store: SqliteStore, *pairs: tuple[int, int], kind: str = "correction") -> None:
    await store.supersede(
        "main", [Supersession(old_place=old, new_place=new, kind=kind, at=DAY) for old, new in pairs], LINK
    )
    await retire_corrected(store, "main", [new for _, new in pairs])


async def unlink(store: SqliteStore, old: int, new: int | None = None) -> int:
    service = RecallService(store, Settings(), NO_BACKGROUND)
    return (await service.unlink("main", entry_id(old), by_id=None if new is None else entry_id(new))).changed


async def now_held_by(store: SqliteStore, lesson: Lesson) -> Lesson | None:
    """The lesson that took its place."""
    kept = await store.lesson("main", lesson.id)
    assert kept is not None
    assert (kept.status, kept.text) == (lesson.status, lesson.text)
    return None if kept.replaced_by is None else await store.lesson("main", kept.replaced_by)


async def test_a_lesson_holds_again_when_its_link_is_taken_back(store: SqliteStore) -> None:
    home, sister = await said(store, "I live in Lisbon.", "My sister lives in Leipzig.")
    lesson = await learnt(store, "I live in Lisbon.", home)
    await linked(store, (home, sister))
    assert await now_held_by(store, lesson) is not None
    assert await unlink(store, home, home) == 0
    assert await now_held_by(store, lesson) is not None
    assert await unlink(store, home, sister) == 1
    assert await now_held_by(store, lesson) is None
    await linked(store, (home, sister))
    assert await now_held_by(store, lesson) is None
    assert await unlink(store, home) == 0
    events = [one for one in await store.audit_events("main", limit=100) if one.verb == "unlink"]
    assert [one.details["changed"] for one in events] == [0, 1, 0]
    assert events[1].details["entries"] == [entry_id(home), entry_id(sister)]


async def test_it_gives_way_to_what_else_replaces_it(store: SqliteStore) -> None:
    home, sister, moved = await said(store, "I live in Lisbon.", "My sister lives in Leipzig.", "I live in Bern now.")
    lesson = await learnt(store, "I live in Lisbon.", home)
    await linked(store, (home, sister))
    await linked(store, (home, moved))
    wrong = await now_held_by(store, lesson)
    assert wrong is not None
    assert "Leipzig" in wrong.text
    for _ in range(2):
        await unlink(store, home, sister)
        right = await now_held_by(store, lesson)
        assert right is not None
        assert "Bern" in right.text


async def test_one_of_two_that_say_it_is_enough(store: SqliteStore) -> None:
    first, second, later = await said(store, "I live in Lisbon.", "As I said, I live in Lisbon.", "I live in Leipzig.")
    lesson = await learnt(store, "I live in Lisbon.", first, second)
    await linked(store, (first, later), (second, later))
    assert await now_held_by(store, lesson) is not None
    assert await unlink(store, second) == 1
    assert await now_held_by(store, lesson) is None


async def test_an_id_that_is_none_is_refused(store: SqliteStore) -> None:
    service = RecallService(store, Settings(), NO_BACKGROUND)
    for fields in ({"entry_id": "lesson-0001"}, {"entry_id": entry_id(1), "by_id": "x"}):
        with pytest.raises(WrongShape, match="is no entry's id"):
            await service.unlink("main", **fields)


async def test_a_line_of_the_memory_page_leads_to_its_messages(store: SqliteStore, tmp_path: Path) -> None:
    home, _, again = await said(store, "I live in Lisbon.", "Good.", "Yes, I live in Lisbon.")
    lesson = await learnt(store, "I live in Lisbon.", home, again)
    known = Known(summaries=[], states=[], pinned=[], lessons=[lesson])
    page = memory_section(known, Settings(), session_id="s", budget=2_000, key=b"k" * 32)
    assert "- “I live in Lisbon.” (1 March 2026) [lesson-0001]" in page.text
    service = ContextService(store, LogReader(store, BlobFiles(tmp_path / "blobs")), NO_BACKGROUND)
    first = await service.expand("main", summary_id="lesson-0001", limit=1)
    rest = await service.expand("main", summary_id="lesson-0001", after=first.next)
    assert [one.message.content for one in [*first.messages, *rest.messages]] == [
        "I live in Lisbon.",
        "Yes, I live in Lisbon.",
    ]
    for agent_id, unknown in (("main", "lesson-0002"), ("other", "lesson-0001")):
        with pytest.raises(NotFound, match="no lesson"):
            await service.expand(agent_id, summary_id=unknown)
