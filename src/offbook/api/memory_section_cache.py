"""The stable section of a session's turns: made once, then the same to the byte until the next swap, or until
something that it asserts was corrected or unlinked, or a backfill has ended: then it is made anew, once.

The host puts it at the start of the context, where providers cache what does not change. So it is kept in the store
and given again, whatever has been said or summarised since.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeVar
from weakref import WeakValueDictionary

import msgspec

from offbook.api.background import Background
from offbook.api.session_state import SessionStateService
from offbook.context.corrections import later_than
from offbook.context.cover import COARSEST, cost
from offbook.context.memory_section import Known, lessons_named, memory_budget, memory_section, pinned_text
from offbook.log.store import Store
from offbook.model.content import own_text
from offbook.model.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull
from offbook.model.lesson import Lesson, LessonStatus
from offbook.model.memory_entry import TAKEN_BACK
from offbook.model.recent import keep
from offbook.model.settings import Settings
from offbook.model.summary import Summary
from offbook.model.turn import Handed, SessionState, TurnMemory
from offbook.model.types import AuditEvent, Message, Scope, Session, Span, now
from offbook.projections.import_pause import IMPORTED
from offbook.projections.lesson_corrections import UNLINKED
from offbook.search.recurrence import recurring
from offbook.search.resolve import SINCE
from offbook.search.whole_messages import readable
from offbook.statements.clauses import keys_in, left_of, spans_of
from offbook.statements.lessons import JUDGED, chosen_lessons

SUMMARIES_AT_A_TIME = 64
MOST_PINNED = 50
LESSONS_LOOKED_AT = 200
"""Of those that a person has judged, and of the others: the newest."""
GOING_ON = timedelta(days=14)
"""What was open in a conversation longer ago than this is no longer going on."""
LEARNT: tuple[LessonStatus, ...] = ("learnt",)
REJECTED: tuple[LessonStatus, ...] = ("rejected",)
LOOK_SECONDS = 0.05
SECTIONS_KEPT = 64
EVENTS_LOOKED_AT = 8
CHANGES_HANDS = ("hooks/post-compaction", "hooks/session-start")
"""Beside a swap, which is known by its generation: what the agent has before its eyes is another thing then."""
T = TypeVar("T", bound=Hashable)


class Epoch(NamedTuple):
    """Which context the agent runs on: of which swap, and what has happened to it since."""

    generation: int
    event: AuditEvent | None
    """The last time it changed hands without a swap."""
    is_new: bool = False
    """No turn was prepared since then."""

    @property
    def name(self) -> str:
        """What a section belongs to: between two swaps it does not change by a byte, whatever else happens."""
        return str(self.generation)

    @property
    def is_first(self) -> bool:
        """The agent still runs on what the host began with."""
        return not self.generation and self.event is None


class MemorySectionCache:
    def __init__(
        self,
        store: Store,
        settings: Settings,
        session_state: SessionStateService,
        background: Background,
        frame_key: bytes,
    ) -> None:
        self._store = store
        self._settings = settings
        self._indexes, self._embedders = background.indexes, background.embedders
        self._session_state = session_state
        self._corrections = background.reader.corrections
        self._key = frame_key
        self._kept: OrderedDict[tuple[Scope, tuple[int, ...]], TurnMemory] = OrderedDict()
        self._handed: OrderedDict[tuple[Scope, tuple[int, ...], int, int], Handed | None] = OrderedDict()
        self._epochs: OrderedDict[Scope, tuple[tuple[int, ...], Epoch]] = OrderedDict()
        self._making: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()
        self._checked: OrderedDict[Scope, tuple[datetime, tuple[int, ...]]] = OrderedDict()
        """Of the sections that hold: when they were made, and the version of what they were compared with."""

    async def epoch(self, scope: Scope, session: Session | None) -> Epoch:
        if session is None:
            return Epoch(0, None)
        version = self._store.versions.of(scope.agent_id, "marks", "erased")
        known = self._epochs.get(scope)
        if known is None or known[0] != version or known[1].is_new:
            known = (version, await self._read_epoch(scope))
            keep(self._epochs, scope, known, SECTIONS_KEPT)
        return known[1]._replace(generation=session.generation)

    async def _read_epoch(self, scope: Scope) -> Epoch:
        events = await self._newest(scope, CHANGES_HANDS)
        # A start that had nothing to hand over leaves the host with what it had.
        changes = [event for event in events if event.details.get("context", event) is not None]
        if not changes:
            return Epoch(0, None)
        turns = [event for event in await self._newest(scope, ("prepareTurn",)) if not event.details.get("preview")]
        return Epoch(0, changes[-1], not turns or turns[-1].seq < changes[-1].seq)

    async def _newest(self, scope: Scope, verbs: Sequence[str]) -> list[AuditEvent]:
        return await self._store.newest_audit_events(
            scope.agent_id, session_id=scope.session_id, verbs=verbs, limit=EVENTS_LOOKED_AT
        )

    async def known(self, scope: Scope, epoch: Epoch) -> TurnMemory | None:
        """The section of this epoch; None where it has not been made yet."""
        key = (scope, self._erased(scope))
        known = self._kept.get(key)
        if known is None or known.epoch != epoch.name:
            with suppress(StoreCorrupt):  # one that is damaged is made anew: `doctor` tells of it
                known = await self._store.turn_memory(scope)
        if known is None or known.epoch != epoch.name or await self._is_overtaken(scope, known):
            return None
        keep(self._kept, key, known, SECTIONS_KEPT)
        return known

    async def _is_overtaken(self, scope: Scope, known: TurnMemory) -> bool:
        """Whether something it asserts was corrected since, or what it tells as over unlinked, or it was made before
        a backfill ended."""
        version = self._store.versions.of(scope.agent_id, "learnt", "lessons", "links", "imports")
        if self._checked.get(scope) == (known.at, version):
            return False
        for name in (IMPORTED, UNLINKED):
            note = await self._store.agent_note(scope.agent_id, name)
            if note is not None and known.at < _moment(note):
                return True
        named = lessons_named(known)
        if named and not await self._store.standing_lessons(scope.agent_id, named) >= set(named):
            return True
        keep(self._checked, scope, (known.at, version), SECTIONS_KEPT)
        return False

    def _erased(self, scope: Scope) -> tuple[int, ...]:
        """What was read before something of the agent's was forgotten for good is not shown again."""
        return self._store.versions.of(scope.agent_id, "erased")

    async def handed(self, scope: Scope, epoch: Epoch) -> Handed | None:
        """What the agent runs on, where it is ours and the host has not compacted it since."""
        if epoch.is_first:
            return None
        key = (scope, self._erased(scope), epoch.generation, epoch.event.seq if epoch.event else 0)
        if key not in self._handed:  # read once for each hand-over: it is large
            keep(self._handed, key, await self._read_handed(scope, epoch), SECTIONS_KEPT)
        return self._handed[key]

    async def _read_handed(self, scope: Scope, epoch: Epoch) -> Handed | None:
        with suppress(StoreCorrupt):
            handed = await self._store.handed(scope)
            event = epoch.event
            has_compacted = handed and event and event.verb == "hooks/post-compaction" and event.at > handed.at
            if handed is not None and not has_compacted:
                verbatim = [part for part in handed.parts if part.kind == "verbatim"]
                spans = [Span(first_seq=part.first_seq, last_seq=part.last_seq) for part in verbatim]
                return Handed(spans=spans, through=handed.last_seq)
        return None

    async def made(
        self,
        scope: Scope,
        epoch: Epoch,
        handed: Handed | None,
        *,
        window: int,
        current_tokens: int,
        recall_budget: int,
        keeps: bool,
    ) -> TurnMemory:
        """The section, made now. With `keeps` it is the same from now on."""
        # One makes it: two that come at once would each make a section of their own.
        async with self._making.setdefault(scope, asyncio.Lock()):
            known = await self.known(scope, epoch)
            if known is not None and known.tokens <= self.most_tokens(scope.agent_id, window):
                return known
            for is_last in (False, False, True):
                erased = self._erased(scope)
                made = await self._made(scope, epoch, handed, window, current_tokens, recall_budget)
                if is_last or not self._store.versions.is_erased_since(scope.agent_id, erased):
                    break  # else it may hold what was forgotten meanwhile
            # Whoever was slow must not bury the section of a context that has been swapped in meanwhile.
            if keeps and (await self.epoch(scope, await self._store.session(scope))).name == epoch.name:
                with suppress(StoreFull, StoreBusy):  # then it is the same until a restart, or made anew
                    await self._store.keep_turn_memory(scope, made, made_of=erased)
                keep(self._kept, (scope, erased), made, SECTIONS_KEPT)
        return made

    def most_tokens(self, agent_id: str, window: int) -> int:
        """However it came about: a model with a smaller window cannot be shown more (D2)."""
        return int(window * self._settings.for_agent(agent_id).context_budget.context_budget_ratio)

    async def _made(
        self,
        scope: Scope,
        epoch: Epoch,
        handed: Handed | None,
        window: int,
        current_tokens: int,
        recall_budget: int,
    ) -> TurnMemory:
        settings, at = self._settings.for_agent(scope.agent_id), now()
        budget = memory_budget(
            settings,
            window=window,
            current_tokens=current_tokens,
            recall_budget=recall_budget,
            is_handed=handed is not None,
        )
        known = await self._gathered(scope, is_handed=handed is not None)
        section = await asyncio.to_thread(
            memory_section, known, settings, session_id=scope.session_id, budget=budget, key=self._key
        )
        return TurnMemory(
            epoch=epoch.name,
            at=at,
            text=section.text,
            tokens=section.tokens,
            parts=section.parts,
        )

    async def _gathered(self, scope: Scope, *, is_handed: bool) -> Known:
        """What the agent remembers; without what its context shows already, where that is ours."""
        sessions = [
            session
            for session in await self._session_state.newest(scope.agent_id)
            if not (is_handed and session.session_id == scope.session_id)
        ]
        summaries, pinned, lessons = await asyncio.gather(
            self._summaries(scope, is_handed=is_handed),
            self._pinned(scope, is_handed=is_handed),
            self._lessons(scope.agent_id),
        )
        passing = await self._in_passing(
            scope.agent_id,
            {
                **{one: [(one.session_id, one.last_seq)] for one in sessions if one.session_id != scope.session_id},
                **{
                    one.id: [(span.session_id, span.last_seq) for span in one.draft.spans]
                    for one in summaries
                    if not _is_within(one, scope.session_id)
                },
                **{one.id: [(source.session_id, source.seq) for source in one.sources] for one in lessons},
            },
        )
        in_passing = [one for one in summaries if one.id in passing]
        summaries = [one for one in summaries if one.id not in passing]
        states = await self._session_state.states([one for one in sessions if one not in passing])
        chosen = chosen_lessons(lessons, self._settings.for_agent(scope.agent_id).lessons, now(), passing)
        outdated = await self._corrections.outdated(scope.agent_id)
        later = later_than(chosen, await self._corrections.newest(scope.agent_id))
        # What was said later may be a lesson of its own: then it is told once, with what it was before.
        by_text = {one.text: one.id for one in chosen}
        before = {by_text[text]: one.text for one in chosen if (text := later.get(one.id)) in by_text}
        chosen = [one for one in chosen if later.get(one.id) not in by_text]
        return Known(
            summaries=summaries,
            states=[_without(one, outdated) for one in states if now() - one.last_at <= GOING_ON],
            pinned=pinned,
            lessons=chosen,
            before=before | _before(lessons),
            later=later,
            outdated=outdated,
            passing=in_passing,
        )

    async def _in_passing(self, agent_id: str, said: Mapping[T, Sequence[tuple[str, int]]]) -> set[T]:
        """Of what was said at these messages, what was said only in conversations that they never came back to."""
        ids = {session_id for spoken in said.values() for session_id, _ in spoken}
        numbers = {one: await self._store.session_number(agent_id, one) for one in ids}
        places = {
            one: [number << 32 | seq for session_id, seq in spoken if (number := numbers[session_id]) is not None]
            for one, spoken in said.items()
        }
        flat = [place for some in places.values() for place in some]
        recurs: dict[int, bool] = {}
        with suppress(StoreError):  # no index: nobody can tell
            async with self._indexes.following(agent_id, seconds=LOOK_SECONDS) as (index, _):
                model = await self._embedders.fingerprint_for(self._store, agent_id)
                vectors = index.vectors(model) if model is not None else None
                if vectors is not None and flat:
                    found = await asyncio.to_thread(recurring, index.rows, vectors, flat)
                    recurs = dict(zip(flat, found, strict=True))
        return {one for one, some in places.items() if some and not any(recurs.get(place, True) for place in some)}

    async def _summaries(self, scope: Scope, *, is_handed: bool) -> list[Summary]:
        settings = self._settings.for_agent(scope.agent_id)
        budgets = settings.injection_budget
        found: list[Summary] = []
        for level in range(1, settings.max_levels + 1):
            # What the coarser levels leave of theirs may be shown of this one.
            tokens = sum((budgets.l1, budgets.l2, budgets.l3)[min(level, COARSEST) - 1 :])
            with suppress(StoreCorrupt):
                found += await self._newest_summaries(scope.agent_id, level, tokens)
        return [one for one in found if not (is_handed and _is_within(one, scope.session_id))]

    async def _newest_summaries(self, agent_id: str, level: int, tokens: int) -> list[Summary]:
        """As many as so many tokens could show."""
        found: list[Summary] = []
        while tokens > 0:
            before = found[-1].id if found else None
            page = await self._store.summaries(agent_id, level=level, before=before, limit=SUMMARIES_AT_A_TIME)
            found += page
            tokens -= sum(map(cost, page))
            if len(page) < SUMMARIES_AT_A_TIME:
                break
        return found

    async def _lessons(self, agent_id: str) -> list[Lesson]:
        """What a person has judged also where no lesson is told: what they rejected is not told otherwise either."""
        settings = self._settings.for_agent(agent_id).lessons
        found: list[Lesson] = []
        for statuses in (
            (JUDGED, REJECTED, LEARNT) if settings.enabled and settings.max_injected else (JUDGED, REJECTED)
        ):
            with suppress(StoreCorrupt):
                found += await self._store.lessons(agent_id, statuses=statuses, limit=LESSONS_LOOKED_AT)
        return found

    async def _pinned(self, scope: Scope, *, is_handed: bool) -> Sequence[str]:
        """What was replaced or taken back since is left out, all or the part that was: recall tells of it."""
        places = await self._store.pinned(scope.agent_id, limit=MOST_PINNED)
        links = await self._store.supersessions(scope.agent_id, places) if places else []
        replacing = [link for link in links if link.kind not in (TAKEN_BACK, SINCE)]
        spans: dict[int, list[tuple[int, int]]] = {}
        for link in replacing:
            spans.setdefault(link.old_place, []).extend(spans_of(link.note))
        gone = {link.old_place for link in replacing if not spans_of(link.note)}
        placed = await readable(self._store, scope.agent_id, [place for place in places if place not in gone])
        shown = [one for one in placed if not (is_handed and one.session_id == scope.session_id)]
        shown.sort(key=lambda one: (one.logged.message.ts or one.logged.received_at, one.place))
        messages = [(one.logged, _left(one.logged.message, spans.get(one.place, ()))) for one in shown]
        return [pinned_text(left, left.ts or logged.received_at) for logged, left in messages if left.content]


def _moment(note: str) -> datetime:
    """When that was; long ago where it has not come to its end, or nobody can tell."""
    try:
        return datetime.fromisoformat(note)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def _is_within(summary: Summary, session_id: str) -> bool:
    """Or partly: what it merges of other sessions is shown by itself then."""
    return any(span.session_id == session_id for span in summary.draft.spans)


def _without(state: SessionState, texts: Collection[str]) -> SessionState:
    return msgspec.structs.replace(state, records=[one for one in state.records if one.text not in texts])


def _left(message: Message, spans: Sequence[tuple[int, int]]) -> Message:
    """A message without the characters that no longer hold."""
    return msgspec.structs.replace(message, content=left_of(own_text(message.content), spans)) if spans else message


def _before(lessons: Sequence[Lesson]) -> dict[str, str]:
    """By the id of a lesson, what held before it: of what said several things, without what still holds."""
    holding = {key for one in lessons if one.replaced_by is None for key in keys_in(one.text)}
    found: dict[str, str] = {}
    for one in lessons:
        if one.replaced_by:
            gone = [part.text for key, part in keys_in(one.text).items() if key not in holding]
            found[one.replaced_by] = ". ".join(gone) or one.text
    return found
