"""What a request gets on its way to the model, and what of it is recorded. Never raises, never late.

The provider is asked within one deadline. Whatever is wrong with it, the request passes as it came; what was said waits
in the outbox until the provider is back. A context that was swapped in before stays: it is here already.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

import msgspec
import structlog

from offbook.client.async_client import AsyncClient
from offbook.client.messages import message_of
from offbook.client.placement import held, turn_key_of
from offbook.contrib.proxy.chat_api import Answer, Item, Request, with_turn, written
from offbook.contrib.proxy.conversation import Conversation, Known, Turn
from offbook.contrib.proxy.conversations import Conversations
from offbook.contrib.proxy.naming import Naming, Refusals, Rest
from offbook.contrib.proxy.responses_api import CHAT, Dialect
from offbook.contrib.proxy.swaps import Context, Limits, size_tokens
from offbook.model.errors import OffbookError
from offbook.model.turn import PreparedTurn

DEADLINE_SECONDS = 0.25
ANSWERED_SHARE = 0.8
"""Of the time there is for a turn: the rest is for the way there and back."""
SWAP_SHARE = 0.6
"""Of the deadline: the rest is for the turn. A swap that takes longer is used with the next request."""
SEARCHED_CHARS = 100_000
"""Of a question that holds a whole document: its beginning and its end."""
WARM_SECONDS = 1.0
LARGE_BYTES = 1_000_000
"""From here on a request is read, counted and written in a thread: it takes up to 0.2 s a megabyte, and every stream
would wait for it."""

log = structlog.get_logger("offbook.proxy")


class Exchange(NamedTuple):
    """A request on its way, for when its answer comes."""

    turn: Turn
    request: Request
    is_enriched: bool
    has_memory: bool = False
    """Whether the section that stays the same is in it."""
    slot_tokens: int = 0
    """Our estimate of the messages as they were sent; 0 where there is none."""
    beside_tokens: int = 0
    """And of the memory beside them."""


class Enriched(NamedTuple):
    body: bytes
    exchange: Exchange | None = None
    """None where it is not understood: nothing is recorded of it."""


class Enricher:
    def __init__(self, memory: AsyncClient, limits: Limits, *, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._memory = memory
        self._limits = limits
        self._deadline_seconds = deadline_seconds
        self._conversations = Conversations()
        self._contexts: WeakKeyDictionary[Conversation, Context] = WeakKeyDictionary()
        self._naming = Naming(memory, self._conversations)
        self._rest = Rest()
        self._refusals = Refusals()
        self._reading_large = asyncio.Lock()
        self._has_unread = False
        """Said once: where one answer cannot be read, others cannot."""

    async def enriched(self, body: bytes, session_id: str | None = None, dialect: Dialect = CHAT) -> Enriched:
        """The body to send on. `session_id` where a header names it."""
        try:
            begun = await self._begun(body, session_id, dialect)
            if begun is None:
                return Enriched(body)
            request, turn = begun
            if turn.brought is not None:
                self._name_soon(turn, request, turn.brought)
                self._note_unread(request.model)
            is_refusing = self._refusals.is_on(request.model)
        # A request may hold anything, and it is the client's: it goes on as it came.
        except Exception as error:  # noqa: BLE001
            log.warning("a request was not understood", action="proxy.unread", error=repr(error))
            return Enriched(body)
        await self._count(body, request, turn)
        if is_refusing:
            enriched = Enriched(body, self.sent_bare(Exchange(turn, request, is_enriched=False)))
        else:
            enriched = await self._with_memory(body, request, turn)
        # When the request is on its way: whoever delivers what is recorded wants the interpreter too.
        asyncio.get_running_loop().call_soon(self._record, request, turn)
        return enriched

    async def _begun(self, body: bytes, session_id: str | None, dialect: Dialect) -> tuple[Request, Turn] | None:
        if len(body) < LARGE_BYTES:
            return self._placed(dialect.read_request(body), session_id)
        # One by one as they came: a history only grows, so what races with a large request of its own conversation is
        # large. Who was answered before the next one asked has his place already.
        async with self._reading_large:
            return self._placed(await asyncio.to_thread(dialect.read_request, body), session_id)

    def _placed(self, request: Request | None, session_id: str | None) -> tuple[Request, Turn] | None:
        """In its conversation."""
        if request is None:
            return None
        turn = self._conversations.begin(
            request.said,
            [item.fingerprint for item in request.items],
            seed=request.seed,
            session_id=session_id or request.session_id,
            behind=request.behind,
        )
        came = [item._replace(place=place) for item, place in zip(request.items, turn.places, strict=True)]
        return request._replace(items=came), turn

    async def _count(self, body: bytes, request: Request, turn: Turn) -> None:
        """So that all who ask for its size have it at hand."""
        if len(body) >= LARGE_BYTES:
            with suppress(Exception):  # it is counted again where that matters
                await asyncio.to_thread(size_tokens, request.items, self._context(turn).sizes)

    async def _with_memory(self, body: bytes, request: Request, turn: Turn) -> Enriched:
        prepared: PreparedTurn | None = None
        try:
            async with asyncio.timeout(self._deadline_seconds):
                prepared = await self._asked(request, turn, self._context(turn))
        except Exception as error:  # noqa: BLE001 - whatever goes wrong with memory, the conversation goes on
            self._rest.failed(error)
        try:
            return await self._sent(body, request, turn, prepared)
        except Exception as error:  # noqa: BLE001 - as above
            self._rest.failed(error)
            return Enriched(body, self.sent_bare(Exchange(turn, request, is_enriched=False)))

    def taken(self, exchange: Exchange, *, is_bare: bool) -> None:
        """The API has answered a request that was changed; `is_bare`: only when it was sent again as it came."""
        model = exchange.request.model
        if not is_bare:
            self._refusals.taken(model)
        elif self._refusals.refused(model):
            log.warning("its requests pass without memory for now", action="proxy.refusing", model=model)

    def sent_bare(self, exchange: Exchange) -> Exchange:
        """The request goes to the model as it came, with nothing of ours."""
        bare = exchange._replace(is_enriched=False, has_memory=False, slot_tokens=0, beside_tokens=0)
        try:
            context = self._context(exchange.turn)
            bare = bare._replace(slot_tokens=size_tokens(exchange.request.items, context.sizes))
            context.meter.give(bare.slot_tokens)
        except Exception as error:  # noqa: BLE001 - it passes, whatever it holds
            log.warning("a request was not counted", action="proxy.uncounted", error=repr(error))
        return bare

    def answered(self, exchange: Exchange, answer: Answer | None) -> None:
        """Record the answer, and what was asked, where it is the first."""
        if answer is None:
            return
        try:
            if answer.choices:
                self._conversations.offered(exchange.turn, answer.choices)
            else:
                self._tell(exchange, answer)
            meter = self._context(exchange.turn).meter
            # Others may have been sent since, and the conversation may be another one than it was sent in.
            if exchange.slot_tokens:
                meter.give(exchange.slot_tokens, exchange.beside_tokens)
                meter.report(answer.prompt_tokens)
        except Exception as error:  # noqa: BLE001 - the client has its answer; it comes back with the next request
            log.warning("an answer was not recorded", action="proxy.unrecorded", error=repr(error))

    def _tell(self, exchange: Exchange, answer: Answer) -> None:
        turn, request = exchange.turn, exchange.request
        response_id = answer.response_id if request.is_kept_at_api else None
        places = self._conversations.answered(turn, answer.messages, response_id)
        conversation, context = turn.conversation, self._context(turn)
        is_kept = turn.behind is not None and context.has_memory_at_api
        context.has_memory_at_api = exchange.has_memory or is_kept
        _tell_later(turn, request)
        for place, said in zip(places, answer.messages, strict=True):
            conversation.tell_later(place.id, message_of({**said, "model": answer.model}))
        if conversation.session_id is None and places:
            self._name_soon(turn, request, places[0])
        self._naming.send_unsent(conversation)

    def _name_soon(self, turn: Turn, request: Request, answer: Known) -> None:
        _tell_later(turn, request)
        roles = [{"role": said.get("role")} for said in request.said]
        self._context(turn).naming = self._naming.name_soon(turn, roles, answer)

    def _note_unread(self, model: str) -> None:
        if not self._has_unread:
            log.warning(
                "an answer was not read to its end as it passed: it is recorded when the client sends it back",
                action="proxy.unread_answer",
                model=model,
            )
        self._has_unread = True

    async def warm(self) -> None:
        """The first question finds an open connection, where there is a provider."""
        try:
            async with asyncio.timeout(WARM_SECONDS):
                await self._memory.ping()
        except (OffbookError, TimeoutError) as error:
            log.warning("no provider yet: requests pass unchanged", action="proxy.warm", reason=str(error))

    async def close(self) -> None:
        for context in self._contexts.values():
            context.close()
        await self._naming.close()

    # ── asking ──

    async def _asked(self, request: Request, turn: Turn, context: Context) -> PreparedTurn | None:
        until = time.monotonic() + self._deadline_seconds
        if self._rest.is_on:
            return None
        if context.naming is not None and not turn.conversation.candidates:
            await asyncio.wait({context.naming})
        await self._naming.look_for(turn, request.said)
        if turn.behind is None:  # what lies at the API cannot be replaced
            await self._swapped(request, turn, context, until - self._deadline_seconds * (1 - SWAP_SHARE))
        used_tokens = context.meter.used(context.estimate(request.items))
        return await self._prepared(request.items, turn, context, used_tokens, until)

    async def _swapped(self, request: Request, turn: Turn, context: Context, until: float) -> None:
        # Recorded before only where a swap is to have it: what is told now is taken in while the turn is prepared.
        if context.is_due(request.items, self._limits):
            self._record(request, turn)
        wrong = await context.attend(self._memory, request.items, turn, self._limits, until)
        if wrong is not None:
            log.warning("a context was not used", action="proxy.kept", session=turn.session_id, reason=wrong)

    async def _sent(self, body: bytes, request: Request, turn: Turn, prepared: PreparedTurn | None) -> Enriched:
        """With the base that is in use, and with memory where it came in time."""
        context = self._context(turn)
        items, slot_tokens = context.items(request.items), context.estimate(request.items)
        beside_tokens = 0
        if prepared is not None:
            if turn.behind is not None and context.has_memory_at_api:
                prepared = _without_memory(prepared)
            beside_tokens = prepared.tokens.memory + prepared.tokens.recall
        made = partial(_made, body, request, items, prepared)
        sent = await asyncio.to_thread(made) if len(body) >= LARGE_BYTES else made()
        is_same = sent is body
        context.meter.give(slot_tokens, beside_tokens)
        has_memory = prepared is not None and bool(prepared.memory)
        return Enriched(sent, Exchange(turn, request, not is_same, has_memory, slot_tokens, beside_tokens))

    async def _prepared(
        self, items: Sequence[Item], turn: Turn, context: Context, used_tokens: int, until: float
    ) -> PreparedTurn | None:
        """Once a question: were it another one after a tool's result, nothing from the question on would be cached."""
        asked = turn_key_of([item.message for item in items], None, context.generation)
        if asked is None:
            return None
        asked = asked._replace(message_id=_question_id(items))
        question = partial(
            self._memory.prepare_turn,
            turn.session_id,
            _searchable(asked.prompt),
            current_tokens=used_tokens,
            context_window=self._limits.window_tokens,
        )
        if context.last_turn is not None and context.last_turn[0] == asked:
            context.count_soon(partial(question, deadline_ms=int(self._deadline_seconds * 1_000)))
            return context.last_turn[1]
        for _ in range(2):  # what comes with the word that something was forgotten may still have it
            deadline_ms = max(1, int((until - time.monotonic()) * ANSWERED_SHARE * 1_000))
            prepared = await question(deadline_ms=deadline_ms)
            self._rest.answered()
            if not context.count(prepared.forgets, since=until - self._deadline_seconds):
                kept = held(prepared, asked, context.last_turn) or prepared
                context.last_turn = (asked, kept)
                return kept
        return None

    # ── recording ──

    def _record(self, request: Request, turn: Turn) -> None:
        for number, place in self._conversations.unrecorded(turn):
            self._naming.keep(turn.session_id, place.id, request.items[number].message)

    def _context(self, turn: Turn) -> Context:
        return self._contexts.setdefault(turn.conversation, Context())


