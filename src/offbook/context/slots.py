"""Slot B: the context that stands by for a swap.

It is made ready in the background once a session nears the point where a swap is due. What arrives after that is added
to it word for word, so handing it over takes next to nothing, however long the session is.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from offbook.context.fit import Composed
from offbook.context.reader import MOST_ADDED, Built, SessionReader
from offbook.context.session_notes import SwapSize, note_swap_size, swap_size
from offbook.log.store import ChangeKind, Store
from offbook.model.content import render
from offbook.model.errors import StoreCorrupt
from offbook.model.recent import keep
from offbook.model.settings import Settings
from offbook.model.summary import HandedContext, Ledger
from offbook.model.types import CompressedContext, Message, Scope, Session
from offbook.models.tokens import CHARS_PER_TOKEN, estimate_tokens

WORTH_FITTING, MOST_FITTINGS = 3, 6
"""A context is fitted by characters and judged by tokens: a script that takes more of these is fitted again."""
WELL_FILLED = 0.85
"""Of the target: a context that leaves more of it empty is fitted again too."""
MESSAGE_TOKENS = 4
"""What a provider counts for a message besides its text."""
READY_AT = 0.5
"""Of the tokens at which a swap is due: from here on slot B is kept ready."""
READY_SHARE = 0.9
"""Of the target, what slot B takes: the rest is for what arrives until the swap."""
NEAR_TARGET = 0.75
"""A slot B that was made for at least so much of the target, and fits into it, is as good as one made for it: what the
host's instructions take, and with it the target, changes a little from turn to turn."""
MOST_READY, MOST_READY_CHARS = 256, 12_000_000
"""Slots B that are kept: of so many sessions, of so many characters in all."""
SHOWN: tuple[ChangeKind, ...] = ("pins", "lessons", "links", "imports", "erased")
"""What a slot B shows beside messages, and is made anew for."""


class Ready(NamedTuple):
    """A slot B."""

    composed: Composed
    ledger: Ledger
    tokens: int
    target_tokens: int
    made_of: tuple[int, ...] = ()
    """The version of what it shows beside messages."""

    @property
    def context(self) -> CompressedContext:
        return self.composed.context

    @property
    def last_seq(self) -> int:
        return self.context.covers.last_seq

    @property
    def spare_chars(self) -> int:
        """About what may be added; whether it really may is counted in tokens when it is."""
        return (self.target_tokens - self.tokens) * 3


