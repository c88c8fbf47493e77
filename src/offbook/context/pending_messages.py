"""What stands by of each session: the messages that no summary stands for yet, cut into stretches and read.

The background follows every session as it grows, so that whoever asks for a context finds its digest ready. Where
it lags, as much as the deadline allows is read on the spot, the oldest first, and the rest is done by the next.
Everything here is derived from the log and can be let go at any moment.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import NamedTuple

import msgspec

from offbook.context.cover import Cutter, MessageSpan
from offbook.context.digest import Analysis, Digest, Order, SpokenMessage, analyse, digest, ordered
from offbook.context.fit import Digested, digest_chars
from offbook.context.particulars import Particular, particulars
from offbook.context.summary_drafts import MOST_READ_CHARS, Source
from offbook.log.reading import with_parts
from offbook.log.store import Blobs, Store
from offbook.model.content import REASONING_TYPES, render, without_stand_ins
from offbook.model.errors import StoreCorrupt
from offbook.model.settings import Settings
from offbook.model.summary import Loss
from offbook.model.types import LoggedMessage, Message, Scope, Session
from offbook.models.tokens import estimate_tokens
from offbook.models.worker import IN_PROCESS, Worker

PAGE = 64
MOST_SESSIONS = 64
"""Kept in memory, those used last; some 0.5 MB each."""
BLOCK_MESSAGES = 32
ON_THE_SPOT_CHARS = 8_000
"""Read while somebody waits for a context: some milliseconds."""
CATCHING_UP_CHARS = 200_000
"""Read where more than a context holds was said since the background last looked: some tenths of a second."""
TRIES = 3
"""To follow a session that is let go of meanwhile: more are followed than are kept."""
HEAVY_CHARS = 4_000
"""From here on reading is done in a thread, so that it does not hold up the others."""
LARGEST_READ_CHARS = 1_000_000
"""Of a text that lies outside the log; of a larger one the stand-in is read."""
TOOL_CHARS, SAID_CHARS = 4_000, 32_000
"""Of what a tool gave, and of what anybody said: its beginning and its end. The rest is in the log."""


class ReadMessage(NamedTuple):
    """One message, read. `said` and `analysis` are None for noise. The message itself is not kept: it may be large."""

    seq: int
    tokens: int
    at: datetime
    said: SpokenMessage | None
    analysis: Analysis | None
    particulars: tuple[Particular, ...] | None = None
    """None where they were not looked for: nobody who waits for a context waits for them."""


class ReadSpan:
    """A stretch and what was said in it. Its digest is made when first asked for."""

    def __init__(self, message_span: MessageSpan, readings: Sequence[ReadMessage]) -> None:
        self.message_span = message_span
        self.readings = list(readings)
        self._digest: Digest | None = None
        self._digested: Digested | None = None
        self.order: tuple[tuple[int, int], Order] | None = None
        """That of the lines of this stretch and those before it, and which these were."""
        self._particulars: list[tuple[Particular, int]] | None = None

    @property
    def particulars(self) -> list[tuple[Particular, int]]:
        """What a ledger names if it is not shown, and the message that says it."""
        if self._particulars is None:
            self._particulars = [(particular, one.seq) for one in self.readings for particular in _particulars(one)]
        return self._particulars

    @property
    def digest(self) -> Digest:
        if self._digest is None:
            self._digest = digest([one.analysis for one in self.readings if one.analysis is not None])
        return self._digest

    def source(self, scope: Scope) -> Source:
        times = [one.at for one in self.readings]
        said = [one.said for one in self.readings if one.said is not None]
        return Source(scope, self.message_span, said, self.digest, min(times), max(times))

    def digested(self) -> Digested:
        if self._digested is None:
            chars = digest_chars(self.digest)
            self._digested = Digested(self.message_span.first_seq, self.message_span.last_seq, self.digest, chars)
        return self._digested


class PendingSession:
    """One session from the first message that no summary stands for."""

    def __init__(self, chunk_tokens: int, summarised_through: int, made_of: tuple[int, ...] = ()) -> None:
        """`made_of`: the version of the summaries it begins after, and of what was erased."""
        self.made_of = made_of
        self.summarised_through = summarised_through
        self.through_seq = summarised_through
        self._cutter = Cutter(chunk_tokens, after_seq=summarised_through)
        self._finished: list[ReadSpan] = []
        self._rest: list[ReadMessage] = []
        self._blocks: list[ReadSpan] = []
        """What has come since the last cut, in pieces: only the newest of them is read anew with each message."""
        self.busy = asyncio.Lock()

    def take(self, readings: Sequence[ReadMessage], messages: Sequence[Message]) -> None:
        for one, message in zip(readings, messages, strict=True):
            finished = self._cutter.take(one.seq, message, one.tokens)
            if finished is not None:
                self._finish(finished)
            self._rest.append(one)
            self.through_seq = one.seq
            if len(self._rest) % BLOCK_MESSAGES == 0:
                self._blocks.append(_block(self._rest[-BLOCK_MESSAGES:]))

    def end(self, least_tokens: int) -> None:
        """The session is over, for now: what is left is a stretch of its own, if it is that long and no call waits."""
        rest = self._cutter.rest
        if rest is not None and rest.tokens >= least_tokens and not self._cutter.is_waiting():
            self._cutter.end()
            self._finish(rest)

    def forget_through(self, seq: int) -> None:
        """A summary stands for everything up to here now."""
        self._finished = [one for one in self._finished if one.message_span.last_seq > seq]
        self.summarised_through = max(self.summarised_through, seq)

    @property
    def finished(self) -> list[ReadSpan]:
        return list(self._finished)

    @property
    def rest_tokens(self) -> int:
        rest = self._cutter.rest
        return rest.tokens if rest else 0

    def message_spans(self) -> list[ReadSpan]:
        """All of them, then what still grows, in pieces."""
        newest = self._rest[len(self._blocks) * BLOCK_MESSAGES :]
        return [*self._finished, *self._blocks, *([_block(newest)] if newest else [])]

    def _finish(self, message_span: MessageSpan) -> None:
        self._finished.append(ReadSpan(message_span, self._rest))
        self._rest, self._blocks = [], []


def _block(readings: Sequence[ReadMessage]) -> ReadSpan:
    message_span = MessageSpan(readings[0].seq, readings[-1].seq, sum(one.tokens for one in readings))
    return ReadSpan(message_span, readings)


# ── in threads: a stretch does not change any more ──


def warmed(message_spans: Sequence[ReadSpan]) -> None:
    """Makes what a context and its ledger will be asked for."""
    for one in message_spans:
        _ = one.digest, one.particulars
    _order_of(message_spans)


def digested(message_spans: Sequence[ReadSpan], before_seq: int) -> tuple[list[Digested], Order | None]:
    """What is before this message, and the order of the lines of all but the newest of it. Both are made where they
    are not there yet."""
    read = [one for one in message_spans if one.message_span.first_seq < before_seq]
    return [one.digested() for one in read], _order_of(read)


def _order_of(message_spans: Sequence[ReadSpan]) -> Order | None:
    """The newest stretch still grows, so it is taken in anew each time. Kept with the last of the others: for as long
    as these are the same."""
    if len(message_spans) < 3:
        return None
    *earlier, last = message_spans[:-1]
    key = (message_spans[0].message_span.first_seq, len(message_spans))
    if last.order is None or last.order[0] != key:
        last.order = key, ordered([one.digest for one in [*earlier, last]])
    return last.order[1]


def said_before(message_spans: Sequence[ReadSpan], session_id: str, before_seq: int) -> list[Loss]:
    """Every particular said before this message: what of it is lost, the ledger finds out."""
    return [
        Loss(kind=particular.kind, text=particular.text, session_id=session_id, seq=seq)
        for one in message_spans
        if one.message_span.first_seq < before_seq
        for particular, seq in one.particulars
        if seq < before_seq
    ]


class PendingMessages:
    def __init__(self, store: Store, blobs: Blobs, settings: Settings, worker: Worker = IN_PROCESS) -> None:
        self._store = store
        self._blobs = blobs
        self._settings = settings
        self._worker = worker
        self._pending_messages: OrderedDict[Scope, PendingSession] = OrderedDict()
        self.when_behind: Callable[[Scope], None] = lambda scope: None
        """Told of a session that nobody has read to its end: it was let go of, or the background lags."""

    @asynccontextmanager
    async def following(
        self, scope: Scope, session: Session, *, most_chars: int | None = None
    ) -> AsyncIterator[tuple[PendingSession, bool]]:
        """The session's, and whether it has everything up to the session's newest message. Nobody else changes it
        meanwhile. `most_chars` bounds what is read for this."""
        for _ in range(TRIES):
            pending = await self._pending_session(scope)
            await self._read_ahead(scope, pending, session.last_seq, most_chars)
            if self._pending_messages.get(scope) is pending:
                break
        async with pending.busy:
            yield pending, pending.through_seq >= session.last_seq

    async def at_once(self, scope: Scope, session: Session) -> PendingSession:
        """As it is, with a little read on the spot; with nothing more where the background is just reading it."""
        pending = await self._pending_session(scope)
        if pending.through_seq < session.last_seq and not pending.busy.locked():
            async with pending.busy:
                if not await self._follow(scope, pending, session.last_seq, ON_THE_SPOT_CHARS):
                    self.when_behind(scope)
        return pending

    async def catch_up(self, scope: Scope, session: Session) -> None:
        """Where somebody waits for a context that would have a hole otherwise."""
        pending = await self._pending_session(scope)
        async with pending.busy:
            await self._follow(scope, pending, session.last_seq, CATCHING_UP_CHARS)

    def forget(self, scope: Scope) -> None:
        """It is read anew when next asked for: something else has summarised of it, or its settings have changed."""
        self._pending_messages.pop(scope, None)

    def let_go(self, agent_id: str) -> None:
        """Keep nothing of the agent's in memory."""
        for scope in [scope for scope in self._pending_messages if scope.agent_id == agent_id]:
            del self._pending_messages[scope]

    async def read(self, scope: Scope, first_seq: int, last_seq: int) -> ReadSpan:
        """A stretch of the log that a summary stands for already, read again."""
        readings: list[ReadMessage] = []
        at = first_seq - 1
        while at < last_seq:
            page = await self._page(scope, at, last_seq)
            readings += await self._readings(scope, page, is_waited_for=False)
            at = page[-1].seq
        return ReadSpan(MessageSpan(first_seq, last_seq, sum(one.tokens for one in readings)), readings)

    async def turns(self, scope: Scope, message_span: ReadSpan) -> list[tuple[int, Message]]:
        """What was said in it, as it came, each with its number: for a model that summarises it."""
        said = {one.seq for one in message_span.readings if one.said is not None}
        turns: list[tuple[int, Message]] = []
        at, last_seq = message_span.message_span.first_seq - 1, message_span.message_span.last_seq
        while at < last_seq and (page := await self._page(scope, at, last_seq)):
            turns += [(logged.seq, await self._whole(scope, logged)) for logged in page if logged.seq in said]
            at = page[-1].seq
        return turns

    async def _pending_session(self, scope: Scope) -> PendingSession:
        made_of = self._store.versions.of(scope.agent_id, "erased", "summaries")
        known = self._pending_messages.get(scope)
        if known is not None and known.made_of != made_of and not known.busy.locked():
            is_erased = known.made_of[0] != made_of[0]
            if is_erased or await self._store.summarised_through(scope) != known.summarised_through:
                self.forget(scope)
            else:
                known.made_of = made_of
        if scope not in self._pending_messages:
            summarised_through = await self._store.summarised_through(scope)
            chunk_tokens = self._settings.for_agent(scope.agent_id).chunk_tokens
            self._pending_messages.setdefault(scope, PendingSession(chunk_tokens, summarised_through, made_of))
            idle = [one for one, kept in self._pending_messages.items() if one != scope and not kept.busy.locked()]
            for one in idle[: len(self._pending_messages) - MOST_SESSIONS]:
                del self._pending_messages[one]
        self._pending_messages.move_to_end(scope)
        return self._pending_messages[scope]

    async def _read_ahead(self, scope: Scope, pending: PendingSession, last_seq: int, most_chars: int | None) -> None:
        """Beside whoever waits for the session's context: it is held only while what was read is taken."""
        read = 0
        while (after := pending.through_seq) < last_seq and (most_chars is None or read < most_chars):
            page = await self._page(scope, after, last_seq)
            if most_chars is not None:
                page = _within(page, most_chars - read)
            read += sum(one.entry.chars for one in page) + len(page)
            readings = await self._readings(scope, page, is_waited_for=False)
            async with pending.busy:
                if pending.through_seq == after:
                    pending.take(readings, [logged.message for logged in page])

    async def _follow(self, scope: Scope, pending: PendingSession, last_seq: int, most_chars: int) -> bool:
        read = 0
        while pending.through_seq < last_seq:
            if read >= most_chars:
                return False
            page = _within(await self._page(scope, pending.through_seq, last_seq), most_chars - read)
            read += sum(one.entry.chars for one in page) + len(page)
            readings = await self._readings(scope, page, is_waited_for=True)
            pending.take(readings, [logged.message for logged in page])
        return True

    async def _page(self, scope: Scope, after_seq: int, last_seq: int) -> list[LoggedMessage]:
        page = await self._store.messages(scope, after_seq=after_seq, limit=min(PAGE, last_seq - after_seq))
        if not page:
            raise StoreCorrupt(f"message {after_seq + 1} of {scope.session_id!r} is missing: run `offbook doctor`")
        return page

    async def _readings(self, scope: Scope, page: Sequence[LoggedMessage], *, is_waited_for: bool) -> list[ReadMessage]:
        whole = [(logged, await self._whole(scope, logged)) for logged in page]
        if not is_waited_for:
            return await self._worker.run(_readings, whole, with_particulars=True)
        is_heavy = sum(logged.entry.chars for logged in page) > HEAVY_CHARS
        return await asyncio.to_thread(_readings, whole) if is_heavy else _readings(whole)

    async def _whole(self, scope: Scope, logged: LoggedMessage) -> Message:
        references = [one for one in logged.entry.blobs if not one.is_binary and one.chars <= LARGEST_READ_CHARS]
        return (await with_parts(self._blobs, scope.agent_id, logged, references))[0]


