"""A lesson holds as long as one of the messages that say it does: what a link replaced is told no longer."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from offbook.log.store import Store
from offbook.model.content import own_text
from offbook.model.lesson import Lesson, LessonDraft
from offbook.model.memory_entry import TAKEN_BACK, PlacedMessage, Supersession
from offbook.model.sentences import sentences
from offbook.model.types import AuditDraft, now
from offbook.models.sentence_kinds import read_sentences
from offbook.search.resolve import PARTLY, SINCE
from offbook.search.words import STOP_WORDS, terms
from offbook.statements.clauses import Span, concerns, keys_in, spans_of
from offbook.statements.lessons import QUOTED
from offbook.statements.reading import key_of

LEARNER = "offbook"
UNLINKED = "unlinked-at"
"""The agent's note of when a link was last taken back: what was told as over until then is told anew."""
LEAST_KEEP = 0.3
STRENGTH = 0.8
"""Of a lesson that says what holds since: it took the place of one that was kept."""


async def retire_corrected(store: Store, agent_id: str, places: Sequence[int]) -> int:
    """Of the lessons at these places, or at what these places replaced: those that no longer hold have what took their
    place noted. Returns how many. Done again, it changes nothing."""
    count = 0
    for link in await _replacing(store, agent_id, places):
        standing = [
            one
            for one in await store.lessons_at(agent_id, [link.old_place])
            # What a model wrote gives way where a model says so: it knows better what is about the same.
            if one.replaced_by is None and one.status == "learnt" and one.learnt_by == QUOTED
        ]
        if standing and link.kind == PARTLY:
            standing = _concerned(standing, await store.messages_at(agent_id, [link.old_place, link.new_place]), link)
        for lesson in standing:
            count += await _retire(store, agent_id, lesson, link)
    return count


async def restore_uncorrected(store: Store, agent_id: str, place: int) -> int:
    """Of the lessons at this place, from which a link was taken back: those that had given way by that link hold again,
    unless another one replaces them. Returns how many hold again. Done again, it changes nothing."""
    cleared, made_of = 0, store.versions.of(agent_id, "erased")
    for lesson in await store.lessons_at(agent_id, [place]):
        if lesson.replaced_by is None or lesson.status != "learnt":
            continue
        said_at = await store.lesson_places(agent_id, lesson.id)
        links = await _replacing(store, agent_id, said_at)
        taken_by = {one.new_place for one in links} & set(await store.lesson_places(agent_id, lesson.replaced_by))
        if not taken_by or not set(said_at) <= {one.old_place for one in links}:
            holding = msgspec.structs.replace(lesson, replaced_by=None)
            await store.judge_lesson(agent_id, holding, [], None, made_of=made_of)
            cleared += 1
    await store.set_agent_note(agent_id, UNLINKED, now().isoformat(), None)
    store.versions.changed(agent_id, "links")
    return cleared - await retire_corrected(store, agent_id, [place]) if cleared else 0


async def _replacing(store: Store, agent_id: str, places: Sequence[int]) -> list[Supersession]:
    return [one for one in await store.supersessions(agent_id, places) if one.kind not in (SINCE, TAKEN_BACK)]


def _concerned(lessons: Sequence[Lesson], placed: Sequence[PlacedMessage], link: Supersession) -> list[Lesson]:
    """Where a message said more than what was corrected: the lessons that share as much with the correction as the
    sentence of the message that shares most. The others still hold."""
    texts = {one.place: own_text(one.logged.message.content) for one in placed}
    if spans := spans_of(link.note):
        old = texts.get(link.old_place, "")
        return [one for one in lessons if _is_within(one, old, spans)]
    words = set(terms(texts.get(link.new_place, "")))

    def shared(text: str) -> int:
        return len(words & set(terms(text)))

    most = max((shared(one.text) for one in sentences(texts.get(link.old_place, ""))), default=0)
    if most == 0:  # in other words: which of several is meant, nobody can tell
        return list(lessons) if len(lessons) == 1 else []
    return [one for one in lessons if shared(one.text) >= most]


def _is_within(lesson: Lesson, old: str, spans: Sequence[Span]) -> bool:
    return not keys_in(lesson.text).keys().isdisjoint(_gone(old, spans))


def _gone(old: str, spans: Sequence[Span]) -> set[str]:
    """The statements of a message that no longer hold, by their keys."""
    return {key for key, part in keys_in(old).items() if concerns(spans, part.start, part.end)}


async def _retire(store: Store, agent_id: str, lesson: Lesson, link: Supersession) -> bool:
    said_at = await store.lesson_places(agent_id, lesson.id)
    gone = {one.old_place for one in await _replacing(store, agent_id, said_at)}
    placed = {one.place: one for one in await store.messages_at(agent_id, [link.old_place, link.new_place])}
    if not set(said_at) <= gone or link.new_place not in placed or link.new_place in said_at:
        return False
    draft = _draft(lesson, placed[link.new_place])
    if draft is None or draft.key == lesson.key:
        return False
    links = [one for one in await _replacing(store, agent_id, [link.old_place]) if one.old_place == link.old_place]
    spans = [span for one in links for span in spans_of(one.note)]
    left = _left(lesson, placed[link.old_place], spans) if spans and link.old_place in placed else None
    # The same sentence may take the place of several: it is one lesson, of the kind it has already.
    known = [one for one in await store.lessons_at(agent_id, [link.new_place]) if one.key == draft.key]
    draft = msgspec.structs.replace(draft, kind=known[0].kind) if known else draft
    event = AuditDraft(verb="learn", actor=LEARNER, details={"lessons": 1, "corrected": lesson.id})
    drafts = [draft] if left is None else [draft, left]
    await store.keep_lessons(agent_id, drafts, replaced={lesson.id: draft.key}, event=event)
    return True


def _left(lesson: Lesson, old: PlacedMessage, spans: Sequence[Span]) -> LessonDraft | None:
    """What of it still holds, where it says two things."""
    gone = _gone(own_text(old.logged.message.content), spans)
    parts = keys_in(lesson.text)
    left = ". ".join(part.text for key, part in parts.items() if key not in gone)
    if not left or gone.isdisjoint(parts):
        return None
    return LessonDraft(
        kind=lesson.kind,
        text=left,
        key=key_of(left),
        confidence=lesson.confidence,
        first_seen=lesson.first_seen,
        last_seen=lesson.last_seen,
        times=lesson.times,
        places=[old.place],
    )


def _draft(lesson: Lesson, placed: PlacedMessage) -> LessonDraft | None:
    """What the correcting message says of it: the sentence that shares most with the lesson. None where it neither
    shares a word with it nor may be worth keeping by itself: then nothing is known that could stand in its place."""
    logged = placed.logged
    read = read_sentences(own_text(logged.message.content), is_user=logged.message.role == "user")
    words = set(terms(lesson.text))
    best = max(read, key=lambda one: (len(words & set(terms(one.text))), one.states), default=None)
    if best is None or (best.keep < LEAST_KEEP and not words & (set(terms(best.text)) - STOP_WORDS)):
        return None
    at = logged.said_at
    return LessonDraft(
        kind=lesson.kind,
        text=best.text,
        key=key_of(best.text),
        confidence=STRENGTH,
        first_seen=at,
        last_seen=at,
        times=1,
        places=[placed.place],
    )
