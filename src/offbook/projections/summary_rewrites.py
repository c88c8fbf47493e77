"""Writing summaries again: those that a lesser summarizer wrote, by a better one that can be had now.

Asked for, never by itself. Level 1 is gone through from the oldest; a summary that merges others follows the last of
its sources, once all of them are by a better one than it is. Nothing is remembered of how far it came: what is by a
better one already is passed over, so who asks again after a stop goes on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import PurePath

import structlog

from offbook.context.pending_messages import PendingMessages
from offbook.log.store import Store
from offbook.model.errors import StoreCorrupt, StoreError, WrongShape
from offbook.model.summary import Summary, SummaryDraft, summary_id
from offbook.model.types import Scope
from offbook.models.summarizers.available import EXTRACTIVE
from offbook.projections.summary_drafts import DraftOptions, SummaryDrafter
from offbook.projections.summary_writer import Writer

MISSES_THAT_END = 3
"""In a row: as many as make a `Breaker` open. One may be the text's fault, so many are not."""
PAGE = 100

log = structlog.get_logger("offbook.projections")


def better_than(summarizer: str, names: Sequence[str]) -> int:
    """How many of those in line are better than who wrote this: those before it. None, where it is not in line any
    more: whether it was better, nobody knows."""
    for rank, name in enumerate(names):
        if summarizer == _written_as(name) or (name == "local" and summarizer.startswith("local:")):
            return rank
    return 0


def is_due(better: int, better_than_sources: Sequence[int]) -> bool:
    """Whether a summary is to be written again: somebody is better, and its sources, where it has some, are by such
    as are better too."""
    return better > 0 and all(each < better for each in better_than_sources)


def _written_as(name: str) -> str:
    """What a summary says of its author: a model in a file goes by the file's name."""
    kind, _, model = name.partition(":")
    return f"local:{PurePath(model).stem}" if kind == "local" and model else name


class Walk:
    """How far it has come: the number of the last summary of level 1, or, in one session, of the last message."""

    def __init__(self) -> None:
        self.at = 0
        self.misses = 0


