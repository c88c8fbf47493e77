"""Recall, top to bottom.

query ─▶ read (names, times) ─▶ index caught up ─▶ vector, within a deadline ─▶ ranked (see `ranking`) ─▶ pins
      ─▶ what was replaced gives way to what holds now ─▶ excerpts ─▶ entries, best first
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from msgspec import structs

from offbook.log.audit_chain import micros, moment
from offbook.log.store import Blobs, Store
from offbook.log.tiers import OffloadedThrough, hot_until, offloaded_through
from offbook.model.deadline import looked_at
from offbook.model.errors import ModelUnavailable, StoreError
from offbook.model.memory_entry import Hold, LeftOut, MemoryEntry, PlacedMessage, Recollection, Supersession
from offbook.model.settings import Settings
from offbook.model.settings.sections import Ttl
from offbook.model.types import Message, Scope, now
from offbook.search.ask import Ask, Found
from offbook.search.fresh import SEARCHED_CHARS, with_fresh
from offbook.search.index.text import is_indexed
from offbook.search.query import Query, as_spoken, read_query, searched_terms
from offbook.search.resolve import LONGEST_CHAIN, ResolvedHit, resolve_supersession
from offbook.search.results import Choose, Lead, entries_of, explained_by, leads_of
from offbook.search.times import QueryTimes, read_times
from offbook.search.whole_messages import large_chars, whole_text
from offbook.search.words import entry_id, is_latin, query_terms

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    import numpy as np
    from numpy.typing import NDArray

    from offbook.models.protocols import Embedder
    from offbook.search.index.agent_index import AgentIndex
    from offbook.search.ranking import Look, Ranking

FOLLOW_SECONDS = 0.25
"""For taking in what has just arrived. Only after a large import is there more."""
OTHERS_UNTIL = 0.6
"""Of the time there is: later than that, no further agent's memory is searched."""
FOLLOW_SHARE, VECTOR_SHARE = 0.2, 0.5
"""Of the time there is, for taking in what has just arrived, and for the query's vector."""
NEWEST_MESSAGES = 300
LONG_SILENCE = timedelta(days=180)
"""After it, a date without a year is one before the newest message."""
"""Read from the log itself where the index has not caught up."""
LEAST_WAITING, SHARE_WAITING = 4, 0.02
"""Messages without a vector that are worth a word. The last few always are: they are found by text meanwhile."""
PINNED = 0.75
HOT = 0.5
"""Added where memory is injected by itself: what is at hand first."""
CONTENDERS = 12
"""Looked at beyond the limit: some give way to others."""


class Indexed(Protocol):
    """Gives an agent's index, caught up as far as time allows."""

    def peek(self, agent_id: str) -> AgentIndex | None: ...

    def following(self, agent_id: str, *, seconds: float) -> AbstractAsyncContextManager[tuple[AgentIndex, bool]]: ...


class Vectorised(Protocol):
    """Gives the model whose vectors serve an agent; ModelUnavailable says why there is none."""

    async def serving(self, store: Store, agent_id: str) -> Embedder: ...

    async def query_vector(self, embedder: Embedder, text: str, *, seconds: float) -> NDArray[np.float32]: ...


