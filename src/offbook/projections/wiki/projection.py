"""The memory as files to be read: keeps an agent's wiki in step with what is remembered (A10).

`run` does a piece of what is left: gives new messages their pages (`logs`), writes those, then what has gone cold
(`cold`), the lessons (`lessons`), people, projects and topics (`subjects`) and the indexes. Everything
here can be made again from the store, but for one thing: what a person writes into the page of a lesson. That is taken
into the store before the page is written.
"""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from heapq import nlargest
from pathlib import Path

import msgspec
import structlog

from offbook.log.store import Blobs, Store
from offbook.model.errors import StoreError, StoreFull
from offbook.model.home import safe_name
from offbook.model.lesson import LESSONS_SESSION
from offbook.model.receipt import ForgottenSpan, Residue
from offbook.model.settings import Settings
from offbook.projections.base import Batch, Erased, Finding, Progress, Removal
from offbook.projections.threads import to_the_end
from offbook.projections.wiki import subjects as subject_pages
from offbook.projections.wiki.cold import ColdPages
from offbook.projections.wiki.day_page import cold_file, log_file
from offbook.projections.wiki.files import INDEX, AgentFolder, removed, written
from offbook.projections.wiki.index_page import (
    DayLine,
    LessonLine,
    SessionLine,
    SubjectLine,
    agent_index,
    agents_index,
    lessons_index,
)
from offbook.projections.wiki.lesson_page import is_lesson_file, lesson_file
from offbook.projections.wiki.lessons import Judge, LessonPages, LessonPass, pages_saying
from offbook.projections.wiki.logs import MESSAGES_AT_A_TIME, LogPages, event_hash
from offbook.projections.wiki.state import Cold, Places, WikiState, read_state, write_state
from offbook.search.words import entry_id

FILES_AT_A_TIME = 200
NEWEST_SESSIONS = 200
BROKEN = "pages not understood"
"""Counts what is left; `lanes.LATEST` has it."""

log = structlog.get_logger("offbook.projections")


class AgentWiki:
    """What is known of one agent's wiki in this process."""

    def __init__(self, folder: AgentFolder, state_path: Path) -> None:
        self.folder = folder
        self.state_path = state_path
        self.lock = asyncio.Lock()
        self.state: WikiState | None = None
        self.saved = ""
        self.cold_there: set[str] | None = None
        """Pages of cold messages that need not be written again; None where it is time to look which are there."""
        self.lessons: LessonPass | None = None
        self.lines: list[LessonLine] = []
        """Of the last whole way through the lessons."""
        self.broken: list[str] = []
        """Of the same: the pages that could not be understood."""
        self.subjects: subject_pages.SubjectPass | None = None
        self.subject_lines: list[SubjectLine] = []
        self.subjects_made_of = ""
        """A digest of what the last whole way through the subjects was made of."""