def _within(page: Sequence[LoggedMessage], chars: int) -> list[LoggedMessage]:
    """The first of a page, until they are that long; at least one."""
    taken: list[LoggedMessage] = []
    for logged in page:
        if taken and chars <= 0:
            break
        taken.append(logged)
        chars -= logged.entry.chars + 1
    return taken


def _readings(whole: Sequence[tuple[LoggedMessage, Message]], *, with_particulars: bool = False) -> list[ReadMessage]:
    read = [_reading(logged, message) for logged, message in whole]
    return [one._replace(particulars=_particulars(one)) for one in read] if with_particulars else read


def _reading(logged: LoggedMessage, message: Message) -> ReadMessage:
    at = message.ts or logged.received_at
    if logged.entry.noise is not None:
        return ReadMessage(logged.seq, 0, at, None, None)
    text = said_text(message)
    said = SpokenMessage(logged.seq, speaker_of(message), text, at)
    return ReadMessage(logged.seq, estimate_tokens(text), at, said, analyse(said))


def _particulars(read: ReadMessage) -> tuple[Particular, ...]:
    if read.particulars is not None or read.said is None:
        return read.particulars or ()
    return tuple(particulars(read.said.text[:MOST_READ_CHARS]))


def speaker_of(message: Message) -> str:
    """In the agent's own voice."""
    match message.role:
        case "assistant":
            return "I"
        case "tool":
            return f"tool {message.name}" if message.name else "tool"
        case "system":
            return "system"
    return message.name or "They"


def said_text(message: Message) -> str:
    """A message as it is summarised: without reasoning, and of what a tool gave the beginning and the end."""
    content = message.content
    if not isinstance(content, str) and any(block.get("type") in REASONING_TYPES for block in content):
        kept = [block for block in content if block.get("type") not in REASONING_TYPES]
        message = msgspec.structs.replace(message, content=kept)
    text = without_stand_ins(render(message))
    most = TOOL_CHARS if message.role == "tool" else SAID_CHARS
    return text if len(text) <= most else f"{text[: most * 3 // 4]} … {text[-most // 4 :]}"
