"""What was corrected of an agent's memory, in sentences: read once for each link and kept, so that a turn only looks.

`links` has it read as soon as there are new ones. Nothing is kept of what was forgotten.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from offbook.log.store import Store
from offbook.model.content import own_text
from offbook.model.errors import StoreCorrupt
from offbook.model.lesson import Lesson
from offbook.model.memory_entry import TAKEN_BACK, PlacedMessage, Supersession
from offbook.model.recent import keep
from offbook.model.sentences import sentences
from offbook.model.statement import ReadSentence
from offbook.models.sentence_kinds import read_sentences
from offbook.search.resolve import SINCE
from offbook.search.whole_messages import readable
from offbook.search.words import STOP_WORDS, terms
from offbook.statements.clauses import UNCLEAR, concerns, left_of, spans_of
from offbook.statements.lessons import QUOTED

LINKS_LOOKED_AT = 300
"""The newest."""
LESSONS_LOOKED_AT = 200
AGENTS_KEPT = 32
STATES = 0.4
"""How likely one must state anything."""


class Corrected(NamedTuple):
    """A message that something later was said about."""

    kind: str
    """Of the link."""
    session_id: str
    seq: int
    outdated: dict[str, str]
    """Its sentences that no longer hold, and what is left of each."""
    since: tuple[ReadSentence, ...]
    """What was said later."""


class _Known(NamedTuple):
    links: tuple[int, ...]
    erased: tuple[int, ...]
    by_link: dict[Supersession, Corrected | None]


class Corrections:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._outdated: OrderedDict[str, tuple[tuple[int, ...], Mapping[str, str]]] = OrderedDict()

    async def newest(self, agent_id: str) -> list[Corrected]:
        """What later messages were said about, by the newest link first."""
        links, erased = (self._store.versions.of(agent_id, kind) for kind in ("links", "erased"))
        known = self._known.get(agent_id)
        if known is None or (known.links, known.erased) != (links, erased):
            before = known.by_link if known is not None and known.erased == erased else {}
            known = _Known(links, erased, await self._read(agent_id, before))
            keep(self._known, agent_id, known, AGENTS_KEPT)
        return [one for one in known.by_link.values() if one is not None]

    async def outdated(self, agent_id: str) -> Mapping[str, str]:
        """Sentences that were corrected, replaced or rejected since, and what is left of each: what is older is told
        without them."""
        version = self._store.versions.of(agent_id, "links", "erased", "lessons")
        known = self._outdated.get(agent_id)
        if known is None or known[0] != version:
            found = {text: left for one in await self.newest(agent_id) for text, left in one.outdated.items()}
            with suppress(StoreCorrupt):
                rejected = await self._store.lessons(agent_id, statuses=("rejected",), limit=LESSONS_LOOKED_AT)
                found.update((lesson.text, "") for lesson in rejected)
            known = (version, found)
            keep(self._outdated, agent_id, known, AGENTS_KEPT)
        return known[1]

    def let_go(self, agent_id: str) -> None:
        """Keep nothing in memory of the agent's."""
        self._known.pop(agent_id, None)
        self._outdated.pop(agent_id, None)

    async def _read(
        self, agent_id: str, before: dict[Supersession, Corrected | None]
    ) -> dict[Supersession, Corrected | None]:
        links = await self._store.newest_supersessions(agent_id, limit=LINKS_LOOKED_AT)
        holding = [link for link in links if link.kind != TAKEN_BACK]
        new = [link for link in holding if link not in before]
        places = sorted({place for link in new for place in (link.old_place, link.new_place)})
        placed = {one.place: one for one in await readable(self._store, agent_id, places)} if places else {}

        def read() -> dict[Supersession, Corrected | None]:
            return {
                link: corrected_by(link, placed[link.old_place], placed[link.new_place])
                for link in new
                if link.old_place in placed and link.new_place in placed
            }

        found = before | await asyncio.to_thread(read)
        return {link: found[link] for link in holding if link in found}


def corrected_by(link: Supersession, old: PlacedMessage, new: PlacedMessage) -> Corrected | None:
    """None where nothing is stated at one of the ends, or where it may be about the same and shares no word with it, or
    is about nobody knows which of several statements: that takes no place on the page."""
    said, since = _stated(old), _stated(new)
    if not said or not since:
        return None
    words = {term for one in since for term in terms(one.text)} - STOP_WORDS
    shared = [one for one in said if words & set(terms(one.text))]
    if link.kind == SINCE and (not shared or link.note == UNCLEAR):
        return None
    if spans := spans_of(link.note):
        text = own_text(old.logged.message.content)
        concerned = [one for one in sentences(text) if concerns(spans, one.start, one.end)]
        outdated = {one.text: left_of(text, spans, one.start, one.end) for one in concerned}
    else:
        outdated = {one.text: "" for one in shared or said}
    return Corrected(link.kind, old.session_id, old.logged.seq, outdated, tuple(since))


def later_than(lessons: Sequence[Lesson], corrected: Iterable[Corrected]) -> dict[str, str]:
    """By the id of a lesson, what was said later and may be about the same. What a model wrote gives way where a model
    says so: it knows better what is about the same."""
    by_source = {(source.session_id, source.seq): one for one in lessons for source in one.sources}
    later: dict[str, str] = {}
    for one in corrected:
        lesson = by_source.get((one.session_id, one.seq))
        if one.kind != SINCE or lesson is None or lesson.status != "learnt" or lesson.learnt_by != QUOTED:
            continue
        known = set(terms(lesson.text)) - STOP_WORDS
        best = max(one.since, key=lambda each: (len(known & set(terms(each.text))), each.states))
        if known & set(terms(best.text)):
            later.setdefault(lesson.id, best.text)
    return later


def _stated(placed: PlacedMessage) -> list[ReadSentence]:
    message = placed.logged.message
    read = read_sentences(own_text(message.content), is_user=message.role == "user")
    return [one for one in read if one.states >= STATES] or read