class Wiki:
    name = "wiki"

    def __init__(
        self, store: Store, blobs: Blobs, settings: Settings, folder: Path, state_folder: Path, judge: Judge
    ) -> None:
        self._store = store
        self._settings = settings
        self._folder = folder
        self._state_folder = state_folder
        self._logs = LogPages(store, blobs)
        self._cold = ColdPages(store, self._logs)
        self._lessons = LessonPages(store, judge)
        self._subjects = subject_pages.SubjectPages(store)
        self._agents: dict[str, AgentWiki] = {}

    # ── what is asked of it ──

    async def advance(self, batch: Batch) -> Progress:
        """A piece of what is left to do: 200 messages read or 200 pages written, about; one page is written whole."""
        agent_id = batch.agent_id
        if not self._settings.for_agent(agent_id).wiki.enabled:
            return Progress(is_idle=True)
        async with self._working(agent_id) as wiki:
            state = await self._opened(agent_id, wiki)
            did: Counter[str] = Counter()
            is_done = await self._advance(wiki, state, did)
            await self._save(wiki)
        counts = {name: count for name, count in did.items() if count or name == BROKEN}
        return Progress(did=counts, is_done=is_done, waits=wiki.broken)

    async def forget(self, erased: Erased) -> Removal:
        """Pages of what is gone, and whatever else of it a person wrote into pages of lessons that stay."""
        if not erased.has_words:
            return Removal({"pages": 0})
        try:
            return Removal({"pages": await self._forget_pages(erased)})
        except StoreFull:
            raise  # it is gone through again once there is room
        except StoreError as error:
            log.warning("not forgotten there", action="forget.elsewhere", what="pages", detail=str(error))
            return Removal(residue=[Residue(where="pages", what=f"could not be looked through: {error}")])

    async def _forget_pages(self, erased: Erased) -> int:
        agent_id = erased.agent_id
        if erased.is_dry_run:
            pages = await self.pages_holding(agent_id, erased.spans, erased.lessons)
            return pages + await self.pages_saying(agent_id, erased.says, beside=erased.lessons)
        is_held = erased.spans or erased.lessons
        pages = await self.forgotten(agent_id, erased.spans, erased.lessons) if is_held else 0
        return pages + await self.pages_saying(agent_id, erased.says, is_removed=True)

    async def rebuild(self, agent_id: str) -> None:
        """Once what a person wrote into pages of lessons was taken: that is nowhere else."""
        await self.take_edits(agent_id)
        async with self._working(agent_id) as wiki:
            await to_the_end(wiki.folder.clear)
            wiki.state, wiki.saved, wiki.cold_there, wiki.lessons = None, "", None, None
            wiki.subjects, wiki.subjects_made_of = None, ""
            await to_the_end(wiki.state_path.unlink, missing_ok=True)

    async def check(self, agent_id: str, erased: Erased | None = None) -> list[Finding]:
        """Pages of days and of subjects that are missing. They are written again by themselves."""
        if erased is not None or not self._settings.for_agent(agent_id).wiki.enabled:
            return []  # files are looked through byte by byte
        async with self._working(agent_id) as wiki:
            state = wiki.state or await to_the_end(read_state, wiki.state_path, agent_id)
            there = await to_the_end(wiki.folder.logs_there)
            missing = [] if state is None else sorted(set(state.files()) - set(there))
            if state is not None:
                missing += sorted(state.subject_pages.keys() - await to_the_end(wiki.folder.subjects_there))
            return [Finding(f"wiki page {name}", "it is missing") for name in missing]

    async def take_edits(self, agent_id: str) -> int:
        """What a person wrote into pages of lessons and nobody has taken yet; returns how many wishes there were."""
        if not self._settings.for_agent(agent_id).wiki.enabled:
            return 0
        async with self._working(agent_id) as wiki:
            if not await to_the_end(wiki.folder.lessons.is_dir):
                return 0
            state = await self._opened(agent_id, wiki)
            taken = 0
            # All of them, wherever `run` is on its way through them: it begins anew.
            wiki.lessons, under_way = None, LessonPass()
            while not under_way.is_whole:
                taken += (await self._lessons.run(state, wiki.folder, under_way, partial(self._save, wiki)))[1]
            await self._save(wiki)
            return taken

    async def pages_holding(self, agent_id: str, spans: Sequence[ForgottenSpan], lesson_ids: Sequence[str] = ()) -> int:
        """How many pages of days, cold messages and lessons would be touched if these were forgotten."""
        async with self._working(agent_id) as wiki:
            state = wiki.state or await to_the_end(read_state, wiki.state_path, agent_id)
            if state is None:
                return 0
            there = await to_the_end(wiki.folder.cold_there)
            cold = sum(cold_file(entry_id(place)) in there for place in state.places_in(spans))
            files = [wiki.folder.lessons / lesson_file(id_) for id_ in lesson_ids if is_lesson_file(lesson_file(id_))]
            lessons = await to_the_end(lambda: sum(map(Path.is_file, files)))
            subjects = await to_the_end(subject_pages.holding, state, spans)
            return len(state.holding(spans)) + cold + lessons + subjects

    async def forgotten(self, agent_id: str, spans: Sequence[ForgottenSpan], lesson_ids: Sequence[str]) -> int:
        """These messages and lessons are no more: their words go from every page at once. Returns how many pages of
        days, cold messages and lessons were touched. Also where the wiki is off now, and was not before."""
        async with self._working(agent_id) as wiki:
            if not await to_the_end(wiki.folder.folder.is_dir):
                return 0
            state = await self._opened(agent_id, wiki)
            await to_the_end(wiki.folder.sweep)
            pages = state.holding(spans)
            subjects = await to_the_end(subject_pages.holding, state, spans)
            renamed = await self._subjects.forget(state, spans)
            again = set(pages).union(*(state.pages_of(session) for session in renamed))
            state.unwritten |= again
            gone = [id_ for id_ in lesson_ids if is_lesson_file(lesson_file(id_))]
            for id_ in gone:
                state.lessons.pop(id_, None)
            await self._save(wiki)  # whatever happens now, they are written again
            lessons = await to_the_end(removed, [wiki.folder.lessons / lesson_file(id_) for id_ in gone])
            places = state.places_in(spans)
            cold = await to_the_end(removed, [wiki.folder.swap / cold_file(entry_id(place)) for place in places])
            state.cold.pages -= cold
            for day, number in sorted(again):
                await self._logs.write(state, wiki.folder, day, number)
            await self._lessons.write_again(state, wiki.folder, gone, partial(self._save, wiki))
            wiki.lessons, wiki.lines = None, await self._lessons.lines(agent_id)
            under_way = wiki.subjects = await self._subjects.begun(state, wiki.lines)
            while True:
                await self._subjects.run(state, wiki.folder, under_way, partial(self._save, wiki), is_certain=True)
                if under_way.is_whole:
                    break
            wiki.subjects, wiki.subject_lines, wiki.subjects_made_of = None, under_way.lines, ""
            await self._write_indexes(wiki, state)
            await self._save(wiki)
            return len(pages) + cold + lessons + subjects

    async def pages_saying(
        self, agent_id: str, says: Callable[[str], bool], *, beside: Sequence[str] = (), is_removed: bool = False
    ) -> int:
        """How many pages of subjects, and of lessons but for those `beside`, say it where a person wrote fields of
        their own: nothing in the store tells which. `is_removed`: it goes from there. Also where the wiki is off."""
        async with self._working(agent_id) as wiki:
            look = partial(pages_saying, wiki.folder, says, beside=beside, is_removed=is_removed)
            others = partial(subject_pages.pages_saying, wiki.folder, says, is_removed=is_removed)
            return await to_the_end(look) + await to_the_end(others)

    # ── steps ──

    async def _advance(self, wiki: AgentWiki, state: WikiState, did: Counter[str]) -> bool:
        taken, is_end = await self._logs.follow(state)
        if not is_end:
            return False
        if not await self._write_logs(wiki, state, did, MESSAGES_AT_A_TIME - taken):
            return False
        if self._settings.for_agent(state.agent_id).wiki.cold_pages and not await self._write_cold(wiki, state, did):
            return False
        if not await self._write_lessons(wiki, state, did):
            return False
        if not await self._write_subjects(wiki, state, did):
            return False
        await self._write_indexes(wiki, state)
        # What a person wrote is a message now, and its page is to be linked.
        return not did["edits taken"]

    async def _write_logs(self, wiki: AgentWiki, state: WikiState, did: Counter[str], messages_left: int) -> bool:
        there = await to_the_end(wiki.folder.logs_there)
        state.unwritten |= {page for name, page in state.files().items() if name not in there}
        for count, (day, number) in enumerate(sorted(state.unwritten)):
            if messages_left <= 0 or count >= FILES_AT_A_TIME:
                return False
            is_new, read = await self._logs.write(state, wiki.folder, day, number)
            did["session logs"] += is_new
            messages_left -= read
        return True

    async def _write_cold(self, wiki: AgentWiki, state: WikiState, did: Counter[str]) -> bool:
        if wiki.cold_there is None:
            there = await to_the_end(wiki.folder.cold_there)
            is_whole = len(there) >= state.cold.pages
            wiki.cold_there = set() if is_whole else there
            if not is_whole:  # somebody removed some, or all: they are looked for among all messages
                state.cold = Cold()
        ttl = self._settings.for_agent(state.agent_id).ttl
        wrote, is_done = await self._cold.run(state, wiki.folder, ttl, wiki.cold_there, FILES_AT_A_TIME)
        did["cold pages"] += wrote
        if is_done:
            wiki.cold_there = None
        return is_done

    async def _write_lessons(self, wiki: AgentWiki, state: WikiState, did: Counter[str]) -> bool:
        wiki.lessons = wiki.lessons or LessonPass()
        wrote, taken = await self._lessons.run(state, wiki.folder, wiki.lessons, partial(self._save, wiki))
        did["lessons"] += wrote
        did["edits taken"] += taken
        if not wiki.lessons.is_whole:
            return False
        if wiki.lessons.broken or wiki.broken:  # that there is none left is said, too
            did[BROKEN] = len(wiki.lessons.broken)
        wiki.broken = wiki.lessons.broken
        wiki.lines, wiki.lessons = list(wiki.lessons.lines.values()), None
        return True

    async def _write_subjects(self, wiki: AgentWiki, state: WikiState, did: Counter[str]) -> bool:
        """Where nothing changed that they are made of, none is looked at."""
        if wiki.subjects is None:
            wiki.subjects = await self._subjects.begun(state, wiki.lines)
            wiki.subject_lines = wiki.subjects.lines
            if wiki.subjects.digest(await to_the_end(wiki.folder.subjects_there)) == wiki.subjects_made_of:
                wiki.subjects = None
                return True
        did["subjects"] += await self._subjects.run(state, wiki.folder, wiki.subjects, partial(self._save, wiki))
        if not wiki.subjects.is_whole:
            return False
        wiki.subjects_made_of = wiki.subjects.digest(await to_the_end(wiki.folder.subjects_there))
        wiki.subject_lines, wiki.subjects = wiki.subjects.lines, None
        return True

    async def _write_indexes(self, wiki: AgentWiki, state: WikiState) -> None:
        agent_id, folder = state.agent_id, wiki.folder
        if not state.days and not wiki.lines and not await to_the_end(folder.folder.is_dir):
            return
        page = agent_index(
            agent_id,
            days=[_day(state, day) for day in sorted(state.days)],
            newest=_newest(state),
            sessions=len(state.sessions),
            cold_pages=state.cold.pages,
            lessons=wiki.lines,
            subjects=wiki.subject_lines,
        )
        has_lessons = await to_the_end(folder.lessons.is_dir)
        if wiki.lines or has_lessons:
            await to_the_end(written, folder.lessons / INDEX, lessons_index(agent_id, wiki.lines), folder.wiki)
        await to_the_end(written, folder.index, page, folder.wiki)
        agents = [name for name in await self._store.agents() if self._settings.for_agent(name).wiki.enabled]
        await to_the_end(_write_agents, self._folder, agents)

    # ── state ──

    @asynccontextmanager
    async def _working(self, agent_id: str) -> AsyncIterator[AgentWiki]:
        """One at a time. What failed on the disk is an error that says what to do."""
        if agent_id not in self._agents:
            path = self._state_folder / f"{safe_name(agent_id)}.json"
            self._agents[agent_id] = AgentWiki(AgentFolder(self._folder, agent_id), path)
        wiki = self._agents[agent_id]
        async with wiki.lock:
            try:
                yield wiki
            except OSError as error:
                is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
                raise (StoreFull if is_full else StoreError)(
                    f"the wiki in {wiki.folder.folder} cannot be written ({error}): make room or mend its permissions; "
                    "the memory itself is whole, and the pages follow once it is possible again"
                ) from error

    async def _opened(self, agent_id: str, wiki: AgentWiki) -> WikiState:
        """As it was left; made anew where nothing is known of it, or where it is of another store."""
        if wiki.state is not None:
            return wiki.state
        found = await to_the_end(read_state, wiki.state_path, agent_id)
        if found is not None and found.through_event:
            is_ours = await event_hash(self._store, agent_id, found.through_event) == found.through_hash
            found = found if is_ours else None
        if found is None:
            cleared = await to_the_end(wiki.folder.clear)
            if cleared:
                log.info("the wiki is made anew", action="wiki.anew", agent=agent_id, pages=cleared)
            found = WikiState(agent_id=agent_id)
        else:
            await to_the_end(wiki.folder.sweep)
        wiki.state = found
        return found

    async def _save(self, wiki: AgentWiki) -> None:
        text = msgspec.json.encode(wiki.state).decode() + "\n"
        if text != wiki.saved:
            await to_the_end(write_state, wiki.state_path, text)
            wiki.saved = text


