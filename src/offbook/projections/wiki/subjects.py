"""The pages of people, projects and topics: chosen from all that is known of them, written some at a time.

What they quote is read from the log each time: nothing of it is kept beside the page. Before a page is written it is
noted as ours, so that one that goes is found, whenever the work was broken off.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

from offbook.log.store import Store
from offbook.model.memory_entry import TAKEN_BACK, PlacedMessage
from offbook.model.receipt import FORGOTTEN, ForgottenSpan
from offbook.model.types import Scope
from offbook.projections.threads import to_the_end
from offbook.projections.wiki.day_page import said_at
from offbook.projections.wiki.files import AgentFolder, read_text, removed, written
from offbook.projections.wiki.index_page import LessonLine, SubjectLine
from offbook.projections.wiki.own_fields import BrokenPage, without_own
from offbook.projections.wiki.state import Places, WikiState
from offbook.projections.wiki.subject_page import (
    MOST_STATEMENTS,
    OURS,
    Linked,
    Told,
    lessons_about,
    page_ids,
    read_own,
    subject_page,
)
from offbook.search.resolve import PARTLY, SINCE
from offbook.search.whole_messages import readable
from offbook.search.words import terms
from offbook.statements.common_words import is_unspaced
from offbook.statements.subjects import TITLED_WITHIN, Mention, Subject, Title, dropped, related, subjects_of, title_of
from offbook.statements.turns import read_turn, text_read

PAGES_AT_A_TIME = 25
MOST_RELATED, MOST_LESSONS = 8, 20


class SubjectPass:
    """One way through the subjects of an agent, some at a time."""

    def __init__(self, state: WikiState, lessons: Sequence[LessonLine]) -> None:
        self.subjects = subjects_of(state.subjects)
        self.pages = page_ids(self.subjects)
        self.lessons = [(line, set(terms(f"{line.text} {line.about or ''}"))) for line in lessons]
        self.quoted = {one.key: _quoted(one) for one in self.subjects}
        self.replaced: set[int] = set()
        self.through_event = state.through_event
        self.at = 0

    @property
    def is_whole(self) -> bool:
        return self.at >= len(self.subjects)

    @property
    def lines(self) -> list[SubjectLine]:
        return [
            SubjectLine(kind=one.kind, label=one.label, path=self.pages[one.key], statements=len(self.quoted[one.key]))
            for one in self.subjects
        ]

    def digest(self, there: set[str]) -> str:
        """Of all that the pages are made of, and which of them are there."""
        links = sorted(self.replaced)
        known = (self.through_event, links, [line for line, _ in self.lessons], sorted(self.pages.items()))
        return sha256(repr((known, sorted(there & set(self.pages.values())))).encode("utf-8", "replace")).hexdigest()


class SubjectPages:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def begun(self, state: WikiState, lessons: Sequence[LessonLine]) -> SubjectPass:
        under_way = await to_the_end(SubjectPass, state, lessons)
        places = sorted({one.place for quoted in under_way.quoted.values() for one in quoted})
        links = await self._store.supersessions(state.agent_id, places)
        holding = (TAKEN_BACK, SINCE, PARTLY)
        under_way.replaced = {link.old_place for link in links if link.kind not in holding}
        return under_way

    async def run(
        self,
        state: WikiState,
        folder: AgentFolder,
        under_way: SubjectPass,
        save: Callable[[], Awaitable[None]],
        *,
        is_certain: bool = False,
    ) -> int:
        """The next pages; returns how many were written. `is_certain`: what cannot be understood of ours goes."""
        piece = under_way.subjects[under_way.at : under_way.at + PAGES_AT_A_TIME]
        if not state.knows_subjects:
            known = await to_the_end(_pages_of_ours, folder)
            state.subject_pages = dict.fromkeys(known, "") | state.subject_pages
        before = {key: page_id for page_id, key in state.subject_pages.items() if page_id != under_way.pages.get(key)}
        is_known = {under_way.pages[one.key] for one in piece} & state.subject_pages.keys()
        state.subject_pages |= {under_way.pages[one.key]: one.key for one in piece}
        await save()
        wrote, places = 0, Places(state)
        for one in piece:
            page_id = under_way.pages[one.key]
            told = await self._told(state, places, under_way, one)
            together = related(one, under_way.subjects, MOST_RELATED)
            others = [Linked(label=other.label, path=under_way.pages[other.key]) for other in together]
            lessons = lessons_about(one, under_way.lessons, is_unspaced(one.key[0]))[-MOST_LESSONS:]
            page = partial(subject_page, one, page_id, told, others, lessons)
            is_new = await to_the_end(
                _write, folder, page_id, before.get(one.key), page, is_certain and page_id in is_known
            )
            if is_new is None:
                del state.subject_pages[page_id]  # somebody's own
            wrote += bool(is_new)
        under_way.at += PAGES_AT_A_TIME
        if under_way.is_whole:
            gone = state.subject_pages.keys() - set(under_way.pages.values())
            await to_the_end(removed, [folder.page_of_subject(page_id) for page_id in gone])
            state.subject_pages = {page: key for page, key in state.subject_pages.items() if page not in gone}
            state.knows_subjects = True
        return wrote

    async def forget(self, state: WikiState, spans: Sequence[ForgottenSpan]) -> set[int]:
        """Drop what was said there; returns the sessions that are called otherwise now."""
        is_gone = _within(state, spans)
        before = dict(state.subjects.titles)
        dropped(state.subjects, is_gone)
        renamed = before.keys() - state.subjects.titles.keys()
        for session in renamed:
            await self._name_again(state, session)
        return renamed

    async def _name_again(self, state: WikiState, session: int) -> None:
        scope = Scope(agent_id=state.agent_id, session_id=state.sessions[session].session_id)
        for one in await self._store.messages(scope, after_seq=0, limit=TITLED_WITHIN):
            if one.message.role != "user" or one.seq > TITLED_WITHIN or one.entry.noise is not None:
                continue
            if title := title_of(read_turn(one.seq, said_at(one), one.message, is_noise=False)):
                state.subjects.titles[session] = Title(one.seq, title)
                return

    async def _told(self, state: WikiState, places: Places, under_way: SubjectPass, one: Subject) -> list[Told]:
        quoted = under_way.quoted[one.key]
        found = await readable(self._store, state.agent_id, [mention.place for mention in quoted])
        messages = {placed.place: placed for placed in found if placed.logged.entry.noise != FORGOTTEN}
        return [
            told
            for mention in quoted
            if mention.place in messages
            and (told := _read(state, places, mention, messages[mention.place], mention.place in under_way.replaced))
        ]


def holding(state: WikiState, spans: Sequence[ForgottenSpan]) -> int:
    """How many of our pages quote any of these messages."""
    is_gone = _within(state, spans)
    keys = {
        one.key for one in subjects_of(state.subjects) if any(is_gone(each.session, each.seq) for each in one.mentions)
    }
    return len(keys.intersection(state.subject_pages.values()))


def pages_saying(folder: AgentFolder, says: Callable[[str], bool], *, is_removed: bool) -> int:
    """How many pages of subjects say it in fields of a person's own. `is_removed`: they are written again without."""
    count = 0
    for page_id in sorted(_pages_of_ours(folder)):
        path = folder.page_of_subject(page_id)
        text = read_text(path) or ""
        left = without_own(text, page_id, OURS, says)
        if left != text:
            count += 1
            if is_removed:
                written(path, left, folder.wiki)
    return count