class Recall:
    def __init__(self, store: Store, blobs: Blobs, indexes: Indexed, embedders: Vectorised, settings: Settings) -> None:
        self._store = store
        self._blobs = blobs
        self._indexes = indexes
        self._embedders = embedders
        self._settings = settings
        self._ahead: set[asyncio.Task[None]] = set()

    async def __call__(self, ask: Ask, choose: Choose = list) -> tuple[Recollection, dict[str, list[int]]]:
        """The answer, and the places that were shown, by agent. `choose`: of what was found, what becomes an entry."""
        started = time.perf_counter()
        asked_at = ask.at or now()
        degraded: list[str] = []
        found: list[Found] = []
        for agent_id in (ask.scope.agent_id, *ask.others):
            if found and ask.seconds is not None and time.perf_counter() - started > ask.seconds * OTHERS_UNTIL:
                degraded.append("cross-agent: not every other agent was searched, for want of time")
                break
            found.append(await self._found(agent_id, ask, asked_at, degraded))
        best = in_turns(found)[: ask.limit]
        leads: list[Lead] = []
        shown: dict[str, list[int]] = {}
        for one in found:
            chosen = [resolved for owner, resolved in best if owner is one]
            leads += await leads_of(self._store, self._blobs, one, chosen)
            shown[one.agent_id] = [resolved.place for resolved in chosen]
        order = {(one.agent_id, resolved.place): at for at, (one, resolved) in enumerate(best)}
        leads.sort(key=lambda lead: order[lead.found.agent_id, lead.resolved.place])
        return Recollection(
            entries=_falling(await entries_of(self._blobs, leads, choose, ask, self._ttl_of, asked_at)),
            took_ms=round((time.perf_counter() - started) * 1_000, 3),
            degraded=degraded,
            explained=explained_by(ask, found) if ask.explain else None,
        ), shown

    def anticipate(self, agent_id: str, query: str) -> None:
        """Begin with the vector of what is about to be asked, while something else is looked up."""
        index = self._indexes.peek(agent_id)
        spoken = as_spoken(read_query(query, index.rows.names() if index else ()))
        task = asyncio.create_task(self._anticipated(agent_id, spoken))
        self._ahead.add(task)
        task.add_done_callback(self._ahead.discard)

    async def _anticipated(self, agent_id: str, spoken: str) -> None:
        seconds = self._settings.for_agent(agent_id).search.deadline.total_seconds()
        with suppress(ModelUnavailable, TimeoutError, StoreError):  # who asks is told of it
            await self._embedded(agent_id, spoken, seconds)

    async def entries_at(self, scope: Scope, places: Sequence[int], choose: Choose = list) -> list[MemoryEntry]:
        """Of what lies there, in this order, what is chosen, for whoever looks for nothing."""
        from offbook.search.ranking import NOTHING

        agent_id = scope.agent_id
        holds, offloaded = await asyncio.gather(
            self._store.holds(agent_id, places), offloaded_through(self._store, agent_id)
        )
        resolved = [ResolvedHit(place, 0.0) for place in places]
        found = Found(agent_id, QueryTimes(), NOTHING, hits={}, resolved=resolved, holds=holds, offloaded=offloaded)
        leads = await leads_of(self._store, self._blobs, found, resolved)
        return await entries_of(self._blobs, leads, choose, Ask(scope=scope, query=""), self._ttl_of, now())

    def _ttl_of(self, agent_id: str) -> Ttl:
        return self._settings.for_agent(agent_id).ttl

    # ── one agent's memory ──

    async def _found(self, agent_id: str, ask: Ask, asked_at: datetime, degraded: list[str]) -> Found:
        ranking, times = await self._ranked(agent_id, ask, asked_at, degraded)
        places = [hit.place for hit in ranking.hits]
        holds, links, offloaded = await asyncio.gather(
            self._store.holds(agent_id, places),
            self._links(agent_id, places, asked_at),
            offloaded_through(self._store, agent_id),
        )
        scores = self._with_holds(agent_id, ask, ranking, holds, offloaded, asked_at)
        outcome = resolve_supersession(
            scores,
            links,
            include_superseded=ask.include_superseded,
            said_then=_said_then(ranking, times, asked_at),
            out_of_reach=await self._out_of_reach(agent_id, ask, links),
        )
        hits = {hit.place: hit for hit in ranking.hits}
        heirs = [one.place for one in outcome.resolved if one.place not in hits]
        left_out = [LeftOut(id=entry_id(one.place), why=one.why) for one in ranking.filtered]
        left_out += [
            LeftOut(id=entry_id(place), why=f"{link.kind}: {entry_id(link.new_place)} holds now")
            for place, link in outcome.gone.items()
        ]
        return Found(
            agent_id=agent_id,
            times=times,
            ranking=ranking,
            hits=hits,
            resolved=outcome.resolved,
            holds={**holds, **await self._store.holds(agent_id, heirs)} if heirs else holds,
            offloaded=offloaded,
            left_out=left_out,
        )

    async def _out_of_reach(self, agent_id: str, ask: Ask, links: Sequence[Supersession]) -> set[int]:
        """Of one session only what was said in it is shown: a correction may have been made in another."""
        if ask.reach != "session" or not links:
            return set()
        placed = await self._store.messages_at(agent_id, [link.new_place for link in links])
        return {one.place for one in placed if one.session_id != ask.scope.session_id}

    async def _ranked(
        self, agent_id: str, ask: Ask, asked_at: datetime, degraded: list[str]
    ) -> tuple[Ranking, QueryTimes]:
        from offbook.search.ranking import NOTHING, Look, rank

        async with self._indexes.following(agent_id, seconds=_share(ask, FOLLOW_SECONDS, FOLLOW_SHARE)) as (
            index,
            has_all,
        ):
            if not has_all:
                degraded.append(_about(agent_id, ask, "text: the newest messages are still being indexed"))
            times = read_times(ask.query, asked_at, newest=_newest_if_long_ago(index, asked_at) if has_all else None)
            session = None
            if ask.reach == "session":
                session = await self._store.session_number(agent_id, ask.scope.session_id)
                if session is None:
                    return NOTHING, times
            query = read_query(ask.query, index.rows.names())
            terms = searched_terms(query, times, index.rows.names())
            is_only_time = not terms and bool(times.ranges)
            embedder, vector = (None, None) if is_only_time else await self._vector(agent_id, ask, query, degraded)
            vectors = index.vectors(embedder.fingerprint) if embedder else None
            waiting = index.rows.count - (vectors.embedded if vectors else 0)
            if embedder is not None and waiting > LEAST_WAITING + index.rows.count * SHARE_WAITING:
                degraded.append(_about(agent_id, ask, f"embeddings: {waiting:,} messages are still to be embedded"))
            look = Look(
                query=query,
                terms=terms,
                vector=vector,
                asked_at=micros(asked_at),
                is_read=embedder is None or _is_read(embedder, query.text),
                times=[(_span(one.start, one.end), one.is_exact) for one in times.ranges],
                event_terms=[(bound.relation, query_terms(bound.event)) for bound in times.bounds],
                session=session,
                known_at=micros(ask.at) if ask.at else None,
                only_said=_is_only_said(agent_id, ask),
                limit=ask.limit + CONTENDERS,
            )
            ranking = await asyncio.to_thread(rank, index, vectors, look)
            if not has_all:
                ranking = await self._with_unindexed(agent_id, ask, index, look, ranking)
            return ranking, times

    async def _with_unindexed(
        self, agent_id: str, ask: Ask, index: AgentIndex, look: Look, ranking: Ranking
    ) -> Ranking:
        """Behind a long queue the newest messages are read from the log itself: they were acknowledged."""
        after = await self._before_newest(agent_id, index.through_event)
        newest = await self._store.arrivals(agent_id, after_event=after, limit=2 * NEWEST_MESSAGES)
        messages = [
            placed
            for placed in newest.messages
            if is_indexed(placed)
            and (ask.reach != "session" or placed.session_id == ask.scope.session_id)
            and not (_is_only_said(agent_id, ask) and placed.logged.message.role == "system")
        ]
        wholes = await self._large(agent_id, messages) if look.terms else {}
        return await asyncio.to_thread(with_fresh, ranking, messages, look, wholes)

    async def _large(self, agent_id: str, messages: Sequence[PlacedMessage]) -> dict[int, Message]:
        """Those that have large texts with them, by place: as many of the newest as are searched."""
        found: dict[int, Message] = {}
        left = SEARCHED_CHARS
        for placed in reversed(messages):
            chars = large_chars(placed)
            if 0 < chars <= left:
                whole = await whole_text(self._blobs, agent_id, placed, most_chars=left)
                found |= {placed.place: whole} if whole else {}
                left -= chars
        return found

    async def _before_newest(self, agent_id: str, through_event: int) -> int:
        """The event after which the newest messages came: as few events as hold enough of them."""
        events = await self._store.newest_audit_events(agent_id, limit=NEWEST_MESSAGES)
        messages, after = 0, through_event
        for event in reversed(events):
            if event.seq <= through_event or messages >= NEWEST_MESSAGES:
                break
            messages += int(event.details.get("accepted", 0))
            after = event.seq - 1
        return max(after, through_event)

    async def _vector(
        self, agent_id: str, ask: Ask, query: Query, degraded: list[str]
    ) -> tuple[Embedder | None, NDArray[np.float32] | None]:
        """Without one the answer is by text, and says so."""
        deadline = self._settings.for_agent(agent_id).search.deadline.total_seconds()
        seconds = _share(ask, deadline, VECTOR_SHARE)
        work = asyncio.ensure_future(self._embedded(agent_id, as_spoken(query), seconds))
        try:
            # What takes too long goes on without us: a model that is being opened is there for the next one.
            async with asyncio.timeout(seconds):
                return await asyncio.shield(work)
        except ModelUnavailable as error:
            degraded.append(_about(agent_id, ask, f"embeddings: {error.detail}"))
        except TimeoutError:
            work.add_done_callback(looked_at)
            degraded.append(_about(agent_id, ask, f"embeddings: no answer of the model in {seconds:.3g} s"))
        return None, None

    async def _embedded(self, agent_id: str, text: str, seconds: float) -> tuple[Embedder, NDArray[np.float32]]:
        embedder = await self._embedders.serving(self._store, agent_id)
        return embedder, await self._embedders.query_vector(embedder, text, seconds=seconds)

    def _with_holds(
        self,
        agent_id: str,
        ask: Ask,
        ranking: Ranking,
        holds: Mapping[int, Hold],
        offloaded: OffloadedThrough | None,
        at: datetime,
    ) -> list[tuple[int, float]]:
        """Places and scores: pins weigh, and, where memory comes by itself, what is still hot."""
        ttl = self._ttl_of(agent_id)
        scores = []
        for hit in ranking.hits:
            hold = holds.get(hit.place, Hold())
            score = hit.score + (PINNED if hold.pinned else 0.0)
            is_offloaded = offloaded is not None and offloaded.covers(hit.arrived, hit.place)
            if ask.prefers_hot and not is_offloaded and at < hot_until(moment(hit.arrived), hold.retrievals, ttl):
                score += HOT
            scores.append((hit.place, score))
        return sorted(scores, key=lambda pair: -pair[1])

    async def _links(self, agent_id: str, places: Sequence[int], at: datetime) -> list[Supersession]:
        """The links of these places and of what they lead to, as known at the time."""
        known: dict[tuple[int, int], Supersession] = {}
        asked: set[int] = set()
        frontier = list(places)
        for _ in range(LONGEST_CHAIN):
            asked.update(frontier)
            found = [link for link in await self._store.supersessions(agent_id, frontier) if link.at <= at]
            known.update({(link.old_place, link.new_place): link for link in found})
            frontier = [link.new_place for link in found if link.new_place not in asked]
            if not frontier:
                break
        return list(known.values())


