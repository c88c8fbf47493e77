"""Taking something out of one store: what came of it, the summaries without it, and the one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from offbook.context.cover import MessageSpan
from offbook.context.pending_messages import PendingMessages, ReadMessage, ReadSpan
from offbook.context.summary_drafts import chunk_draft, merge_draft
from offbook.forget.selection import PAGE, Selected, said_since, select, sequences
from offbook.log.erasure import folded, saying
from offbook.log.store import Blobs, Store
from offbook.model.errors import StoreBusy, StoreCorrupt
from offbook.model.lesson import Lesson
from offbook.model.memory_entry import PlacedMessage
from offbook.model.receipt import FORGOTTEN_TEXT, ForgetReceipt, Lineage, Residue, Selection
from offbook.model.settings import Settings
from offbook.model.summary import Summary, SummaryDraft
from offbook.model.types import AuditDraft, AuditEvent, Caller, Scope
from offbook.projections.links import relinked
from offbook.statements.remains import remains_of

ERASER = Caller(name="offbook")
"""Who writes down again which message gives way to which: nobody asked for it."""

DROPS, HELD_SECONDS = 100, 0.05
"""How often, and how long apart, a large part is tried that a message on its way into the log has, too: it is known
then whether that one has come, or was turned away."""


class Plan(NamedTuple):
    """What will be taken out."""

    what: Selected
    lineage: Lineage


class Eraser:
    def __init__(self, store: Store, blobs: Blobs, settings: Settings) -> None:
        self._store = store
        self._blobs = blobs
        self._settings = settings
        self._pending_messages = PendingMessages(store, blobs, settings)

    async def plan(self, agent_id: str, selection: Selection) -> Plan:
        what = await select(self._store, self._blobs, agent_id, selection)
        plan = Plan(what, await self._lineage(agent_id, what))
        if not plan.lineage.lessons:
            return plan
        says = self._says(what)
        lessons = [_as_kept(one) for one in await self._lessons_left(agent_id, plan, says)]
        if not await asyncio.to_thread(any, map(says, lessons)):
            return plan
        # They are told in the words of those who stay, so these are not only of those who go.
        what = await select(self._store, self._blobs, agent_id, selection, also=lessons)
        return Plan(what, await self._lineage(agent_id, what))

    async def erase(
        self, agent_id: str, plan: Plan, receipt: ForgetReceipt, event: AuditDraft
    ) -> tuple[int, AuditEvent]:
        rewritten = await self._rewritten(agent_id, plan.lineage.summaries, sequences(plan.what.seqs))
        # Last: whoever judges one meanwhile would do so in vain.
        says = self._says(plan.what)
        lessons = [one for one in await self._lessons_left(agent_id, plan, says) if not says(_as_kept(one))]
        done = await self._store.erase(agent_id, plan.lineage, rewritten, receipt, event, lessons)
        for lesson in lessons:
            left = await self._store.lesson(agent_id, lesson.id)
            # Nothing gives way to what was rejected, also where the message that took it back is gone.
            if left is not None and left.learnt_text is not None and left.status != "rejected":
                await relinked(self._store, left, ERASER)
        return done

    async def late(self, agent_id: str, selection: Selection, event: int) -> list[Residue]:
        """What was said while it was being forgotten, and says the same."""
        if selection.matching is None:
            return []
        found = await said_since(self._store, self._blobs, agent_id, selection, event)
        return [
            Residue(where=f"message {seq} of {key}", what="it came meanwhile: forget it again") for key, seq in found
        ]

    async def drop_parts(self, agent_id: str, digests: Sequence[str]) -> None:
        """But for those that messages refer to by now: the same may have been said again since it was planned."""
        left = list(digests)
        for _ in range(DROPS):
            in_use = partial(self._store.parts_in_use, agent_id, left)
            left = await self._blobs.drop(agent_id, left, in_use) if left else []
            if not left:
                return
            await asyncio.sleep(HELD_SECONDS)
        raise StoreBusy(
            "a large part of what is forgotten is just being said again: it is gone from the log, and the next "
            "maintenance does the rest"
        )

    async def learnt_from(self, agent_id: str, lineage: Lineage) -> list[int]:
        """Where else the lessons that go were said: what is said there is learnt again."""
        places: set[int] = set()
        for id_ in lineage.lessons:
            places.update(await self._store.lesson_places(agent_id, id_))
        return sorted(places.difference(lineage.places))

    async def replacing(self, agent_id: str, lineage: Lineage) -> set[int]:
        """Places of those that replaced what goes: they may replace what that had replaced before them."""
        links = await self._store.supersessions(agent_id, lineage.places)
        return {link.new_place for link in links}.difference(lineage.places)

    # ── what came of it ──

    async def _lineage(self, agent_id: str, what: Selected) -> Lineage:
        """With summaries and lessons that say it without standing for it: a model writes of what it was shown."""
        lineage = await self._store.lineage(agent_id, what.places)
        if not what.places:
            return lineage
        says = self._says(what)
        summaries: list[str] = []
        lessons = list(lineage.lessons)
        async for kept in self._store.kept_texts(agent_id):
            if kept.table not in ("summary_texts", "lessons"):
                continue
            if await asyncio.to_thread(says, kept.text):
                name = kept.name.removeprefix("summary ")
                (summaries if kept.table == "summary_texts" else lessons).append(name)
        if summaries:
            lineage = await self._store.lineage(agent_id, what.places, summaries=summaries)
        lessons = sorted(set(lessons))
        reached = msgspec.structs.replace(lineage.reached, lessons=len(lessons))
        return msgspec.structs.replace(lineage, lessons=lessons, reached=reached)

    def _says(self, what: Selected) -> Callable[[str], bool]:
        """Tells whether a text says any of it."""
        holds = saying(what.windows)
        written = [folded(phrase) for phrase in what.phrases]

        def says(text: str) -> bool:
            said = folded(text)
            return any(phrase in said for phrase in written) or holds(text)

        return says

    # ── lessons without it ──

    async def _lessons_left(self, agent_id: str, plan: Plan, says: Callable[[str], bool]) -> list[Lesson]:
        """Those that others say, too, as they tell it, and as a person judged them."""
        gone = set(plan.lineage.places)
        left: list[Lesson] = []
        for id_ in plan.lineage.lessons:
            lesson = await self._read_lesson(agent_id, id_)
            if lesson is None:
                continue
            places = await self._store.lesson_places(agent_id, id_)
            sources: list[PlacedMessage] = []
            for first in range(0, len(places), PAGE):
                sources += await self._store.messages_at(agent_id, places[first : first + PAGE])
            remains = await asyncio.to_thread(remains_of, lesson, sources, gone, says)
            left += [] if remains is None else [remains]
        return left

    async def _read_lesson(self, agent_id: str, id_: str) -> Lesson | None:
        try:
            return await self._store.lesson(agent_id, id_)
        except StoreCorrupt:
            return None  # what nobody can read goes whole

    # ── summaries without it ──

    async def _rewritten(
        self, agent_id: str, ids: Sequence[str], gone: Mapping[str, set[int]]
    ) -> dict[str, SummaryDraft]:
        """Lowest level first, so that what merges others is made of what they say now. Without a model, whoever could
        write it better: this may not wait."""
        made: dict[str, SummaryDraft] = {}
        for id_ in ids:
            summary = await self._store.summary(agent_id, id_)
            if summary is None:
                continue
            draft = (
                await self._merged(agent_id, summary, made)
                if summary.draft.sources
                else await self._chunk(agent_id, summary, gone)
            )
            made[id_] = draft if draft.text.strip() else _emptied(draft)
        return made

    async def _chunk(self, agent_id: str, summary: Summary, gone: Mapping[str, set[int]]) -> SummaryDraft:
        span = summary.draft.spans[0]
        scope = Scope(agent_id=agent_id, session_id=span.session_id)
        read = await self._pending_messages.read(scope, span.first_seq, span.last_seq)
        without = gone.get(span.session_id, set())
        left = [one if one.seq not in without else ReadMessage(one.seq, 0, one.at, None, None) for one in read.readings]
        message_span = MessageSpan(span.first_seq, span.last_seq, sum(one.tokens for one in left))
        source = await asyncio.to_thread(ReadSpan(message_span, left).source, scope)
        return await asyncio.to_thread(chunk_draft, source, self._target_tokens(agent_id))

    async def _merged(self, agent_id: str, summary: Summary, made: Mapping[str, SummaryDraft]) -> SummaryDraft:
        sources = []
        for id_ in summary.draft.sources:
            source = await self._store.summary(agent_id, id_)
            if source is not None:
                sources.append(msgspec.structs.replace(source, draft=made.get(id_, source.draft)))
        return await asyncio.to_thread(merge_draft, sources, self._target_tokens(agent_id))

    def _target_tokens(self, agent_id: str) -> int:
        return self._settings.for_agent(agent_id).summary_target_tokens


def _as_kept(lesson: Lesson) -> str:
    """Its sources are rows of their own."""
    return msgspec.json.encode(msgspec.structs.replace(lesson, sources=[])).decode()


def _emptied(draft: SummaryDraft) -> SummaryDraft:
    return msgspec.structs.replace(draft, text=FORGOTTEN_TEXT, rank=[0], brief=FORGOTTEN_TEXT)
