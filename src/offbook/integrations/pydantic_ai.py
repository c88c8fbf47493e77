"""Pydantic AI: a capability that compacts by hot swap and records what is said. It is a history processor, too.

    memory = Client(agent_id="main")
    agent = Agent(model, capabilities=[HotSwap(memory, context_window=200_000)])
    result = await agent.run("Where were we?", conversation_id="telegram:42", message_history=history)

As a capability it changes only what the model is given: the history that a run returns stays whole. As a history
processor (`ProcessHistory(HotSwap(…))`) it replaces the history, as those do. Either way a message that comes again is
known. Where the provider is away the model gets what there is; what was said waits in the outbox.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from offbook.client.blocking import Client
from offbook.client.blocking_hot_swap import BlockingHotSwapSession
from offbook.content import tool_calls, tool_results
from offbook.errors import InvalidInput
from offbook.integrations.lately import Latelies
from offbook.integrations.missing import missing
from offbook.integrations.sessions import Sessions
from offbook.types import Message

try:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage, ModelResponse, SystemPromptPart
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import RunContext

    from offbook.integrations.pydantic_messages import MADE_AT, Said, is_readable, made, opening, said_in
except ImportError as error:
    raise missing("Pydantic AI", "pydantic-ai", error) from error

log = logging.getLogger("offbook.integrations")


class HotSwap(AbstractCapability[Any]):
    """The session is the run's `conversation_id` where none is named; `options` are those of `HotSwapSession`."""

    def __init__(self, memory: Client, *, context_window: int, session_id: str | None = None, **options: Any) -> None:
        self._sessions = Sessions(memory, {**options, "context_window": context_window})
        self._latelies = Latelies()
        self._session_id = session_id

    @classmethod
    def get_serialization_name(cls) -> str | None:
        return None  # it holds a client

    async def __call__(self, ctx: RunContext[Any], messages: list[ModelMessage]) -> list[ModelMessage]:
        """The messages for the model: what stands for the past, then the newest word for word, with memory and recall
        in their places."""
        session_id = self._session_of(ctx)
        try:
            return await asyncio.to_thread(self._given, session_id, messages)
        # Whatever goes wrong with memory, the agent goes on with its own messages.
        except Exception:
            log.exception("a turn went without memory")
            return messages

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        request_context.messages = await self(ctx, list(request_context.messages))
        return request_context

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """What the model has just said is recorded at once, not only before the next request."""
        session_id = self._session_of(ctx)
        try:
            await asyncio.to_thread(self._answered, session_id, response)
        except Exception:  # as above
            log.exception("an answer is recorded only with the next request")
        return response

    def session(self, session_id: str) -> BlockingHotSwapSession:
        """Its `stats` and `events` tell of its swaps."""
        return self._sessions.of(session_id)

    def _session_of(self, ctx: RunContext[Any]) -> str:
        session_id = self._session_id or ctx.conversation_id
        if not session_id:
            raise InvalidInput("the run has no session: pass `conversation_id` to it, or `session_id` to HotSwap")
        return session_id

    def _answered(self, session_id: str, response: ModelResponse) -> None:
        session = self._sessions.of(session_id)
        lately = self._latelies.of(session)
        for said in said_in([response]):
            lately.add(session, said.message)
        session.report_usage(response.usage.input_tokens)

    def _given(self, session_id: str, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        session = self._sessions.of(session_id)
        said = said_in(messages)
        ids = [one.message.id or "" for one in said]
        names = self._latelies.of(session).take(session, ids, lambda at: said[at].message).names
        recorded = [one.named(names.get(own, own)) for one, own in zip(said, ids, strict=True)]
        return assembled(messages, recorded, session.turn_messages())


def assembled(messages: Sequence[ModelMessage], said: Sequence[Said], told: Sequence[Message]) -> list[ModelMessage]:
    """`told` as Pydantic AI has it: its own messages where they are whole, the rest made. Instructions that it would
    lose with the messages they stand in come first, and the request that is to be answered comes last."""
    places = {one.message.id: one.message_at for one in said}
    given: list[ModelMessage] = []
    kept: set[int] = set()
    for at, group in groupby(_sendable(told), key=lambda one: places.get(one.id)):
        if at is None:
            given += made(list(group))
        else:
            kept.add(at)
            given.append(_with_parts(messages[at], [one for one in said if one.message_at == at], list(group)))
    last = len(messages) - 1
    if last >= 0 and not any(
        one.message_at == last for one in said
    ):  # nothing was said in it, and it is to be answered
        kept.add(last)
        given.append(messages[last])
    lost = [part for at, one in enumerate(messages) if at not in kept for part in _instructions(one)]
    return [*opening(lost, is_answered=bool(given) and isinstance(given[0], ModelResponse)), *given]


def _sendable(told: Sequence[Message]) -> list[Message]:
    """Without calls that were never answered: of a run that failed, or of an answer that was rejected. Models refuse
    them, and nobody is at work on them when a model is asked."""
    answered = {call_id for one in told for call_id in tool_results(one)}
    return [one for one in told if is_readable(one) and answered.issuperset(tool_calls(one))]


def _with_parts(own: ModelMessage, said: Sequence[Said], told: Sequence[Message]) -> ModelMessage:
    """The host's own object where all that was said in it is told as it was."""
    before = {one.part_at: one.message for one in said}
    now = {message.id: message for message in told}
    parts: list[Any] = []
    for at, part in enumerate(own.parts):
        if at not in before:
            parts.append(part)
        elif (message := now.get(before[at].id)) is not None:
            is_same = (message.role, message.content) == (before[at].role, before[at].content)
            parts += [part] if is_same else made([message])[0].parts
    if len(parts) == len(own.parts) and all(one is other for one, other in zip(parts, own.parts, strict=True)):
        return own
    changed: dict[str, Any] = {"parts": parts}
    if isinstance(own, ModelResponse):
        changed["timestamp"] = MADE_AT
    return dataclasses.replace(own, **changed)


def _instructions(message: ModelMessage) -> list[SystemPromptPart]:
    return [part for part in message.parts if isinstance(part, SystemPromptPart)]