class SummaryRewriter:
    def __init__(
        self, store: Store, pending_messages: PendingMessages, writer: Writer, drafting: SummaryDrafter
    ) -> None:
        self._store = store
        self._pending_messages = pending_messages
        self._writer = writer
        self._drafting = drafting
        self._walks: dict[str, dict[str | None, Walk]] = {}

    def want(self, agent_id: str, session_id: str | None) -> None:
        """Go through the session, or through all of the agent's."""
        self._walks.setdefault(agent_id, {})[session_id] = Walk()

    def let_go(self, agent_id: str) -> None:
        self._walks.pop(agent_id, None)

    def waiting(self, agent_id: str | None = None) -> int:
        """What was asked for and is not done."""
        if agent_id is not None:
            return len(self._walks.get(agent_id, ()))
        return sum(map(len, self._walks.values()))

    async def count(self, agent_id: str, session_id: str | None) -> int:
        """How many summaries would be written again. Reads all of them, in pages."""
        if not self._writer.has_models(agent_id):
            raise WrongShape(
                f"`again` needs a model that writes better than {EXTRACTIVE}: name one in the setting "
                "summarizer.order, such as openai:gpt-4o-mini, and start again"
            )
        names = self._writer.names(agent_id)
        will_be: dict[str, int] = {}
        count = 0
        for level in sorted(await self._store.summary_counts(agent_id)):
            async for summary in self._of_level(agent_id, level, session_id):
                better = better_than(summary.draft.summarizer, names)
                # Where a source is due, the first in line is expected to write it.
                due = is_due(better, [will_be.get(source, better) for source in summary.draft.sources])
                will_be[summary.id] = 0 if due else better
                count += due
        return count

    async def run(self, agent_id: str) -> bool:
        """One summary of level 1, with what merges it; True where nothing is left."""
        walks = self._walks.get(agent_id)
        if not walks:
            self._walks.pop(agent_id, None)
            return True
        session_id, walk = next(iter(walks.items()))
        if not await self._step(agent_id, session_id, walk) and walks.get(session_id) is walk:
            del walks[session_id]
        return not walks

    # ── one step ──

    async def _step(self, agent_id: str, session_id: str | None, walk: Walk) -> bool:
        """False where the walk has come to its end."""
        found = await self._next(agent_id, session_id, walk)
        if found is None:
            return False
        summary, at = found
        try:
            is_missed = not await self._with_parents(agent_id, session_id, summary)
        except StoreCorrupt as error:
            # It stays as it is; the others are written.
            log.warning("not written again", action="rewriting.skip", summary=summary.id, detail=error.detail)
            is_missed = False
        except StoreError as error:
            # Not tried over and over, as news are: what a model wrote for it may have cost something.
            log.warning("not written again", action="rewriting.skip", summary=summary.id, detail=error.detail)
            is_missed = True
        walk.at = at
        walk.misses = walk.misses + 1 if is_missed else 0
        if walk.misses < MISSES_THAT_END:
            return True
        log.warning(
            "not written again",
            action="rewriting.end",
            agent=agent_id,
            summary=summary.id,
            detail="nobody better can write now: `offbook status` says why; ask again later, and it goes on",
        )
        return False

    async def _next(self, agent_id: str, session_id: str | None, walk: Walk) -> tuple[Summary, int] | None:
        """The next of level 1, and where the walk is after it."""
        if session_id is None:
            id_, at = summary_id(1, walk.at + 1), walk.at + 1
        else:
            scope = Scope(agent_id=agent_id, session_id=session_id)
            nodes = [node for node in await self._store.nodes_holding(scope, seq=walk.at + 1) if node.level == 1]
            if not nodes:
                return None
            id_, at = nodes[0].id, nodes[0].last_seq
        summary = await self._store.summary(agent_id, id_)
        return None if summary is None else (summary, at)

    async def _with_parents(self, agent_id: str, session_id: str | None, summary: Summary) -> bool:
        """False where nobody could write one that is due."""
        sources: list[Summary] = []
        while True:
            if not await self._written_again(agent_id, summary, sources):
                return False
            parent = await self._store.summary(agent_id, summary.parent) if summary.parent is not None else None
            if parent is None or max(parent.draft.sources, key=_number) != summary.id:
                return True
            if session_id is not None and not _lies_in(parent.draft, session_id):
                return True
            read = [await self._store.summary(agent_id, source) for source in parent.draft.sources]
            sources = [source for source in read if source is not None]
            summary = parent

    async def _written_again(self, agent_id: str, summary: Summary, sources: Sequence[Summary]) -> bool:
        """Where it is due; False where it is, and nobody could."""
        names = self._writer.names(agent_id)
        better = better_than(summary.draft.summarizer, names)
        if not is_due(better, [better_than(source.draft.summarizer, names) for source in sources]):
            return True
        asked = DraftOptions(first=better, before=summary.id)
        spans = summary.draft.spans
        if sources:
            draft = await self._drafting.merge_again(agent_id, sources, asked)
        else:
            scope = Scope(agent_id=agent_id, session_id=spans[0].session_id)
            message_span = await self._pending_messages.read(scope, spans[0].first_seq, spans[0].last_seq)
            draft = await self._drafting.chunk_again(scope, message_span, asked)
        if draft is None:
            return False
        session_id = spans[0].session_id if _lies_in(draft, spans[0].session_id) else None
        await self._drafting.keep(agent_id, session_id, draft, replaced=summary.id)
        return True

    async def _of_level(self, agent_id: str, level: int, session_id: str | None) -> AsyncIterator[Summary]:
        before: str | None = None
        while page := await self._store.summaries(
            agent_id, level=level, session_id=session_id, before=before, limit=PAGE
        ):
            for summary in page:
                if session_id is None or _lies_in(summary.draft, session_id):
                    yield summary
            before = page[-1].id


def _lies_in(draft: SummaryDraft, session_id: str) -> bool:
    """Wholly: what was merged across sessions is written again with all of them."""
    return all(span.session_id == session_id for span in draft.spans)


def _number(id_: str) -> int:
    return int(id_.partition("-")[2])
