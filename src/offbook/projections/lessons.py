"""Lessons, kept of what was said (A11): follows the log message by message, so many in one piece of work.

Which message was read last is a note of the agent, written after what was learnt from it. Whoever is stopped between
the two reads the same messages again and learns nothing new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from weakref import WeakKeyDictionary

from offbook.log.store import Store
from offbook.model.lesson import LESSONS_SESSION, Lesson
from offbook.model.memory_entry import PlacedMessage
from offbook.model.receipt import FORGOTTEN
from offbook.model.settings import Settings
from offbook.model.types import AuditDraft, Scope
from offbook.models.worker import IN_PROCESS, Worker
from offbook.projections.base import Batch, Erased, Finding, Progress, Removal
from offbook.projections.lesson_corrections import LEARNER, retire_corrected
from offbook.projections.log_pages import next_arrivals
from offbook.statements.lessons import QUOTED, folded
from offbook.statements.reading import LessonMention, kept_in

THROUGH = "lessons-read-through"
"""The agent's note of the last audit event whose messages were read."""
MESSAGES_AT_A_TIME = 500
LESSONS_READ_AT_ONCE = 200

_learning: WeakKeyDictionary[Store, dict[str, asyncio.Lock]] = WeakKeyDictionary()


class LessonProjection:
    name = "lessons"

    def __init__(self, store: Store, settings: Settings, worker: Worker = IN_PROCESS) -> None:
        self._store = store
        self._settings = settings
        self._worker = worker

    async def advance(self, batch: Batch) -> Progress:
        """Learn from the next messages. What a model finds in a stretch is kept with its summary
        (`model_statements`)."""
        agent_id = batch.agent_id
        if not self._settings.for_agent(agent_id).lessons.enabled:
            return Progress(is_idle=True)
        after = _event(await self._store.agent_note(agent_id, THROUGH))
        arrivals = await next_arrivals(self._store, agent_id, after_event=after, limit=MESSAGES_AT_A_TIME, by=self.name)
        said = await self._worker.run(_said, arrivals.messages)
        did = await learn(self._store, agent_id, said, QUOTED)
        if arrivals.through_event > after:
            await self._store.set_agent_note(agent_id, THROUGH, str(arrivals.through_event), None)
        return Progress(did=did, is_done=arrivals.is_end)

    async def forget(self, erased: Erased) -> Removal:
        """Those that came of it went with the log. Whoever else taught one of them is learnt from once more."""
        if not erased.is_dry_run and self._settings.for_agent(erased.agent_id).lessons.enabled:
            messages = await self._store.messages_at(erased.agent_id, erased.taught_by)
            await learn(self._store, erased.agent_id, await self._worker.run(_said, messages), QUOTED)
        return Removal()

    async def rebuild(self, agent_id: str) -> None:
        """All is read again. What is known stays, with what a person has judged: read twice, it is not learnt twice."""
        await self._store.set_agent_note(agent_id, THROUGH, None, None)

    async def check(self, agent_id: str, erased: Erased | None = None) -> list[Finding]:
        """Lessons that came of what is gone, and a cursor beyond the log's end."""
        if erased is not None:
            return []  # texts beside the log, which are all looked through
        self._store.let_go(agent_id)  # what lies there is looked at
        head = await self._store.audit_head(agent_id)
        note = await self._store.agent_note(agent_id, THROUGH)
        found = [] if note is None or 0 < _event(note) <= head.seq else [Finding("lessons", "the cursor is damaged")]
        for lesson in await lessons_of(self._store, agent_id):
            for source in lesson.sources:
                scope = Scope(agent_id=agent_id, session_id=source.session_id)
                logged = await self._store.messages(scope, after_seq=source.seq - 1, limit=1)
                if not logged or logged[0].seq != source.seq or logged[0].entry.noise == FORGOTTEN:
                    found.append(Finding(lesson.id, f"message {source.seq} of {source.session_id} is gone"))
        return found


async def learn(
    store: Store,
    agent_id: str,
    said: Sequence[LessonMention],
    learnt_by: str,
    *,
    replaced: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, int]:
    """Keep what was said as lessons; returns what it did. `replaced`: by the id of a lesson, the key of the one that
    takes its place, where that is new."""
    if not said:
        return {}
    # One at a time: what a model writes and what is quoted of the same message know of each other.
    async with _learning.setdefault(store, {}).setdefault(agent_id, asyncio.Lock()):
        return await _learn(store, agent_id, said, learnt_by, replaced)


async def _learn(
    store: Store, agent_id: str, said: Sequence[LessonMention], learnt_by: str, replaced: Mapping[str, str]
) -> dict[str, int]:
    known = await _concerned(store, agent_id, said, replaced)
    learnt = await asyncio.to_thread(folded, known, said, learnt_by)
    if not learnt.drafts:
        return {}
    keys = {draft.key for draft in learnt.drafts}
    replaced = {**learnt.given_way, **replaced}
    giving_way = {one.id: replaced[one.id] for one in known if replaced.get(one.id) in keys - {one.key}}
    places = sorted({one.place for one in said})
    details = {"lessons": len(learnt.drafts), "messages": len(places), "by": learnt_by}
    event = AuditDraft(verb="learn", actor=LEARNER, details=details)
    await store.keep_lessons(agent_id, learnt.drafts, replaced=giving_way, event=event)
    corrected = await retire_corrected(store, agent_id, places)
    counts = {"learnt": learnt.new, "seen again": learnt.again, "replaced": len(giving_way) + corrected}
    return {name: count for name, count in counts.items() if count}


async def _concerned(
    store: Store, agent_id: str, said: Sequence[LessonMention], replaced: Mapping[str, str]
) -> list[Lesson]:
    """What is known already of what was said, or was said with it, and what is to be replaced."""
    found = await store.lessons_keyed(agent_id, {one.key for one in said})
    found += await store.lessons_at(agent_id, sorted({one.place for one in said}))
    missing = replaced.keys() - {one.id for one in found}
    found += [one for id_ in missing if (one := await store.lesson(agent_id, id_)) is not None]
    return list({one.id: one for one in found}.values())


async def lessons_of(store: Store, agent_id: str) -> list[Lesson]:
    """All of an agent's, the newest first."""
    found: list[Lesson] = []
    while True:
        before = found[-1].id if found else None
        page = await store.lessons(agent_id, before=before, limit=LESSONS_READ_AT_ONCE)
        found += page
        if len(page) < LESSONS_READ_AT_ONCE:
            return found


# ── in a thread ──


def _said(messages: Sequence[PlacedMessage]) -> list[LessonMention]:
    return [one for placed in messages if placed.session_id != LESSONS_SESSION for one in kept_in(placed)]


def _event(note: str | None) -> int:
    """A note that nobody can read begins anew: what is known already is not counted twice."""
    return int(note) if note and note.isascii() and note.isdigit() and len(note) < 19 else 0
