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
import hashlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from offbook.client.blocking import Client
from offbook.client.blocking_hot_swap import BlockingHotSwapSession
from offbook.client.messages import OPENING, THOUGHT, message_of
from offbook.contrib.frameworks.history_matcher import HistoryMatchers, Sessions, missing
from offbook.model.content import render, tool_calls, tool_results
from offbook.model.errors import InvalidInput
from offbook.model.types import Block, Message

try:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import (
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import RunContext
except ImportError as error:
    raise missing("Pydantic AI", "pydantic-ai", error) from error

# ── Messages of Pydantic AI as messages of ours and back. Pure ──

MARK = "pydanticAi"
MADE_AT = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of what we made or changed. It is how we know our own again where a host keeps it in its history: requests
are merged there, and only their parts stay as they are."""
Part = dict[str, Any]

_MADE_AT = "1970-01-01T00:00:00Z"
_SAID = frozenset({"user-prompt", "tool-return", "retry-prompt", "retry-feedback"})
_MEDIA = {
    "image-url": "image",
    "audio-url": "file",
    "video-url": "file",
    "document-url": "file",
    "uploaded-file": "file",
}
_IN_CONTENT = frozenset({"user-prompt", "tool-return", "retry-prompt", "text", "thinking", "tool-call"})
"""Parts of which only what was said is the content."""
_TO_STANDARD = str.maketrans("-_", "+/")
_TO_URL_SAFE = str.maketrans("+/", "-_")
_canonical = msgspec.json.Encoder(order="deterministic")


class RecordedPart(NamedTuple):
    """A part that was said: the message of ours, and where it stands."""

    message: Message
    message_at: int
    part_at: int

    def named(self, message_id: str) -> RecordedPart:
        is_same = self.message.id == message_id
        return self if is_same else self._replace(message=msgspec.structs.replace(self.message, id=message_id))


def recorded_parts(messages: Sequence[ModelMessage]) -> list[RecordedPart]:
    """Every part that somebody said, under an id that is the same each time it is given, and after a restart."""
    times: Counter[str] = Counter()
    found = []
    for at, dumped in enumerate(ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")):
        is_request = dumped["kind"] == "request"
        for part_at, part in enumerate(dumped["parts"]):
            when = (part if is_request else dumped).get("timestamp")
            if (is_request and part["part_kind"] not in _SAID) or when == _MADE_AT:
                continue
            digest = hashlib.sha256(_canonical.encode([dumped["kind"], when, part])).hexdigest()[:32]
            times[digest] += 1
            name = f"pydantic-ai:{digest}" + (f":{times[digest]}" if times[digest] > 1 else "")
            found.append(RecordedPart(_message_of(part, name, dumped), at, part_at))
    return found


def model_messages_of(messages: Sequence[Message]) -> list[ModelMessage]:
    """Messages that Pydantic AI gave us, or ours as it has them: each side's parts in a row are one message."""
    made: list[dict[str, Any]] = []
    for message in messages:
        kind, fields, part = _part_of(message)
        if made and made[-1]["kind"] == kind and made[-1].get("timestamp") == fields.get("timestamp"):
            made[-1]["parts"].append(part)
        else:
            made.append({"kind": kind, "parts": [part], **fields})
    return ModelMessagesTypeAdapter.validate_python(made)


def is_readable(message: Message) -> bool:
    """Not a thought that only its own model may read, and that is gone."""
    mark = (message.meta or {}).get(MARK) or {}
    return not (message.content == THOUGHT and mark.get("part", {}).get("part_kind") == "thinking")


def made(messages: Sequence[Message]) -> list[ModelMessage]:
    """`model_messages_of`, told from what the host's own messages are."""
    return [_dated(message) for message in model_messages_of(messages)]


def opening(instructions: Sequence[SystemPromptPart], *, is_answered: bool) -> list[ModelMessage]:
    """What comes before all else: instructions, and something that the user says where the assistant would begin."""
    asked = [UserPromptPart(OPENING, timestamp=MADE_AT)] if is_answered else []
    return [ModelRequest(parts=[*instructions, *asked])] if instructions or asked else []


def _dated(message: ModelMessage) -> ModelMessage:
    if isinstance(message, ModelResponse):
        return dataclasses.replace(message, timestamp=MADE_AT)
    dated: dict[str, Any] = {"timestamp": MADE_AT}
    parts = [dataclasses.replace(part, **dated) if hasattr(part, "timestamp") else part for part in message.parts]
    return dataclasses.replace(message, parts=parts)


def _message_of(part: Part, name: str, holder: Mapping[str, Any]) -> Message:
    kind = part["part_kind"]
    in_content = {"content", "args"} if kind in _IN_CONTENT else set(part)
    beside = {field: value for field, value in part.items() if field not in in_content} | {"part_kind": kind}
    mark: dict[str, Any] = {"kind": holder["kind"], "part": beside}
    if holder["kind"] == "response":
        mark["response"] = {field: holder.get(field) for field in ("timestamp", "model_name")}
    fields: dict[str, Any] = {"id": name, "meta": {MARK: mark}, "ts": part.get("timestamp") or holder.get("timestamp")}
    if kind == "user-prompt":
        content = part["content"]
        given = content if isinstance(content, str) else [_block(one) for one in content]
        return message_of({**fields, "role": "user", "content": given})
    if kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name")):
        result = {"type": "tool-result", "toolCallId": part["tool_call_id"], "content": part["content"]}
        return message_of({**fields, "role": "tool", "toolCallId": part["tool_call_id"], "content": [result]})
    role = "user" if holder["kind"] == "request" else "assistant"
    return message_of({**fields, "role": role, "content": [_response_block(part)]})


def _response_block(part: Part) -> Block:
    kind = part["part_kind"]
    if kind == "text" or (kind == "retry-prompt" and isinstance(part["content"], str)):
        return {"type": "text", "text": part["content"]}
    if kind == "retry-prompt":
        return {"type": kind, "content": part["content"]}
    if kind == "thinking":
        return {"type": "thinking", "thinking": part["content"]}
    if kind == "tool-call":
        return {"type": "tool-call", "id": part["tool_call_id"], "name": part["tool_name"], "arguments": part["args"]}
    return {"type": kind, **part}


def _part_of(message: Message) -> tuple[str, dict[str, Any], Part]:
    mark = (message.meta or {}).get(MARK)
    content = message.content
    if isinstance(mark, dict):
        kind = mark["part"].get("part_kind")
        block = content[0] if isinstance(content, list) and len(content) == 1 else {}
        part = _restored(kind, mark["part"], content, block)
        if part is not None:
            return mark["kind"], mark.get("response", {}), part
    if message.role == "assistant":
        return "response", {}, {"part_kind": "text", "content": render(message)}
    return "request", {}, {"part_kind": "user-prompt", "content": render(message)}


def _restored(kind: str, beside: Part, content: Any, block: Block) -> Part | None:
    """None where what stands there now is no longer such a part, but words in its place."""
    if kind == "user-prompt":
        return {**beside, "content": content if isinstance(content, str) else [_unblocked(one) for one in content]}
    if kind in ("text", "retry-prompt") and block.get("type") == "text":
        return {**beside, "content": block["text"]}
    if kind == "thinking" and block.get("type") == "thinking":
        return {**beside, "content": block["thinking"]}
    if kind == "tool-call" and block.get("type") == "tool-call":
        return {**beside, "args": block.get("arguments"), "tool_call_id": block["id"]}
    if kind in ("tool-return", "retry-prompt") and block.get("type") in ("tool-result", kind):
        return {**beside, "content": block["content"]}
    is_whole = block.get("type") == kind
    return {field: value for field, value in block.items() if field != "type"} if is_whole else None


def _block(content: str | Part) -> Block:
    if isinstance(content, str):
        return {"type": "text", "text": content}
    kind = content.get("kind", "")
    if kind == "text-content":
        return {"type": "text", "text": content["content"], "beside": content}
    if kind == "binary":
        is_image = str(content.get("media_type", "")).startswith("image/")
        # The standard alphabet: what is told from words by it is never put into a context.
        data = str(content["data"]).translate(_TO_STANDARD)
        return {**content, "type": "image" if is_image else "file", "data": data}
    return {**content, "type": _MEDIA.get(kind, kind)}


def _unblocked(block: Block) -> str | Part:
    if block.get("type") == "text":
        beside = block.get("beside")
        return {**beside, "content": block["text"]} if isinstance(beside, dict) else str(block.get("text", ""))
    if block.get("kind") == "binary":
        block = {**block, "data": str(block["data"]).translate(_TO_URL_SAFE)}
    return {field: value for field, value in block.items() if field != "type"}


log = logging.getLogger("offbook.integrations")


class HotSwap(AbstractCapability[Any]):
    """The session is the run's `conversation_id` where none is named; `options` are those of `HotSwapSession`."""

    def __init__(self, memory: Client, *, context_window: int, session_id: str | None = None, **options: Any) -> None:
        self._sessions = Sessions(memory, {**options, "context_window": context_window})
        self._latelies = HistoryMatchers()
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
        matcher = self._latelies.of(session)
        for said in recorded_parts([response]):
            matcher.add(session, said.message)
        session.report_usage(response.usage.input_tokens)

    def _given(self, session_id: str, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        session = self._sessions.of(session_id)
        said = recorded_parts(messages)
        ids = [one.message.id or "" for one in said]
        names = self._latelies.of(session).take(session, ids, lambda at: said[at].message).names
        recorded = [one.named(names.get(own, own)) for one, own in zip(said, ids, strict=True)]
        return assembled(messages, recorded, session.turn_messages())


def assembled(
    messages: Sequence[ModelMessage], said: Sequence[RecordedPart], sent: Sequence[Message]
) -> list[ModelMessage]:
    """`told` as Pydantic AI has it: its own messages where they are whole, the rest made. Instructions that it would
    lose with the messages they stand in come first, and the request that is to be answered comes last."""
    places = {one.message.id: one.message_at for one in said}
    given: list[ModelMessage] = []
    kept: set[int] = set()
    for at, group in groupby(_sendable(sent), key=lambda one: places.get(one.id)):
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


def _sendable(sent: Sequence[Message]) -> list[Message]:
    """Without calls that were never answered: of a run that failed, or of an answer that was rejected. Models refuse
    them, and nobody is at work on them when a model is asked."""
    answered = {call_id for one in sent for call_id in tool_results(one)}
    return [one for one in sent if is_readable(one) and answered.issuperset(tool_calls(one))]


def _with_parts(own: ModelMessage, said: Sequence[RecordedPart], sent: Sequence[Message]) -> ModelMessage:
    """The host's own object where all that was said in it is told as it was."""
    before = {one.part_at: one.message for one in said}
    now = {message.id: message for message in sent}
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