def _day(state: WikiState, day: str) -> DayLine:
    parts = state.days[day]
    files = [log_file(state.agent_id, day, number) for number in range(1, len(parts) + 1)]
    return DayLine(day=day, files=files, messages=[part.messages for part in parts])


def _newest(state: WikiState) -> list[SessionLine]:
    """By when the last message of each was said: what was imported yesterday may be years old."""
    places, found = Places(state), list[tuple[str, int, SessionLine]]()
    for number, session in state.sessions.items():
        if session.session_id == LESSONS_SESSION:
            continue  # nobody talked there: the lessons have pages of their own
        known = places.newest(session.session_id)
        where = None if known is None else places.find(session.session_id, known[1])
        if known is not None and where is not None:
            line = SessionLine(
                session_id=session.session_id,
                messages=known[0],
                day=where.day,
                file=where.file,
                anchor=where.anchor,
                title=state.title(number),
            )
            found.append((session.last_said or where.day, number, line))
    return [line for _, _, line in nlargest(NEWEST_SESSIONS, found, key=lambda each: each[:2])]


def _write_agents(wiki: Path, agents: Sequence[str]) -> None:
    """Those that have an index to lead to."""
    there = [name for name in agents if (wiki / safe_name(name) / INDEX).is_file()]
    written(wiki / INDEX, agents_index(there), wiki)