# ── small decisions ──


def _share(ask: Ask, seconds: float, share: float) -> float:
    return seconds if ask.seconds is None else min(seconds, ask.seconds * share / (1 + len(ask.others)))


def _is_read(embedder: Embedder, text: str) -> bool:
    """Whether the model reads the language of a text: the one that comes with Offbook reads English, and the languages
    that there are glossaries of."""
    from offbook.models import minilm
    from offbook.models.glossary import in_english

    is_known = is_latin(in_english(text)) and minilm.reads(text) and any(map(str.isalnum, text))
    return is_known or embedder.fingerprint != minilm.fingerprint()


def _newest_if_long_ago(index: AgentIndex, asked_at: datetime) -> datetime | None:
    """When the newest was said. None where that was lately: it may tell of a day to come."""
    newest = None if index.rows.newest is None else moment(index.rows.newest)
    return newest if newest is not None and asked_at - newest > LONG_SILENCE else None


def _said_then(ranking: Ranking, times: QueryTimes, asked_at: datetime) -> set[int]:
    """What was said at the time that is asked about. What is still going on is no history."""
    spans = [_span(one.start, one.end) for one in times.ranges if one.is_exact and one.end and one.end <= asked_at]
    return {hit.place for hit in ranking.hits if any(start <= hit.ts < end for start, end in spans)}


