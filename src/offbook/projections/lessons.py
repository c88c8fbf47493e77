"""Lessons, distilled from what was said (A11): follows the log message by message, so many in one piece of work.

Which message was read last is a note of the agent, written after what was learnt from it. Whoever is stopped between
the two reads the same messages again and learns nothing new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from offbook.log.store import Store
from offbook.model.errors import ModelUnavailable, StoreCorrupt
from offbook.model.lesson import LESSONS_SESSION, Lesson
from offbook.model.memory_entry import Arrivals, PlacedMessage
from offbook.model.receipt import FORGOTTEN
from offbook.model.settings import Settings
from offbook.model.types import AuditDraft, Scope
from offbook.projections.base import Batch, Erased, Finding, Progress, Removal
from offbook.projections.embedders import Embedders
from offbook.projections.lesson_distillation import LessonDistillation
from offbook.projections.summary_writer import Writer
from offbook.rules.lessons.fold import RULES, Learnt, as_draft, folded
from offbook.rules.lessons.meaning import joined
from offbook.rules.lessons.reader import LessonMention, said_in
from offbook.rules.likeness import Embed

THROUGH = "lessons-through"
"""The agent's note of the last audit event whose messages were read."""
MESSAGES_AT_A_TIME = 500
LESSONS_READ_AT_ONCE = 200
LEARNER = "offbook"
"""The actor of the audit event: nobody asked for it."""

log = structlog.get_logger("offbook.projections")


class LessonProjection:
    name = "lessons"

    def __init__(
        self, store: Store, settings: Settings, embedders: Embedders | None = None, writer: Writer | None = None
    ) -> None:
        self._store = store
        self._settings = settings
        self._embedders = embedders
        self._distilling = LessonDistillation(store, settings, writer) if writer is not None else None

    async def advance(self, batch: Batch) -> Progress:
        """Learn from the next messages, and from the stretches that were summarised since."""
        agent_id = batch.agent_id
        if not self._settings.for_agent(agent_id).lessons.enabled:
            return Progress(is_idle=True)
        after = _event(await self._store.agent_note(agent_id, THROUGH))
        arrivals = await self._arrivals(agent_id, after)
        said = await asyncio.to_thread(_said, arrivals.messages)
        did = await self._learn(agent_id, said, RULES) if said else {}
        if arrivals.through_event > after:
            await self._store.set_agent_note(agent_id, THROUGH, str(arrivals.through_event), None)
        if not arrivals.is_end or self._distilling is None:
            return Progress(did=did, is_done=arrivals.is_end)
        distilled = await self._distilling.next(agent_id)
        if distilled is None:
            return Progress(did=did)
        if distilled.said:
            more = await self._learn(agent_id, distilled.said, distilled.by)
            did = {name: did.get(name, 0) + more.get(name, 0) for name in (*did, *more)}
        await self._distilling.done(agent_id, distilled)
        return Progress(did=did, is_done=False)

    async def forget(self, erased: Erased) -> Removal:
        """Those that came of it went with the log. Whoever else taught one of them is learnt from once more."""
        if not erased.is_dry_run and self._settings.for_agent(erased.agent_id).lessons.enabled:
            messages = await self._store.messages_at(erased.agent_id, erased.taught_by)
            if said := await asyncio.to_thread(_said, messages):
                await self._learn(erased.agent_id, said, RULES)
        return Removal()

    async def rebuild(self, agent_id: str) -> None:
        """All is read again. What is known stays, with what a person has judged: read twice, it is not learnt twice."""
        await self._store.set_agent_note(agent_id, THROUGH, None, None)

    async def check(self, agent_id: str, erased: Erased | None = None) -> list[Finding]:
        """Lessons that came of what is gone, and a cursor beyond the log's end."""
        if erased is not None:
            return []  # texts beside the log, which are all looked through
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

    async def _arrivals(self, agent_id: str, after: int) -> Arrivals:
        """Where something is damaged one event at a time up to that, which is passed over: `doctor` tells of it."""
        try:
            return await self._store.arrivals(agent_id, after_event=after, limit=MESSAGES_AT_A_TIME)
        except StoreCorrupt as error:
            try:
                return await self._store.arrivals(agent_id, after_event=after, limit=1)
            except StoreCorrupt:
                log.error("passed over", action="lessons.damage", agent=agent_id, seq=after + 1, detail=error.detail)
                return Arrivals(through_event=after + 1, messages=[], is_end=False)

    async def _learn(self, agent_id: str, said: Sequence[LessonMention], learnt_by: str) -> dict[str, int]:
        known = await lessons_of(self._store, agent_id)
        embed = await self._embed()
        learnt = await asyncio.to_thread(_learnt, known, said, embed, learnt_by)
        if not learnt.drafts:
            return {}
        details = {"lessons": len(learnt.drafts), "messages": len({one.place for one in said}), "by": learnt_by}
        event = AuditDraft(verb="learn", actor=LEARNER, details=details)
        kept = await self._store.keep_lessons(agent_id, learnt.drafts, replaced=learnt.replaced, event=event)
        await self._note_outdated(agent_id, learnt, kept, event)
        counts = {
            "learnt": learnt.new,
            "seen again": learnt.again,
            "replaced": len(learnt.replaced) + len(learnt.outdated),
        }
        return {name: count for name, count in counts.items() if count}

    async def _note_outdated(self, agent_id: str, learnt: Learnt, kept: Sequence[Lesson], event: AuditDraft) -> None:
        """What is known only now and did not hold any more when it was learnt: it has had no id until now."""
        ids = {one.key: one.id for one in kept}
        replaced = {ids[old]: new for old, new in learnt.outdated.items() if old in ids}
        if not replaced:
            return
        takers = [draft for draft in learnt.drafts if draft.key in replaced.values()]
        if missing := set(replaced.values()) - {draft.key for draft in takers}:
            known = await lessons_of(self._store, agent_id)
            takers += [as_draft(one) for one in known if one.key in missing]
        await self._store.keep_lessons(agent_id, takers, replaced=replaced, event=event)

    async def _embed(self) -> Embed | None:
        """None where there is no model: then the rules decide alone (A17)."""
        if self._embedders is None:
            return None
        try:
            return (await self._embedders.wanted()).embed
        except ModelUnavailable:
            return None


async def lessons_of(store: Store, agent_id: str) -> list[Lesson]:
    """All of an agent's, the newest first."""
    found: list[Lesson] = []
    while True:
        before = found[-1].id if found else None
        page = await store.lessons(agent_id, before=before, limit=LESSONS_READ_AT_ONCE)
        found += page
        if len(page) < LESSONS_READ_AT_ONCE:
            return found


# ── in threads ──


def _said(messages: Sequence[PlacedMessage]) -> list[LessonMention]:
    return [one for placed in messages if placed.session_id != LESSONS_SESSION for one in said_in(placed)]


def _learnt(known: Sequence[Lesson], said: Sequence[LessonMention], embed: Embed | None, learnt_by: str) -> Learnt:
    if embed is not None:
        try:
            said = joined(known, said, embed)
        except ModelUnavailable:
            log.debug("no vectors for lessons", action="lessons.embed")
    return folded(known, said, learnt_by)


def _event(note: str | None) -> int:
    """A note that nobody can read begins anew: what is known already is not counted twice."""
    return int(note) if note and note.isascii() and note.isdigit() and len(note) < 19 else 0
