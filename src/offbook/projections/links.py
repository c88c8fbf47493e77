"""What a new message replaces is noted when it arrives, with both ends linked (D5).

Few messages correct or restate anything; for those few, what they may replace is looked up: the last turns of
the session, and what says the same words in any other. Only what somebody said in person replaces and is replaced: the
results of tools and the texts of others, in whoever's name they come, are read by no pattern. What arrives late is
older than what it is compared with, and is what gives way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from offbook.log.store import Store
from offbook.model.content import own_text
from offbook.model.lesson import LESSONS_SESSION, Lesson
from offbook.model.memory_entry import PlacedMessage, Supersession
from offbook.model.types import AuditDraft, Caller, Scope
from offbook.projections.base import Batch, Erased, Finding, Progress, Removal
from offbook.projections.log_pages import PAGE, arrivals_of, living_messages
from offbook.rules.supersession.lesson_links import lesson_links, takes_back
from offbook.rules.supersession.supersede import (
    Earlier,
    correction_in,
    facts_in,
    may_restate,
    restated_by,
    says_more,
    superseded_by,
)
from offbook.search.resolve import PARTLY, RETRACTED
from offbook.search.whole_messages import readable
from offbook.search.words import query_terms

if TYPE_CHECKING:
    from offbook.projections.indexes import Indexes
    from offbook.search.index.agent_index import AgentIndex

TURNS_BACK = 30
ELSEWHERE = 60
"""Messages of other sessions that are compared, those with most words in common."""
LONGEST_COMPARED_CHARS = 2001
"""Beyond this nothing is read for what it states (see `continuity.facts`)."""
READ_AT_ONCE = 1000
RESTATED = "restate"
LINKER = "offbook"
"""The actor of the audit event: nobody asked for it."""


class Heard(NamedTuple):
    """What somebody said in person, and when."""

    place: int
    session: int
    seq: int
    said_at: datetime
    role: str
    speaker: str
    text: str


class LinkCandidate(NamedTuple):
    """A message that states or corrects something, the kind of link it makes, and the places of what it may replace."""

    placed: PlacedMessage
    said: Heard
    kind: str
    places: list[int]


class Links:
    """Which message gives way to which. They are noted as the index takes a message, before its checkpoint: so the
    index's cursor is theirs."""

    name = "links"

    def __init__(self, store: Store, indexes: Indexes) -> None:
        self._store = store
        self._indexes = indexes

    async def advance(self, batch: Batch) -> Progress:
        following = self._indexes.following(batch.agent_id, seconds=batch.seconds, is_patient=True)
        async with following as (_, has_all):
            return Progress(is_done=has_all)

    async def forget(self, _erased: Erased) -> Removal:
        """They went with their messages; what may replace others now is read again by the index that is made anew."""
        return Removal()

    async def rebuild(self, agent_id: str) -> None:
        """Every message is read again for what it replaces; one that is noted already is not noted twice."""
        await self._indexes.rebuild(agent_id)

    async def check(self, agent_id: str, erased: Erased | None = None) -> list[Finding]:
        """Links from or to what is not there."""
        if erased is not None:
            places = list(erased.places)
            return [
                Finding("a link", "it leads from or to it")
                for start in range(0, len(places), PAGE)
                for _ in await self._store.supersessions(agent_id, places[start : start + PAGE])
            ]
        known = {one.place async for one in living_messages(self._store, agent_id)}
        links: list[Supersession] = []
        async for arrivals in arrivals_of(self._store, agent_id):
            links += await self._store.supersessions(agent_id, [one.place for one in arrivals.messages])
        stray = {(one.old_place, one.new_place) for one in links if not {one.old_place, one.new_place} <= known}
        return [Finding("a link", f"message {old} gives way to {new}, and one is gone") for old, new in sorted(stray)]


class Linker:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def link(self, agent_id: str, index: AgentIndex, messages: Sequence[PlacedMessage]) -> None:
        """Note what each of the messages replaces."""
        known = {placed.place: _heard(placed) for placed in messages}
        link_candidates = await asyncio.to_thread(_link_candidates, index, messages)
        unknown = sorted({place for candidate in link_candidates for place in candidate.places if place not in known})
        for start in range(0, len(unknown), READ_AT_ONCE):
            piece = unknown[start : start + READ_AT_ONCE]
            known.update({placed.place: _heard(placed) for placed in await readable(self._store, agent_id, piece)})
        for placed, links in await asyncio.to_thread(_links, link_candidates, known):
            event = AuditDraft(
                verb="supersede",
                actor=LINKER,
                session_id=placed.session_id,
                details={"seq": placed.logged.seq, "replaced": len(links), "kind": links[0].kind},
            )
            await self._store.supersede(agent_id, links, event)