class Slots:
    def __init__(self, store: Store, settings: Settings, reader: SessionReader) -> None:
        self._store = store
        self._settings = settings
        self._reader = reader
        self._ready: OrderedDict[Scope, Ready] = OrderedDict()
        self._windows: OrderedDict[Scope, int] = OrderedDict()
        """Of the hosts that have said no more: how large their models' windows are."""
        self._sizes: OrderedDict[Scope, SwapSize | None] = OrderedDict()
        """Of the hosts that have asked for a size: that, as it is noted of the session."""

    def note_window(self, scope: Scope, context_window: int) -> None:
        keep(self._windows, scope, context_window, MOST_READY)

    async def note_size(self, scope: Scope, size: SwapSize) -> None:
        """What slot B is made for from now on, also after a restart."""
        noted = await self._noted_size(scope)
        if noted is None or not size.is_near(noted):
            await note_swap_size(self._store, scope, size)
            keep(self._sizes, scope, size, MOST_READY)

    async def _noted_size(self, scope: Scope) -> SwapSize | None:
        if scope not in self._sizes:
            keep(self._sizes, scope, await swap_size(self._store, scope), MOST_READY)
        return self._sizes[scope]

    async def _size(self, scope: Scope) -> SwapSize:
        """By what a host has said of its window, or the settings say."""
        noted = await self._noted_size(scope)
        if noted is not None:
            return noted
        settings = self._settings.for_agent(scope.agent_id)
        window = self._windows.get(scope) or settings.token_budget.context_window
        compaction = settings.memory.compaction
        return SwapSize(int(window * compaction.threshold), int(window * compaction.target_size))

    def taken(self, scope: Scope) -> None:
        """What stood by is in use now."""
        self._ready.pop(scope, None)

    def let_go(self, agent_id: str) -> None:
        """Keep nothing of the agent's in memory."""
        for kept in (self._ready, self._windows, self._sizes):
            for scope in [scope for scope in kept if scope.agent_id == agent_id]:
                del kept[scope]

    def standing_by(self, agent_id: str) -> dict[Scope, int]:
        """The sessions whose slot B is ready, and the message each ends with."""
        return {scope: ready.last_seq for scope, ready in self._ready.items() if scope.agent_id == agent_id}

    async def prepare(self, scope: Scope, session: Session) -> None:
        """Make slot B where the session nears a swap, by what a host has said of its window or the settings say."""
        if await self.wants_slot_b(scope, session):
            target_tokens = (await self._size(scope)).estimated_target
            ready = await self._made(scope, session, target_tokens, int(target_tokens * READY_SHARE))
            keep(self._ready, scope, ready, MOST_READY)
            while len(self._ready) > 1 and sum(one.context.chars for one in self._ready.values()) > MOST_READY_CHARS:
                self._ready.popitem(last=False)

    async def wants_slot_b(self, scope: Scope, session: Session) -> bool:
        ready, size = self._known(scope), await self._size(scope)
        if ready is not None and ready.target_tokens == size.estimated_target:
            added = session.last_seq - ready.last_seq
            if added <= MOST_ADDED // 2 and await self._reader.chars_after(scope, ready.last_seq) < ready.spare_chars:
                return False  # what has come since fits behind it
        near = size.due_tokens / size.token_ratio * READY_AT
        if session.ended_at is not None or session.chars / CHARS_PER_TOKEN < near:
            return False  # it has never been that long
        handed = await self.handed(scope, session)
        return handed is None or await self._tokens_since(scope, handed, size.token_ratio) >= near

    def _known(self, scope: Scope) -> Ready | None:
        """What stands by, unless something has changed that it should show."""
        ready = self._ready.get(scope)
        return ready if ready is not None and ready.made_of == self._made_of(scope) else None

    def _made_of(self, scope: Scope) -> tuple[int, ...]:
        return self._store.versions.of(scope.agent_id, *SHOWN)

    async def handed(self, scope: Scope, session: Session | None) -> HandedContext | None:
        """One that is damaged keeps nobody from the next."""
        if session is None or not session.generation:
            return None
        with suppress(StoreCorrupt):
            return await self._store.handed(scope)
        return None

    async def slot_b(self, scope: Scope, session: Session, target_tokens: int) -> Ready:
        ready = self._known(scope)
        if ready is not None and ready.target_tokens >= target_tokens * NEAR_TARGET and ready.tokens <= target_tokens:
            extended = await self._extended(scope, session, ready._replace(target_tokens=target_tokens))
            if extended is not None:
                return extended
        return await self._made(scope, session, target_tokens, target_tokens)

    async def _made(self, scope: Scope, session: Session, target_tokens: int, max_tokens: int) -> Ready:
        max_chars, made_of = max_tokens * CHARS_PER_TOKEN, self._made_of(scope)
        best: tuple[Built, int] | None = None
        fitting_chars, excessive_chars = 0, 0
        for number in range(MOST_FITTINGS):
            if best is not None and number >= WORTH_FITTING:
                break
            built = await self._reader.read(scope, session, max_chars)
            tokens = await asyncio.to_thread(tokens_of, built.composed.context.messages)
            if tokens <= max_tokens and (best is None or tokens > best[1]):
                best = built, tokens
            is_whole = all(part.kind == "verbatim" for part in built.composed.context.parts)
            if max_tokens * WELL_FILLED <= tokens <= max_tokens or (tokens <= max_tokens and is_whole):
                break
            if tokens <= max_tokens:
                fitting_chars = max(fitting_chars, max_chars)
            else:
                excessive_chars = min(excessive_chars or max_chars, max_chars)
            if fitting_chars and excessive_chars:  # sizes come in steps: one between may be fuller
                max_chars = (fitting_chars + excessive_chars) // 2
            else:
                max_chars = max(1, int(max_chars * min(1.5, max_tokens / max(tokens, 1) * 0.97)))
        built, tokens = best or (built, tokens)
        ledger = await self._reader.ledger(scope, session, built.composed, built.older.plan.nodes)
        return Ready(built.composed, ledger, tokens, target_tokens, made_of)

    async def _extended(self, scope: Scope, session: Session, ready: Ready) -> Ready | None:
        """With what has come since, word for word; None where that is too much."""
        shown = len(ready.composed.tail.pieces)
        most_chars = ready.context.chars + max(0, ready.spare_chars) * 2
        composed = await self._reader.extended(scope, session, ready.composed, max(most_chars, ready.context.max_chars))
        if composed is None:
            return None
        max_chars = max(ready.context.max_chars, composed.context.chars)
        composed = composed._replace(context=msgspec.structs.replace(composed.context, max_chars=max_chars))
        tokens = ready.tokens + tokens_of([piece.message for piece in composed.tail.pieces[shown:]])
        if tokens > ready.target_tokens:
            return None
        verbatim = [part for part in composed.context.parts if part.kind == "verbatim"]
        ledger = msgspec.structs.replace(ready.ledger, verbatim=verbatim, state=await self._reader.state(scope))
        return ready._replace(composed=composed, ledger=ledger, tokens=tokens)

    async def _tokens_since(self, scope: Scope, handed: HandedContext, token_ratio: float) -> float:
        chars = await self._reader.chars_after(scope, handed.last_seq)
        return handed.tokens_after / token_ratio + chars / CHARS_PER_TOKEN


def tokens_of(messages: Sequence[Message]) -> int:
    """By our estimate, which is the same for every model (D18)."""
    return sum(estimate_tokens(render(message)) + MESSAGE_TOKENS for message in messages)
