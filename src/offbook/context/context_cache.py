"""Contexts of the sizes that were asked for lately: given again while nothing is said, extended word for word by what
is, and made anew in the background. So whoever asks waits for a read."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from offbook.context.fit import Composed
from offbook.context.reader import SessionReader, empty_context
from offbook.log.store import ChangeKind, Store
from offbook.model.recent import keep
from offbook.model.types import CompressedContext, Scope, Session

CONTEXTS_KEPT = 16
SAME_SECONDS, LAGGING_SECONDS = 60.0, 5.0
"""How long a context is given again where the background has gone on; where it was made while that lagged."""
ASKED_SECONDS = 600.0
SIZES_PREPARED, SIZES_KEPT, LARGEST_PREPARED = 2, 8, 100_000
ROOM_SHARE = 0.1
"""Of a context that is made ready, what is left free for the messages to come."""
FOLLOWED: tuple[ChangeKind, ...] = ("summaries", "links", "notes")
"""What the background makes: whoever asks twice within a minute is shown the same twice, for all that."""
NOTES_SECONDS = 10.0
"""How old a context that stands ready may be where only notes of what goes on have changed, as with each message."""
SHORTEST_AGE_SECONDS = 2.0
"""One that has little room left is made anew at once where it is as old as that; else with the next quiet moment."""
SHOWN_AT_ONCE: tuple[ChangeKind, ...] = ("pins", "lessons", "ends", "imports", "erased", "asked")


class Cached(NamedTuple):
    composed: Composed
    last_seq: int
    """The session's newest message when it was made or extended."""
    made_of: tuple[int, ...]
    """The session's generation, and the version of what is shown at once."""
    followed: tuple[int, ...]
    made_at: float
    seconds: float
    """For how long it is given where the background has gone on."""

    @property
    def age(self) -> float:
        return time.monotonic() - self.made_at


Key = tuple[Scope, int]


class ContextCache:
    def __init__(self, store: Store, reader: SessionReader) -> None:
        self._store = store
        self._reader = reader
        self._given: OrderedDict[Key, Cached] = OrderedDict()
        self._ready: OrderedDict[Key, Cached] = OrderedDict()
        """With room for the messages to come."""
        self._asked: OrderedDict[Scope, dict[int, float]] = OrderedDict()
        self.when_made: Callable[[Scope], None] = lambda scope: None
        """Told of a session whose context nothing stood ready for: for the next message something should."""

    async def context(self, scope: Scope, session: Session | None, max_chars: int) -> CompressedContext:
        """The whole session in at most `max_chars`."""
        if session is None or not session.last_seq:
            return empty_context(scope, max_chars)
        sizes = self._asked.get(scope, {})
        keep(self._asked, scope, sizes, CONTEXTS_KEPT)
        sizes.pop(max_chars, None)
        sizes[max_chars] = time.monotonic()  # the last is the one asked for last
        if len(sizes) > SIZES_KEPT:
            del sizes[next(iter(sizes))]
        return (await self.composed(scope, session, max_chars)).context

    async def composed(self, scope: Scope, session: Session, max_chars: int) -> Composed:
        """The same for as long as nothing is said, or for a minute where the background has gone on meanwhile: whoever
        asks twice wants the same twice."""
        key = (scope, max_chars)
        given, ready = (self._usable(one.get(key), session) for one in (self._given, self._ready))
        if given is not None and given.last_seq == session.last_seq:
            return given.composed
        is_whole = given is not None and all(part.kind == "verbatim" for part in given.composed.context.parts)
        for before in (given, ready) if is_whole else (ready, given):
            if before is not None and before.last_seq < session.last_seq:
                longer = await self._reader.extended(scope, session, before.composed, max_chars)
                if longer is not None:
                    keep(self._given, key, before._replace(composed=longer, last_seq=session.last_seq), CONTEXTS_KEPT)
                    return longer
        # Asked for again and again while much is said, it leaves room for what comes next.
        is_outgrown = ready is not None and ready.last_seq < session.last_seq
        made = await self._made(scope, session, max_chars, room=_room(max_chars) if is_outgrown else 0)
        keep(self._given, key, made, CONTEXTS_KEPT)
        self.when_made(scope)
        return made.composed

    async def prepare(self, scope: Scope, session: Session) -> None:
        """Make what was asked for lately ready for the messages to come."""
        sizes = self._asked.get(scope, {})
        for max_chars in [size for size, at in sizes.items() if time.monotonic() - at > ASKED_SECONDS]:
            del sizes[max_chars]
        prepared = [size for size in sizes if size <= LARGEST_PREPARED][-SIZES_PREPARED:]
        for key in [key for key in self._ready if key[0] == scope and key[1] not in prepared]:
            del self._ready[key]
        for max_chars in prepared:
            if await self._is_due(scope, session, max_chars):
                room = 0 if session.chars <= max_chars else _room(max_chars)  # what fits is shown whole
                made = await self._made(scope, session, max_chars, room)
                keep(self._ready, (scope, max_chars), made, CONTEXTS_KEPT)

    async def is_short(self, scope: Scope, session: Session) -> bool:
        """Whether one of those that stand ready has little room left for the messages to come."""
        for (owner, max_chars), ready in list(self._ready.items()):
            if owner != scope or self._usable(ready, session) is None or ready.age < SHORTEST_AGE_SECONDS:
                continue
            if await self._is_full(session, max_chars, ready):
                return True
        return False

    async def _is_due(self, scope: Scope, session: Session, max_chars: int) -> bool:
        ready = self._usable(self._ready.get((scope, max_chars)), session)
        if ready is None or await self._is_full(session, max_chars, ready):
            return True
        *made, notes = self._followed(session)
        is_old = bool(ready.followed) and ready.followed[-1] != notes and ready.age > NOTES_SECONDS
        return is_old or list(ready.followed[:-1]) != made

    async def _is_full(self, session: Session, max_chars: int, ready: Cached) -> bool:
        scope = Scope(agent_id=session.agent_id, session_id=session.session_id)
        added = await self._reader.chars_after(scope, ready.last_seq)
        return ready.composed.context.chars + added > max_chars - _room(max_chars) // 2

    def let_go(self, agent_id: str) -> None:
        """Keep nothing of the agent's in memory."""
        for cached in (self._given, self._ready):
            for key in [key for key in cached if key[0].agent_id == agent_id]:
                del cached[key]

    def _usable(self, cached: Cached | None, session: Session) -> Cached | None:
        if cached is None or cached.made_of != self._made_of(session) or cached.last_seq > session.last_seq:
            return None
        is_same = cached.followed == self._followed(session)
        return cached if is_same or cached.age < cached.seconds else None

    def _made_of(self, session: Session) -> tuple[int, ...]:
        return (session.generation, *self._store.versions.of(session.agent_id, *SHOWN_AT_ONCE))

    def _followed(self, session: Session) -> tuple[int, ...]:
        return self._store.versions.of(session.agent_id, *FOLLOWED)

    async def _made(self, scope: Scope, session: Session, max_chars: int, room: int = 0) -> Cached:
        made_of, followed = self._made_of(session), self._followed(session)
        built = await self._reader.read(scope, session, max_chars - room)
        composed, seconds = built.composed, SAME_SECONDS
        if room:
            composed = composed._replace(context=msgspec.structs.replace(composed.context, max_chars=max_chars))
        if built.older.is_lagging:  # a better one is on its way
            followed, seconds = (), LAGGING_SECONDS
        return Cached(composed, session.last_seq, made_of, followed, time.monotonic(), seconds)


def _room(max_chars: int) -> int:
    return int(max_chars * ROOM_SHARE)