async def relinked(store: Store, lesson: Lesson, by: Caller, written: Sequence[int] = ()) -> None:
    """Keep the links in step with what a person wrote in the place of a lesson: those that the lesson's messages
    make, and no others of its. `written` are places that it does not know
    yet. Done again, it changes nothing."""
    seqs: dict[str, list[int]] = {}
    for source in lesson.sources:
        seqs.setdefault(source.session_id, []).append(source.seq)
    places = list(written)
    for session_id, numbers in seqs.items():
        places += await store.places(Scope(agent_id=lesson.agent_id, session_id=session_id), numbers)
    placed = await store.messages_at(lesson.agent_id, list(dict.fromkeys(places)))
    links = lesson_links(lesson, placed)
    wanted = {(link.old_place, link.new_place) for link in links}
    known = [link for link in await store.supersessions(lesson.agent_id, places) if link.note == lesson.id]
    event = AuditDraft(verb="supersede", actor=by.name, session_id=LESSONS_SESSION, details={"lesson": lesson.id})
    if any((link.old_place, link.new_place) not in wanted for link in known):
        await store.withdraw_supersessions(lesson.agent_id, lesson.id, event)
    if links:
        newest = max(placed, key=lambda one: (one.session_id == LESSONS_SESSION, one.logged.seq))
        replaced = [link for link in links if link.new_place == newest.place] or links
        details = {"seq": newest.logged.seq, "replaced": len(replaced), "kind": replaced[0].kind}
        event = msgspec.structs.replace(event, details=details | event.details)
        await store.supersede(lesson.agent_id, links, event)


# ── in threads: to read two hundred messages for what they state takes longer than an answer may wait ──


def _link_candidates(index: AgentIndex, messages: Sequence[PlacedMessage]) -> list[LinkCandidate]:
    found: list[LinkCandidate] = []
    for placed in messages:
        one = _heard(placed)
        if one is None or placed.session_id == LESSONS_SESSION:
            continue  # what a person wrote there replaces what its lesson was learnt from (see `judging`)
        facts = facts_in(one.text, one.role, one.speaker)
        correction = correction_in(one.text, one.role)
        restates = may_restate(one.text, one.role)
        if facts or correction or restates:
            looked_for = [fact.about for fact in facts] + ([one.text] if restates else [])
            looked_for += [correction.target, correction.old] if correction else []
            row = int(index.rows.find([placed.place])[0])
            places = _before_in_session(index, row) + _in_other_sessions(index, row, " ".join(looked_for))
            found.append(LinkCandidate(placed, one, correction.kind if correction else RESTATED, places))
    return found


def _heard(placed: PlacedMessage) -> Heard | None:
    """None for what is not its sender's own: what a tool gave, or what is said to come from elsewhere."""
    logged = placed.logged
    message = logged.message
    is_edit = placed.session_id == LESSONS_SESSION and not takes_back(message)
    is_own = (message.origin in (None, "", message.role) or is_edit) and message.tool_call_id is None
    text = own_text(message.content)[:LONGEST_COMPARED_CHARS] if is_own else ""
    if not text:
        return None
    return Heard(
        place=placed.place,
        session=placed.session,
        seq=logged.seq,
        # A clock that is ahead of ours does not make it later than its arrival.
        said_at=min(message.ts or logged.received_at, logged.received_at),
        role=message.role,
        speaker=message.name or "",
        text=text,
    )


def _links(
    link_candidates: Sequence[LinkCandidate], known: Mapping[int, Heard | None]
) -> list[tuple[PlacedMessage, list[Supersession]]]:
    """The links that each of them makes, where it makes any."""
    found = []
    for candidate in link_candidates:
        others = [heard for place in candidate.places if (heard := known.get(place)) is not None]
        links = _replaced(candidate, others) + _replacing(candidate.said, others)
        if links:
            found.append((candidate.placed, links))
    return found


def _replaced(candidate: LinkCandidate, others: Sequence[Heard]) -> list[Supersession]:
    new = candidate.said
    before = [one for one in others if one.said_at <= new.said_at]
    replaced = superseded_by(new.text, new.role, new.speaker, [_earlier(one, new) for one in before])
    return [
        Supersession(
            old_place=before[at].place,
            new_place=new.place,
            kind=PARTLY if candidate.kind != RETRACTED and says_more(before[at].text, new.text) else candidate.kind,
            at=new.said_at,
        )
        for at in replaced
    ]


def _replacing(late: Heard, others: Sequence[Heard]) -> list[Supersession]:
    """What was said after this and has arrived before it: of old history, what has changed since."""
    return [
        Supersession(
            old_place=late.place,
            new_place=one.place,
            kind=PARTLY if says_more(late.text, one.text) else RESTATED,
            at=one.said_at,
        )
        for one in others
        if one.said_at > late.said_at and restated_by(one.text, one.role, one.speaker, [_earlier(late, one)])
    ]


def _before_in_session(index: AgentIndex, row: int) -> list[int]:
    view = index.rows.view()
    places: list[int] = []
    while (row := int(view["previous"][row])) >= 0 and len(places) < TURNS_BACK:
        places.append(int(view["place"][row]))
    return places


def _in_other_sessions(index: AgentIndex, row: int, looked_for: str) -> list[int]:
    """What shares most words with it, of what came before it in other sessions."""
    from offbook.search.candidates import by_text, known_words

    words = known_words(index, query_terms(looked_for.replace("|", " ")), row)
    found = by_text(index, words, row, session=None, is_open=None)[:ELSEWHERE]
    view = index.rows.view()
    return [int(one["place"]) for one in view[found] if one["session"] != view["session"][row]]


def _earlier(one: Heard, new: Heard) -> Earlier:
    is_same = one.session == new.session
    return Earlier(
        text=one.text,
        role=one.role,
        speaker=one.speaker,
        is_same_session=is_same,
        turns_ago=abs(new.seq - one.seq) if is_same else None,
        facts=tuple(facts_in(one.text, one.role, one.speaker)),
    )
