"""What a model found in a stretch, kept: lessons, and what takes the place of what.

Done before the summary of the stretch is kept, from the answer that was paid for. Who is stopped between the two does
it again and changes nothing: a lesson knows where it was said, a link is noted once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from offbook.context.span_answer import SpanStatement
from offbook.log.store import Store
from offbook.model.content import own_text
from offbook.model.lesson import Lesson
from offbook.model.memory_entry import PlacedMessage, Supersession
from offbook.model.sentences import sentences
from offbook.model.settings import Settings
from offbook.model.types import AuditDraft, Scope, now
from offbook.projections.lesson_corrections import LEARNER, retire_corrected
from offbook.projections.lessons import learn
from offbook.search.resolve import CORRECTION, PARTLY
from offbook.search.words import STOP_WORDS, terms
from offbook.statements.lessons import chosen_lessons
from offbook.statements.reading import LESSON_KINDS, LessonMention, key_of

STRENGTH = 0.8
"""As sure as a sentence that is plainly to be kept."""
MOST_KNOWN = 40
"""Lessons that the model is shown, to say which of them hold no longer."""
LESSONS_LOOKED_AT = 200


class ModelStatements:
    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    async def known(self, scope: Scope, seqs: Collection[int]) -> dict[str, str]:
        """What holds by now, by name, surest first: a later word may take its place. Without what only these messages
        of the session say, which the model is about to read."""
        settings = self._settings.for_agent(scope.agent_id).lessons
        lessons = await self._store.lessons(scope.agent_id, limit=LESSONS_LOOKED_AT)
        chosen = [one for one in chosen_lessons(lessons, settings, now()) if not _is_only_in(one, scope, seqs)]
        return {one.id: one.text for one in chosen[:MOST_KNOWN]}

    async def keep(self, scope: Scope, statements: Sequence[SpanStatement], by: str) -> None:
        """`statements` are those that their lines bear out."""
        seqs = sorted({seq for one in statements for seq in (*one.lines, *_lines_replaced(one))})
        if not seqs or not self._settings.for_agent(scope.agent_id).lessons.enabled:
            return
        places = dict(zip(seqs, await self._store.places(scope, seqs), strict=True))
        placed = {one.place: one for one in await self._store.messages_at(scope.agent_id, list(places.values()))}
        said: list[LessonMention] = []
        replaced: dict[str, str] = {}
        links: list[Supersession] = []
        for one in statements:
            at = [placed[places[seq]] for seq in one.lines if places.get(seq) in placed]
            if not at:
                continue
            mentions = _mentions(one, at)
            old_places = await self._replaced(scope, one, places)
            links += await self._links(scope.agent_id, old_places, at[-1])
            given_way = await self._given_way(scope.agent_id, one, [places[seq] for seq in _lines_replaced(one)])
            if mentions:
                said += mentions
                replaced |= dict.fromkeys(given_way, mentions[-1].key)
        await learn(self._store, scope.agent_id, said, by, replaced=replaced)
        if links:
            event = AuditDraft(
                verb="supersede", actor=LEARNER, session_id=scope.session_id, details={"replaced": len(links), "by": by}
            )
            await self._store.supersede(scope.agent_id, links, event)
            await retire_corrected(self._store, scope.agent_id, [link.new_place for link in links])

    async def _replaced(self, scope: Scope, one: SpanStatement, places: Mapping[int, int]) -> list[int]:
        """Where that was said which it replaces."""
        found = [places[seq] for seq in _lines_replaced(one) if seq in places]
        for name in one.replaces:
            if isinstance(name, str):
                found += await self._store.lesson_places(scope.agent_id, name)
        return list(dict.fromkeys(found))

    async def _given_way(self, agent_id: str, one: SpanStatement, old_places: Sequence[int]) -> list[str]:
        """The lessons that it replaces: those it names, and of those at the lines it names, what is about the same."""
        at_lines = await self._store.lessons_at(agent_id, old_places) if old_places else []
        words = set(terms(one.text)) - STOP_WORDS
        about_it = [lesson.id for lesson in at_lines if _holds(lesson) and words & set(terms(lesson.text))]
        return [*(name for name in one.replaces if isinstance(name, str)), *about_it]

    async def _links(self, agent_id: str, old_places: Sequence[int], new: PlacedMessage) -> list[Supersession]:
        at = new.logged.said_at
        return [
            Supersession(
                old_place=old.place,
                new_place=new.place,
                # One that says more than what was replaced still holds for the rest.
                kind=PARTLY if len(sentences(own_text(old.logged.message.content))) > 1 else CORRECTION,
                at=at,
            )
            for old in (await self._store.messages_at(agent_id, old_places) if old_places else [])
            if old.place != new.place and old.logged.said_at <= at
        ]


def _lines_replaced(one: SpanStatement) -> list[int]:
    return [old for old in one.replaces if isinstance(old, int)]


def _mentions(one: SpanStatement, at: Sequence[PlacedMessage]) -> list[LessonMention]:
    """It is a lesson where it lasts, or where it takes the place of something that was kept."""
    kind = LESSON_KINDS.get(one.kind)
    if kind is None or not (one.lasting or any(isinstance(old, str) for old in one.replaces)):
        return []
    return [
        LessonMention(
            kind=kind,
            text=one.text,
            key=key_of(one.text),
            strength=STRENGTH,
            at=placed.logged.said_at,
            place=placed.place,
            session_id=placed.session_id,
            seq=placed.logged.seq,
            about=one.about,
        )
        for placed in at
    ]


def _is_only_in(lesson: Lesson, scope: Scope, seqs: Collection[int]) -> bool:
    return all(source.session_id == scope.session_id and source.seq in seqs for source in lesson.sources)


def _holds(lesson: Lesson) -> bool:
    return lesson.replaced_by is None and lesson.status == "learnt"