def _within(state: WikiState, spans: Sequence[ForgottenSpan]) -> Callable[[int, int], bool]:
    numbers = {known.session_id: number for number, known in state.sessions.items()}
    meant: dict[int, list[ForgottenSpan]] = {}
    for span in spans:
        meant.setdefault(numbers.get(span.session_id, 0), []).append(span)
    return lambda session, seq: any(one.first_seq <= seq <= one.last_seq for one in meant.get(session, ()))


def _quoted(one: Subject) -> list[Mention]:
    """The sentences that say something of it, each once; where there are too many, the lasting and the newest."""
    once = {(each.place, each.start): each for each in one.mentions if each.is_stated}
    chosen = sorted(once, key=lambda at: (once[at].is_lasting, at))[-MOST_STATEMENTS:]
    return [once[at] for at in sorted(chosen)]


def _read(state: WikiState, places: Places, mention: Mention, placed: PlacedMessage, is_replaced: bool) -> Told | None:
    logged = placed.logged
    text = text_read(logged.message, is_noise=logged.entry.noise is not None)[mention.start : mention.end].strip()
    where = places.find(placed.session_id, logged.seq)
    if not text:
        return None
    return Told(
        text=text,
        at=said_at(logged),
        session=state.title(mention.session) or placed.session_id,
        order=(mention.place, mention.start),
        file=where.file if where else "",
        anchor=where.anchor if where else "",
        speaker=logged.message.name or "",
        is_lasting=mention.is_lasting,
        is_replaced=is_replaced,
    )


def _write(
    folder: AgentFolder, page_id: str, before: str | None, page: Callable[[str], str], is_certain: bool
) -> bool | None:
    """Whether it had to be written; None where somebody else's page stands there, which stays. A person's own fields
    stay, also where the page was called otherwise `before`."""
    path, own = folder.page_of_subject(page_id), ""
    try:
        found = read_text(path)
        own = "" if found is None else read_own(found, page_id)
    except BrokenPage:
        if not is_certain:
            return None
        found = ""
    if found is None and before is not None:
        own = _own_of(folder.page_of_subject(before), before)
    return written(path, page(own), folder.wiki)


def _own_of(path: Path, page_id: str) -> str:
    try:
        text = read_text(path)
        return "" if text is None else read_own(text, page_id)
    except BrokenPage:
        return ""


def _pages_of_ours(folder: AgentFolder) -> list[str]:
    """By what they say."""
    found: list[str] = []
    for page_id in folder.subjects_there():
        try:
            text = read_text(folder.page_of_subject(page_id))
            if text is not None:
                read_own(text, page_id)
                found.append(page_id)
        except BrokenPage:
            continue
    return found
