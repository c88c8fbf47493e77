"""The pages of lessons: what a person changed in them is taken first, then they are written from the lessons."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Sequence
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

import structlog

from offbook.log.store import Store
from offbook.model.errors import InvalidInput, NotFound
from offbook.model.lesson import Lesson, Verdict
from offbook.projections.threads import to_the_end
from offbook.projections.wiki.files import AgentFolder, read_text, removed
from offbook.projections.wiki.files import written as write_page
from offbook.projections.wiki.index_page import LessonLine, line_of
from offbook.projections.wiki.lesson_page import (
    SourceLink,
    is_lesson_file,
    is_ours,
    judgements,
    lesson_file,
    lesson_page,
    page_without,
    read_page,
    written,
)
from offbook.projections.wiki.own_fields import BrokenPage
from offbook.projections.wiki.state import Places, WikiState

LESSONS_AT_A_TIME = 100

Judge = Callable[[str, str, Verdict, str | None], Awaitable[None]]
"""Agent, lesson, what a person wants, and their words."""

log = structlog.get_logger("offbook.projections")


class Page(NamedTuple):
    """A page to be written, and what was found in its place."""

    lesson: Lesson
    text: str
    found: str | None


class LessonPass:
    """One way through all lessons of an agent, some at a time."""

    def __init__(self) -> None:
        self.lines: dict[str, LessonLine] = {}
        self.before: str | None = None
        self.is_whole = False
        self.broken: list[str] = []
        """Pages that are left as they are until somebody mends them, each with what is wrong with it."""


class LessonPages:
    def __init__(self, store: Store, judge: Judge) -> None:
        self._store = store
        self._judge = judge
        self._told: dict[tuple[str, str], str] = {}
        """What was said of a page that cannot be read; it is said once."""

    async def run(
        self, state: WikiState, folder: AgentFolder, under_way: LessonPass, save: Callable[[], Awaitable[None]]
    ) -> tuple[int, int]:
        """The next lessons; returns how many pages were written, and how many wishes of a person taken."""
        lessons = await self._store.lessons(state.agent_id, before=under_way.before, limit=LESSONS_AT_A_TIME)
        taken, pages, places = 0, list[Page](), Places(state)
        for lesson in lessons:
            try:
                wishes, kept, page = await self._read(state, folder, lesson, places)
            except BrokenPage as error:
                self._tell(state.agent_id, lesson_file(lesson.id), str(error))
                wishes, kept, page = 0, lesson, None
                under_way.broken.append(f"{folder.page_of_lesson(lesson_file(lesson.id))}: {error}")
            taken += wishes
            under_way.lines |= {} if kept is None else {kept.id: line_of(kept)}
            pages += [] if page is None else [page]
        wrote = await self._write(state, folder, pages, save)
        under_way.before = lessons[-1].id if lessons else under_way.before
        under_way.is_whole = len(lessons) < LESSONS_AT_A_TIME
        if under_way.is_whole:
            await self._remove_others(state, folder, set(under_way.lines))
        return wrote, taken

    async def write_again(
        self, state: WikiState, folder: AgentFolder, ids: Sequence[str], save: Callable[[], Awaitable[None]]
    ) -> None:
        """The pages of those that are still there. Theirs were removed: nothing is taken from them."""
        pages, places = list[Page](), Places(state)
        for id_ in ids:
            lesson = await self._store.lesson(state.agent_id, id_)
            pages += [Page(lesson, lesson_page(lesson, _linked(lesson, places)), None)] if lesson is not None else []
        await self._write(state, folder, pages, save)

    async def lines(self, agent_id: str) -> list[LessonLine]:
        """What the indexes say of all of them."""
        found: list[LessonLine] = []
        while page := await self._store.lessons(
            agent_id, before=found[-1].id if found else None, limit=LESSONS_AT_A_TIME
        ):
            found += [line_of(lesson) for lesson in page]
        return found

    async def _read(
        self, state: WikiState, folder: AgentFolder, lesson: Lesson, places: Places
    ) -> tuple[int, Lesson | None, Page | None]:
        """How many wishes were taken from its page, the lesson as it is then, and the page to write, if any. One that
        cannot be understood, or whose wish is refused, is a `BrokenPage`."""
        path = folder.lessons / lesson_file(lesson.id)
        if not is_lesson_file(path.name):
            return 0, lesson, None
        page_now = lesson_page(lesson, _linked(lesson, places))
        before = state.lessons.get(lesson.id, [])
        if not before:
            await self._make_room(state, path, lesson.id, page_now)
        found = await to_the_end(read_text, path)
        if found is None:
            return 0, lesson, Page(lesson, page_now, None)
        if found == page_now:
            state.lessons[lesson.id] = [written(lesson)]
            return 0, lesson, None
        page = read_page(found, lesson.id)
        page_now = lesson_page(lesson, _linked(lesson, places), page.own)
        if found == page_now:
            state.lessons[lesson.id] = [written(lesson)]
            return 0, lesson, None
        wishes = judgements(page, lesson, page_now, before)
        try:
            for verdict, text in wishes:
                await self._judge(state.agent_id, lesson.id, verdict, text)
        except (InvalidInput, NotFound) as error:
            raise BrokenPage(f"the change cannot be taken: {error.detail}") from error
        self._told.pop((state.agent_id, path.name), None)
        if not wishes:
            return 0, lesson, Page(lesson, page_now, found)
        judged = await self._store.lesson(state.agent_id, lesson.id)
        if judged is None:
            return len(wishes), None, None
        return len(wishes), judged, Page(judged, lesson_page(judged, _linked(judged, places), page.own), found)

    async def _make_room(self, state: WikiState, path: Path, lesson_id: str, page_now: str) -> None:
        """Before the first page of a lesson is written: what somebody wrote under that name is theirs to keep."""
        aside = await to_the_end(_moved_aside, path, lesson_id, page_now, state.knows_lessons)
        if aside is not None:
            log.warning(
                "a page of somebody's own was in the place of a lesson's",
                action="wiki.aside",
                agent=state.agent_id,
                page=path.name,
                detail=f"it is {aside} now: choose a name for it that is not lesson-NUMBER.md",
            )

    async def _write(
        self, state: WikiState, folder: AgentFolder, pages: Sequence[Page], save: Callable[[], Awaitable[None]]
    ) -> int:
        """What is about to be written is noted before: whenever this ends, our own words are not taken for a
        person's."""
        if not pages:
            return 0
        for page in pages:
            state.lessons[page.lesson.id] = [*state.lessons.get(page.lesson.id, []), written(page.lesson)]
        await save()
        wrote = await to_the_end(_write_all, folder, pages)
        for page in wrote:
            state.lessons[page.lesson.id] = [written(page.lesson)]
        return len(wrote)

    async def _remove_others(self, state: WikiState, folder: AgentFolder, known: set[str]) -> None:
        """Pages of lessons that are no more. What somebody else wrote under such a name stays."""
        gone = [id_ for id_ in state.lessons if id_ not in known]
        await to_the_end(_remove_pages, folder, gone, known, state.knows_lessons)
        for id_ in gone:
            del state.lessons[id_]
        state.knows_lessons = True

    def _tell(self, agent_id: str, name: str, what: str) -> None:
        if self._told.get((agent_id, name)) != what:
            log.warning(
                "a lesson's page is left as it is",
                action="wiki.broken",
                agent=agent_id,
                page=name,
                detail=f"{what}: mend the page, or remove it, and it is written again",
            )
        self._told[agent_id, name] = what


