"""From the log to what is shown: whole messages, and as much of a session's end as fits."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from offbook.context.corrections import Corrections
from offbook.context.cover import cover
from offbook.context.digest import Order
from offbook.context.fit import (
    LEAST_CHARS,
    LEAST_FOR_INTRODUCTION_CHARS,
    Composed,
    Digested,
    Kept,
    Plan,
    composed,
    extended,
    ledger_of,
    overhead,
    planned,
)
from offbook.context.handover import listed, not_contradicted
from offbook.context.newest_messages import NewestMessages, aside, read_piece
from offbook.context.pending_messages import PendingMessages, digested, said_before
from offbook.context.session_notes import told_records, told_thread
from offbook.context.tail import Tail, fitting, shown, tail_of, verbatim_room
from offbook.log.reading import LogReader
from offbook.log.store import Blobs, ExaminedMessage, Store
from offbook.model.errors import StoreCorrupt
from offbook.model.lesson import Lesson, LessonStatus
from offbook.model.recent import keep
from offbook.model.settings import Settings
from offbook.model.summary import Ledger, Node, StateRecord, SummaryText
from offbook.model.types import CompressedContext, Scope, Session, Span
from offbook.models.tokens import CHARS_PER_TOKEN
from offbook.search.whole_messages import readable
from offbook.statements.anchors import anchors_of
from offbook.statements.state_text import rendered

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
MOST_REFINEMENTS = 3
"""Room that summaries and digests leave over goes to the newest messages, which leaves less to digest, and so on."""
WORTH_REFINING, REFINED_SHARE = 0.05, 0.7
WIDEST_TAIL = 0.8
"""Of the context, where the digest lags: what is longer is read on the spot."""
STATE_SHARE, MOST_STATE_CHARS = 0.08, 3_000
PINNED_SHARE, MOST_PINNED_CHARS = 0.1, 6_000
ANCHORS_SHARE, MOST_ANCHORS_CHARS = 0.04, 2_000
MOST_PINNED = 50
PINNED_TEXT_CHARS = 500
SPANS_KEPT = 32
TEXTS_KEPT = 256
"""Some 20 KB each."""
SUMMARIES_ACCOUNTED = 200
MOST_NODES = 512
JUDGED: tuple[LessonStatus, ...] = ("accepted", "edited", "rejected")
LESSONS_LOOKED_AT = 200
"""The newest of those that a person has judged: they say which anchors are not so."""
MOST_ADDED = 200
"""Messages that a context is extended by; with more it is made anew."""


class SessionReader:
    def __init__(
        self, store: Store, blobs: Blobs, settings: Settings, pending_messages: PendingMessages, frame_key: bytes
    ) -> None:
        self._store = store
        self._log = LogReader(store, blobs)
        self._settings = settings
        self._pending_messages = pending_messages
        self._key = frame_key
        self._kept_texts: OrderedDict[tuple[str, tuple[int, ...], str], SummaryText] = OrderedDict()
        self._read_again: OrderedDict[tuple[Scope, tuple[int, ...], int, int], Digested] = OrderedDict()
        self.corrections = Corrections(store)

    def let_go(self, agent_id: str) -> None:
        """Keep nothing in memory of what was read of the agent's log and summaries."""
        for text in [text for text in self._kept_texts if text[0] == agent_id]:
            del self._kept_texts[text]
        for message_span in [message_span for message_span in self._read_again if message_span[0].agent_id == agent_id]:
            del self._read_again[message_span]
        self._pending_messages.let_go(agent_id)
        self.corrections.let_go(agent_id)

    async def read(self, scope: Scope, session: Session, max_chars: int) -> Built:
        """The whole session in at most `max_chars`: as much of the log's end as can fit, and of the summaries."""
        pieces = NewestMessages(self._store, self._log, scope, session.last_seq, max_chars)
        if session.chars <= max_chars and await pieces.read(max_chars):
            tail = await aside(
                len(pieces.newest_first), lambda: fitting(pieces.newest_first[::-1], max_chars, self._key)
            )
            if len(tail.pieces) == session.last_seq:
                return self._composed(session, tail, Older(), max_chars, pieces.built_at)
        room = verbatim_room(max_chars, session.chars)
        budget = self._settings.for_agent(scope.agent_id).context_budget
        for attempt in range(MOST_REFINEMENTS):
            await pieces.read(room, turns=budget.recent_turns_always_full)
            newest_first = pieces.newest_first
            tail = await aside(len(newest_first), partial(tail_of, newest_first, room, max_chars, budget, self._key))
            older = await self._older(scope, session, tail, max_chars)
            if older.is_lagging and attempt == 0:  # what nobody has read yet is shown as it was said
                unread = await pieces.cost_after(older.read_through)
                if unread is not None and unread <= max_chars * WIDEST_TAIL:
                    room = max(room, unread)
                else:
                    await self._pending_messages.catch_up(scope, session)
                continue
            if older.plan.left_over < max_chars * WORTH_REFINING or not tail.pieces:
                break
            room = max(room, tail.chars) + int(older.plan.left_over * REFINED_SHARE)
        return await asyncio.to_thread(self._composed, session, tail, older, max_chars, pieces.built_at)

    async def extended(self, scope: Scope, session: Session, before: Composed, max_chars: int) -> Composed | None:
        """A context with what has come since, word for word: however long the session is, only that is read. None where
        it is too much, or does not fit."""
        after_seq = before.context.covers.last_seq
        count = session.last_seq - after_seq
        if not 0 < count <= MOST_ADDED:
            return None if count else before
        page = await self._store.messages(scope, after_seq=after_seq, limit=count)
        if len(page) != count or sum(logged.entry.chars for logged in page) > max_chars - before.context.chars:
            return None
        pieces = [await read_piece(self._log, scope, logged, max_chars) for logged in page]
        return await aside(len(before.tail.pieces) + count, lambda: extended(before, pieces, max_chars, self._key))

    async def ledger(self, scope: Scope, session: Session, composed: Composed, nodes: Sequence[Node]) -> Ledger:
        """What the context keeps of the session and what it leaves out."""
        pending = await self._pending_messages.at_once(scope, session)
        losses = await asyncio.to_thread(said_before, pending.message_spans(), scope.session_id, composed.tail_from)
        through = min(pending.summarised_through, composed.tail_from - 1)
        ids = [node.id for node in nodes]
        if not ids and through:  # no room for any: what stands for it all the same
            levels = await self._levels(scope, through, composed.context.max_chars)
            ids = [node.id for node in cover(levels, through, {})]
        ids += [node.id for node in await self._store.nodes_holding(scope, seq=through) if node.level == 1]
        texts = await self._texts(scope, list(dict.fromkeys(ids))[-SUMMARIES_ACCOUNTED:]) if ids else {}
        state = await self.state(scope)
        return await asyncio.to_thread(ledger_of, composed.context, composed.memory, texts, losses, state)

    async def chars_after(self, scope: Scope, seq: int) -> int:
        """How many characters have come after this message."""
        session = await self._store.session(scope)
        examined = await self._store.examined_messages(scope, after_seq=seq - 1, limit=1) if seq else []
        through = examined[0].chars_through if examined and isinstance(examined[0], ExaminedMessage) else 0
        return max(0, session.chars - through) if session else 0

    async def state(self, scope: Scope) -> list[StateRecord]:
        records = await told_records(self._store, scope)
        newest = await self.corrections.newest(scope.agent_id) if records else []
        here = {(one.seq, text) for one in newest if one.session_id == scope.session_id for text in one.outdated}
        return [one for one in records if here.isdisjoint((seq, one.text) for seq in (one.first_seq, one.last_seq))]

    async def _older(self, scope: Scope, session: Session, tail: Tail, max_chars: int) -> Older:
        """What stands for everything before the tail, planned to fit beside it."""
        before = tail.pieces[0].seq if tail.pieces else session.last_seq + 1
        kept = await self._kept(scope, before, max_chars)
        room = max_chars - tail.chars - overhead(session.last_seq, max_chars, kept)
        if before <= 1 or room < LEAST_CHARS:
            return Older(kept=kept)
        pending = await self._pending_messages.at_once(scope, session)
        through, message_spans, order = pending.summarised_through, pending.message_spans(), None
        read: list[Digested] = []
        if before - 1 > through:
            read, order = await asyncio.to_thread(digested, message_spans, before)
        levels = await self._levels(scope, min(through, before - 1), max_chars)
        if before - 1 < through:
            split = await self._split(scope, before)
            if split is not None:
                read, order = [split], None
                levels = await self._levels(scope, split.first_seq - 1, max_chars)
                through = split.first_seq - 1
        caps = self._caps(scope.agent_id)
        plan = planned(levels, read, summarised_through=min(through, before - 1), room=room, caps=caps)
        shown = [node.id for node, size in zip(plan.nodes, plan.sizes, strict=True) if size > len(node.brief)]
        texts = await self._texts(scope, shown) if shown else {}
        outdated = await self.corrections.outdated(scope.agent_id)
        return Older(plan, texts, read, kept, order, outdated, pending.through_seq, pending.through_seq < before - 1)

    async def _texts(self, scope: Scope, ids: Sequence[str]) -> dict[str, SummaryText]:
        """Those shown before are kept in memory: the same are shown again and again."""
        edition = self._store.versions.of(scope.agent_id, "texts")
        keys = {summary_id: (scope.agent_id, edition, summary_id) for summary_id in ids}
        unknown = [summary_id for summary_id in ids if keys[summary_id] not in self._kept_texts]
        found = {summary_id: text for summary_id in ids if (text := self._kept_texts.get(keys[summary_id])) is not None}
        if unknown:  # another may have asked meanwhile, and what was found above be out of memory by now
            found |= await self._stored_texts(scope, unknown)
        for summary_id, text in found.items():
            keep(self._kept_texts, keys[summary_id], text, TEXTS_KEPT)
        return {summary_id: found[summary_id] for summary_id in ids if summary_id in found}

    async def _stored_texts(self, scope: Scope, ids: Sequence[str]) -> dict[str, SummaryText]:
        """One that is damaged is shown by its brief and keeps none of the others back: `doctor` tells of it."""
        try:
            return await self._store.summary_texts(scope.agent_id, ids)
        except StoreCorrupt:
            found: dict[str, SummaryText] = {}
            for summary_id in ids:
                with suppress(StoreCorrupt):
                    found.update(await self._store.summary_texts(scope.agent_id, [summary_id]))
            return found

    async def _levels(self, scope: Scope, through_seq: int, max_chars: int) -> dict[int, list[Node]]:
        """As many summaries of each level as could be shown; of the coarsest, as many as could at their shortest."""
        if through_seq < 1:
            return {}
        most = self._settings.for_agent(scope.agent_id).max_levels
        many, few = min(MOST_NODES, max_chars // LEAST_CHARS + 1), min(128, max_chars // 1_000 + 12)
        levels: dict[int, list[Node]] = {}
        for level in range(most, 0, -1):
            reaches_back = any(nodes and nodes[-1].first_seq == 1 for nodes in levels.values())
            limit = few if reaches_back or (level > 1 and level < most) else many
            levels[level] = await self._store.nodes(scope, level=level, through_seq=through_seq, limit=limit)
        return levels

    async def _split(self, scope: Scope, before: int) -> Digested | None:
        """The stretch of a summary that the tail reaches into, read again, as a summary cannot be cut in two."""
        nodes = await self._store.nodes_holding(scope, seq=before - 1)
        node = next((one for one in nodes if one.level == 1), None)
        if node is None or node.last_seq < before:
            return None
        key = (scope, self._store.versions.of(scope.agent_id, "erased"), node.first_seq, node.last_seq)
        digest = self._read_again.get(key)
        if digest is None:
            message_span = await self._pending_messages.read(scope, node.first_seq, node.last_seq)
            digest = await asyncio.to_thread(message_span.digested)
        keep(self._read_again, key, digest, SPANS_KEPT)
        return digest

    async def _kept(self, scope: Scope, before: int, max_chars: int) -> Kept:
        """Pinned messages that are no longer shown, and what the agent was doing."""
        if max_chars < LEAST_FOR_INTRODUCTION_CHARS:
            return Kept()
        is_task_aware = self._settings.for_agent(scope.agent_id).compaction.task_aware_compaction
        records = await self.state(scope) if is_task_aware else []
        state = rendered(records, min(int(max_chars * STATE_SHARE), MOST_STATE_CHARS))
        places = await self._store.pinned(scope.agent_id, limit=MOST_PINNED, session_id=scope.session_id)
        placed = await readable(self._store, scope.agent_id, places) if places else []
        pinned = [
            f"Pinned, {_shortened(shown(one.logged.message), PINNED_TEXT_CHARS)}"
            for one in sorted(placed, key=lambda one: one.logged.seq)
            if one.logged.seq < before
        ]
        return Kept(
            anchors=await self._anchors(scope, before, min(int(max_chars * ANCHORS_SHARE), MOST_ANCHORS_CHARS)),
            pinned=_as_many_as_fit(pinned, min(int(max_chars * PINNED_SHARE), MOST_PINNED_CHARS)),
            state=state,
        )

    async def _anchors(self, scope: Scope, before: int, max_chars: int) -> str:
        """Who they are, what did not fit together, what is unresolved, of what is no longer shown (D3)."""
        settings = self._settings.for_agent(scope.agent_id).anchors
        thread = await told_thread(self._store, scope)
        # The same log gives the same bytes, whatever the time is now.
        kept = anchors_of([(scope.session_id, thread.anchors)], settings, _NEVER) if settings.enabled else []
        older = [one for one in kept if one.seq < before]
        judged: list[Lesson] = []
        if older:
            with suppress(StoreCorrupt):
                judged = await self._store.lessons(scope.agent_id, statuses=JUDGED, limit=LESSONS_LOOKED_AT)
        return listed(not_contradicted(older, judged), max_chars)

    def _caps(self, agent_id: str) -> dict[int, int]:
        budget = self._settings.for_agent(agent_id).injection_budget
        return {level: tokens * CHARS_PER_TOKEN for level, tokens in ((1, budget.l1), (2, budget.l2), (3, budget.l3))}

    def _composed(self, session: Session, tail: Tail, older: Older, max_chars: int, built_at: datetime) -> Built:
        made = composed(
            Scope(agent_id=session.agent_id, session_id=session.session_id),
            tail,
            older.plan,
            older.texts,
            older.digested,
            older.kept,
            last_seq=session.last_seq,
            generation=session.generation,
            max_chars=max_chars,
            built_at=built_at,
            key=self._key,
            order=older.order,
            outdated=older.outdated,
        )
        return Built(made, older)


class Older(NamedTuple):
    """What stands for the messages before the tail."""

    plan: Plan = Plan([], [], 0, 0)
    texts: Mapping[str, SummaryText] = MappingProxyType({})
    digested: Sequence[Digested] = ()
    kept: Kept = Kept()
    order: Order | None = None
    outdated: Mapping[str, str] = MappingProxyType({})
    read_through: int = 0
    is_lagging: bool = False
    """Not everything before the tail had been read."""


class Built(NamedTuple):
    """A context, and what stands in it for the messages before the tail."""

    composed: Composed
    older: Older


def empty_context(scope: Scope, max_chars: int) -> CompressedContext:
    return CompressedContext(
        session_id=scope.session_id,
        agent_id=scope.agent_id,
        generation=0,
        text="",
        messages=[],
        chars=0,
        max_chars=max_chars,
        covers=Span(first_seq=1, last_seq=0),
        parts=[],
        built_at=_NEVER,
    )


def _shortened(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"


def _as_many_as_fit(texts: Sequence[str], max_chars: int) -> str:
    """The last of them: what was pinned of the newest."""
    kept: list[str] = []
    for text in reversed(texts):
        max_chars -= len(text) + 1
        if max_chars < 0:
            break
        kept.append(text)
    return "\n".join(reversed(kept))