def _span(start: datetime | None, end: datetime | None) -> tuple[float, float]:
    return (
        -math.inf if start is None else float(micros(start)),
        math.inf if end is None else float(micros(end)),
    )


def in_turns(found: Sequence[Found]) -> list[tuple[Found, ResolvedHit]]:
    """What several agents' memories had, as one list. A score means something among its own agent's only, so from
    each list, in its order, the one goes first that is nearer to the query by what means the same everywhere."""
    waiting = [[(one, resolved) for resolved in one.resolved] for one in found]
    merged: list[tuple[Found, ResolvedHit]] = []
    while any(waiting):
        nearest = max((some for some in waiting if some), key=lambda some: _nearness(*some[0]))
        merged.append(nearest.pop(0))
    return merged


def _nearness(found: Found, resolved: ResolvedHit) -> float:
    places = [resolved.place, *resolved.replaces]
    hits = [found.hits[place] for place in places if place in found.hits]
    return max(((hit.similarity or 0.0) + hit.coverage for hit in hits), default=0.0)


def _falling(entries: Sequence[MemoryEntry]) -> list[MemoryEntry]:
    """In their order, with no score above the one before it."""
    falling: list[MemoryEntry] = []
    for entry in entries:
        score = min(entry.score, falling[-1].score) if falling else entry.score
        falling.append(entry if score == entry.score else structs.replace(entry, score=score))
    return falling


def _is_only_said(agent_id: str, ask: Ask) -> bool:
    """What the host told an agent is for that agent: another that may read its memory does not see it."""
    return ask.only_said or agent_id != ask.scope.agent_id


def _about(agent_id: str, ask: Ask, what: str) -> str:
    return what if agent_id == ask.scope.agent_id else f"{what} (agent {agent_id})"
