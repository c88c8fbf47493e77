"""What looks after a memory beside following it: lessons, the wiki, forgetting, and maintenance, which has them run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from offbook.log.store import Blobs, Store
from offbook.model.errors import NotFound
from offbook.model.lesson import Verdict
from offbook.model.maintenance import Piece
from offbook.model.settings import Settings
from offbook.worker.care_tasks import IndexTask, TiersTask
from offbook.worker.embedders import Embedders
from offbook.worker.forgetting.elsewhere import Pages
from offbook.worker.forgetting.erasing import Erasing
from offbook.worker.forgetting.flow import Forgetting, Parts
from offbook.worker.forgetting.forgets import RETENTION_EVERY, Forgets
from offbook.worker.forgetting.residue import Searching
from offbook.worker.holding import Holding
from offbook.worker.indexes import Indexes
from offbook.worker.learning import Learning
from offbook.worker.maintenance import Maintenance, Task
from offbook.worker.summary_files import SummaryFiles
from offbook.worker.wiki.running import Wiki
from offbook.worker.writing import Writer

Judge = Callable[[str, str, Verdict, str | None], Awaitable[None]]


class Asks(NamedTuple):
    """What it asks of the background."""

    forget_words: Callable[[str], None]
    """Let go of whatever is kept of the agent in memory."""
    look_again: Callable[[str], Awaitable[None]]
    """At all of the agent's: something of it was forgotten."""
    embed: Callable[[str], None]
    unembedded: Callable[[str], int]
    give_way: Callable[[], Awaitable[None]]


class Caring:
    def __init__(
        self,
        store: Store,
        blobs: Blobs,
        settings: Settings,
        *,
        indexes: Indexes,
        embedders: Embedders,
        writer: Writer,
        files: SummaryFiles,
        folder: Path,
        key: bytes,
        asks: Asks,
        tasks: Sequence[Task] = (),
    ) -> None:
        """`folder`: the data folder. `tasks`: those of maintenance that are done from outside."""
        self.judge: Judge = _nobody_judges
        """Ends in the verb: a lesson that was edited by hand in the wiki is news."""
        self.holding = Holding(store)
        learning = Learning(store, settings, embedders, writer)
        wiki = Wiki(store, blobs, settings, folder / "wiki", folder / "wiki-state", self._judged)
        forgetting = Forgetting(
            store,
            Erasing(store, blobs, settings),
            Parts(indexes=indexes, files=files, forget_words=asks.forget_words, relearn=learning.again),
            Searching(store, blobs, indexes, folder, key=key),
            key=key,
        )
        forgetting.elsewhere.append(Pages(wiki))
        self.forgets = Forgets(
            store,
            forgetting,
            settings,
            without_models=writer.giving_way,
            take_edits=wiki.take_edits,
            afterwards=asks.look_again,
        )
        index = IndexTask(store, indexes, embed=asks.embed, unembedded=asks.unembedded)
        tiers = TiersTask(store, indexes, settings)
        own = [
            Task("index", per_agent=True, run=index.run),
            Task("tiers", per_agent=True, run=tiers.run),
            Task("lessons", per_agent=True, run=partial(self._apart, learning.run)),
            Task("wiki", per_agent=True, run=partial(self._apart, wiki.run)),
            Task("forgetting", per_agent=True, run=self.forgets.finish),
            Task("retention", per_agent=True, run=self.forgets.retain, every=RETENTION_EVERY),
        ]
        self.maintenance = Maintenance(store, settings.maintenance.interval, [*own, *tasks], give_way=asks.give_way)

    async def close(self) -> None:
        await self.forgets.close()
        await self.maintenance.close()

    async def _apart(self, run: Callable[[str], Awaitable[Piece]], agent_id: str) -> Piece:
        """Not of half an import, and not while something is being forgotten."""
        if await self.holding.seconds(agent_id):
            return Piece()
        async with self.forgets.apart(agent_id):
            return await run(agent_id)

    async def _judged(self, agent_id: str, lesson_id: str, verdict: Verdict, text: str | None) -> None:
        await self.judge(agent_id, lesson_id, verdict, text)


async def _nobody_judges(_agent_id: str, lesson_id: str, _verdict: Verdict, _text: str | None) -> None:
    raise NotFound(f"nobody can judge {lesson_id} here")
