"""A page for each message that has gone cold, and for none that is pinned.

Messages cool in the order they arrive, but for those that are pinned or recalled: these are passed over, and looked at
again. So what is done each time grows with what went cold since, not with history.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile

from offbook.log.audit_chain import micros
from offbook.log.store import Store
from offbook.log.tiers import OffloadedThrough, offloaded_through, tier_of
from offbook.model.memory_entry import Hold, PlacedMessage
from offbook.model.receipt import FORGOTTEN
from offbook.model.settings.sections import Ttl
from offbook.model.types import now
from offbook.projections.threads import to_the_end
from offbook.projections.wiki.day_page import cold_file, cold_page
from offbook.projections.wiki.files import AgentFolder, removed, written
from offbook.projections.wiki.logs import MESSAGES_AT_A_TIME, READINGS_AT_A_TIME, LogPages
from offbook.projections.wiki.state import Places, WikiState
from offbook.search.whole_messages import readable
from offbook.search.words import entry_id

MOST_PINNED = 10_000


class Coldness:
    """What is cold now."""

    def __init__(self, ttl: Ttl, offloaded: OffloadedThrough | None, at: datetime) -> None:
        self._ttl = ttl
        self._offloaded = None if offloaded is None else offloaded.not_after(micros(at))
        self.at = at

    def is_cold(self, arrived_at: datetime, place: int, hold: Hold | None = None) -> bool:
        is_offloaded = self._offloaded is not None and self._offloaded.covers(micros(arrived_at), place)
        tier = tier_of(arrived_at, hold or Hold(), is_offloaded=is_offloaded, ttl=self._ttl, at=self.at)
        return tier == "cold"


class ColdPages:
    def __init__(self, store: Store, logs: LogPages) -> None:
        self._store = store
        self._logs = logs

    async def run(
        self, state: WikiState, folder: AgentFolder, ttl: Ttl, there: set[str], most_files: int
    ) -> tuple[int, bool]:
        """Write some of the pages that are missing; returns how many, and whether none is left. What is in `there` has
        its page already."""
        coldness = Coldness(ttl, await offloaded_through(self._store, state.agent_id), now())
        await self._unpage_pinned(state, folder)
        count = await self._again(state, folder, coldness, most_files)
        for _ in range(READINGS_AT_A_TIME):
            if count >= most_files:
                break
            if state.cold.waits_for is not None and not coldness.is_cold(
                state.cold.waits_for, state.cold.waits_for_place
            ):
                return count, True
            wrote, is_end = await self._go_on(state, folder, coldness, there, most_files - count)
            count += wrote
            if is_end:
                return count, True
        return count, False

    async def _unpage_pinned(self, state: WikiState, folder: AgentFolder) -> None:
        """What was pinned since has no page as long as it is."""
        known = set(state.cold.passed_over)
        pinned = [each for each in await self._store.pinned(state.agent_id, limit=MOST_PINNED) if each not in known]
        gone = await to_the_end(_without_page, folder, pinned)
        state.cold.passed_over += gone
        state.cold.pages -= len(gone)

    async def _again(self, state: WikiState, folder: AgentFolder, coldness: Coldness, most_files: int) -> int:
        """Those that were passed over, and have gone cold since."""
        waiting = state.cold.passed_over
        if not waiting:
            return 0
        holds = await self._store.holds(state.agent_id, waiting)
        loose = [place for place in waiting if not holds.get(place, Hold()).pinned]
        found = await readable(self._store, state.agent_id, loose)
        cold = [each for each in found if coldness.is_cold(each.logged.received_at, each.place, holds.get(each.place))][
            :most_files
        ]
        wrote = await self._write(state, folder, cold, set())
        gone = {each.place for each in cold}
        state.cold.passed_over = [place for place in waiting if place not in gone]
        return wrote

    async def _go_on(
        self, state: WikiState, folder: AgentFolder, coldness: Coldness, there: set[str], most_files: int
    ) -> tuple[int, bool]:
        """The next messages in the order they arrived, up to the first that is not cold by age, or in no page of a day
        yet."""
        arrivals = await self._logs.arrivals(state.agent_id, state.cold.after_event, MESSAGES_AT_A_TIME)
        ahead = arrivals.messages[state.cold.ahead :]
        known = ahead
        if arrivals.through_event > state.through_event:
            places = Places(state)
            known = list(takewhile(lambda each: places.find(each.session_id, each.logged.seq) is not None, ahead))
        piece = _cold_by_age(known, coldness)[:most_files]
        holds = await self._store.holds(state.agent_id, [each.place for each in piece])
        cold = [each for each in piece if coldness.is_cold(each.logged.received_at, each.place, holds.get(each.place))]
        wrote = await self._write(state, folder, cold, there)
        kept = {each.place for each in cold}
        state.cold.passed_over += [each.place for each in piece if each.place not in kept]
        if len(piece) < len(known):
            state.cold.ahead += len(piece)
            first = known[len(piece)]
            state.cold.waits_for, state.cold.waits_for_place = first.logged.received_at, first.place
            return wrote, False
        state.cold.waits_for = None
        if len(known) < len(ahead) or arrivals.through_event > state.through_event:
            state.cold.ahead += len(piece)
            return wrote, True
        state.cold.after_event, state.cold.ahead = arrivals.through_event, 0
        return wrote, arrivals.is_end

    async def _write(
        self, state: WikiState, folder: AgentFolder, messages: Sequence[PlacedMessage], there: set[str]
    ) -> int:
        places, pages, count = Places(state), list[tuple[str, str]](), 0
        for each in messages:
            id_, where = entry_id(each.place), places.find(each.session_id, each.logged.seq)
            if where is None or each.logged.entry.noise == FORGOTTEN:
                continue
            count += 1
            if cold_file(id_) not in there:
                shown = await self._logs.shown(state.agent_id, each.session, each.session_id, each.logged)
                pages.append((cold_file(id_), cold_page(state.agent_id, id_, shown, where.file)))
        wrote = await to_the_end(_write_all, folder, pages)
        state.cold.pages += count
        return wrote


def _cold_by_age(messages: Sequence[PlacedMessage], coldness: Coldness) -> list[PlacedMessage]:
    """One from the future (the clock jumped back) keeps those after it from nothing."""
    for count, each in enumerate(messages):
        arrived = each.logged.received_at
        if arrived <= coldness.at and not coldness.is_cold(arrived, each.place):
            return list(messages[:count])
    return list(messages)


def _write_all(folder: AgentFolder, pages: Sequence[tuple[str, str]]) -> int:
    return sum(written(folder.swap / name, text, folder.wiki) for name, text in pages)


def _without_page(folder: AgentFolder, places: Sequence[int]) -> list[int]:
    """Those that had one."""
    return [place for place in places if removed([folder.swap / cold_file(entry_id(place))])]
