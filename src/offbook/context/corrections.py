"""What was corrected of an agent's memory, in sentences: read once for each link and kept, so that a turn only looks.

`links` has it read as soon as there are new ones. Nothing is kept of what was forgotten.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from offbook.log.store import Store
from offbook.model.errors import StoreCorrupt
from offbook.model.memory_entry import TAKEN_BACK, Supersession
from offbook.model.recent import keep
from offbook.search.whole_messages import readable
from offbook.statements.corrected import Corrected, corrected_by

LINKS_LOOKED_AT = 300
"""The newest."""
LESSONS_LOOKED_AT = 200
AGENTS_KEPT = 32


class _Known(NamedTuple):
    links: tuple[int, ...]
    erased: tuple[int, ...]
    by_link: dict[Supersession, Corrected | None]


class Corrections:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._outdated: OrderedDict[str, tuple[tuple[int, ...], Mapping[str, str]]] = OrderedDict()

    async def newest(self, agent_id: str) -> list[Corrected]:
        """What later messages were said about, by the newest link first."""
        links, erased = (self._store.versions.of(agent_id, kind) for kind in ("links", "erased"))
        known = self._known.get(agent_id)
        if known is None or (known.links, known.erased) != (links, erased):
            before = known.by_link if known is not None and known.erased == erased else {}
            known = _Known(links, erased, await self._read(agent_id, before))
            keep(self._known, agent_id, known, AGENTS_KEPT)
        return [one for one in known.by_link.values() if one is not None]

    async def outdated(self, agent_id: str) -> Mapping[str, str]:
        """Sentences that were corrected, replaced or rejected since, and what is left of each: what is older is told
        without them."""
        version = self._store.versions.of(agent_id, "links", "erased", "lessons")
        known = self._outdated.get(agent_id)
        if known is None or known[0] != version:
            found = {text: left for one in await self.newest(agent_id) for text, left in one.outdated.items()}
            with suppress(StoreCorrupt):
                rejected = await self._store.lessons(agent_id, statuses=("rejected",), limit=LESSONS_LOOKED_AT)
                found.update((lesson.text, "") for lesson in rejected)
            known = (version, found)
            keep(self._outdated, agent_id, known, AGENTS_KEPT)
        return known[1]

    def let_go(self, agent_id: str) -> None:
        """Keep nothing in memory of the agent's."""
        self._known.pop(agent_id, None)
        self._outdated.pop(agent_id, None)

    async def _read(
        self, agent_id: str, before: dict[Supersession, Corrected | None]
    ) -> dict[Supersession, Corrected | None]:
        links = await self._store.newest_supersessions(agent_id, limit=LINKS_LOOKED_AT)
        holding = [link for link in links if link.kind != TAKEN_BACK]
        new = [link for link in holding if link not in before]
        places = sorted({place for link in new for place in (link.old_place, link.new_place)})
        placed = {one.place: one for one in await readable(self._store, agent_id, places)} if places else {}

        def read() -> dict[Supersession, Corrected | None]:
            return {
                link: corrected_by(link, placed[link.old_place], placed[link.new_place])
                for link in new
                if link.old_place in placed and link.new_place in placed
            }

        found = before | await asyncio.to_thread(read)
        return {link: found[link] for link in holding if link in found}