def _made(body: bytes, request: Request, items: Sequence[Item], prepared: PreparedTurn | None) -> bytes:
    """The very same body where nothing is another."""
    if prepared is not None:
        items = with_turn(items, prepared)
    is_same = len(items) == len(request.items) and all(map(_is_same, items, request.items))
    return body if is_same else written(request, items)


def _tell_later(turn: Turn, request: Request) -> None:
    for place, item in zip(turn.places, request.items, strict=True):
        if place is not None:
            turn.conversation.tell_later(place.id, item.message)


def _is_same(one: Item, other: Item) -> bool:
    return one is other


def _without_memory(prepared: PreparedTurn) -> PreparedTurn:
    tokens = msgspec.structs.replace(prepared.tokens, memory=0)
    return msgspec.structs.replace(prepared, memory="", tokens=tokens)


def _question_id(items: Sequence[Item]) -> str | None:
    """Of what the user said last: the same as long as the model is at work on it."""
    asked = next((item for item in reversed(items) if item.message.role == "user"), None)
    return asked.place.id if asked is not None and asked.place is not None else None


def _searchable(prompt: str) -> str:
    if len(prompt) <= SEARCHED_CHARS:
        return prompt
    half = SEARCHED_CHARS // 2
    return f"{prompt[:half]}\n{prompt[-half:]}"