def _linked(lesson: Lesson, places: Places) -> list[SourceLink]:
    found = []
    for source in lesson.sources:
        where = places.find(source.session_id, source.seq)
        found.append(
            SourceLink(source=source, file=where.file, anchor=where.anchor) if where else SourceLink(source=source)
        )
    return found


def _write_all(folder: AgentFolder, pages: Sequence[Page]) -> list[Page]:
    """Those that were written. One that somebody changed since it was read is left for the next time."""
    wrote = []
    for page in pages:
        path = folder.lessons / lesson_file(page.lesson.id)
        try:
            is_as_found = read_text(path) == page.found
        except BrokenPage:
            continue
        if is_as_found:
            write_page(path, page.text, folder.wiki)
            wrote.append(page)
    return wrote


def pages_saying(
    folder: AgentFolder, says: Callable[[str], bool], *, beside: Collection[str] = (), is_removed: bool
) -> int:
    """How many pages of lessons, but for those `beside`, say it in fields of a person's own. `is_removed`: they are
    written again without."""
    count = 0
    # A file may stand where the folder should: nothing can be written then, and there is nothing to forget.
    for name in sorted(folder.lessons_there()) if folder.lessons.is_dir() else ():
        path, id_ = folder.lessons / name, name.removesuffix(".md")
        try:
            text = None if id_ in beside else read_text(path)
            left = None if text is None else page_without(text, id_, says)
        except BrokenPage:
            continue  # theirs to mend: whoever looks through the files tells of it
        if left is None or left == text:
            continue
        count += 1
        if is_removed:
            write_page(path, left, folder.wiki)
    return count


def _moved_aside(path: Path, lesson_id: str, page_now: str, knows_lessons: bool) -> str | None:
    """The name that somebody's page has now; None where there is none. Where it is not known which pages we wrote, one
    that says all that ours say counts as ours."""
    try:
        text = read_text(path)
        if text is None or text == page_now or (not knows_lessons and is_ours(text, lesson_id)):
            return None
    except BrokenPage:
        pass
    names = chain([f"{lesson_id}.own.md"], (f"{lesson_id}.own-{number}.md" for number in count(2)))
    aside = next(name for name in names if not os.path.lexists(path.with_name(name)))
    path.rename(path.with_name(aside))
    return aside


def _remove_pages(folder: AgentFolder, gone: Sequence[str], known: set[str], knows_lessons: bool) -> None:
    removed(folder.lessons / lesson_file(id_) for id_ in gone if is_lesson_file(lesson_file(id_)))
    if knows_lessons:  # all that we wrote were named; else a page is known by what it says
        return
    for name in folder.lessons_there():
        id_ = name.removesuffix(".md")
        if id_ in known:
            continue
        try:
            text = read_text(folder.lessons / name)
        except BrokenPage:
            continue
        if text is not None and is_ours(text, id_):
            removed([folder.lessons / name])
