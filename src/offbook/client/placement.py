"""Where a host puts what a turn was prepared with: what stays the same first, what is of this turn only last.

So all that a model's provider has cached from the turn before, memory and history, is read from its cache again. Pure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from offbook.client.slot import Slot
from offbook.model.content import is_binary_path, is_result, text_of, tool_calls
from offbook.model.turn import PreparedTurn
from offbook.model.types import Block, Content, Message

APART = "\n\n"


def placed(messages: Sequence[Message], turn: PreparedTurn) -> list[Message]:
    """The conversation with `turn.memory` as the assistant's own words at its start, after the instructions, and
    `turn.recall` at the end of the user's newest message. A section that is empty adds nothing.

    For one request only: what is added is not part of the conversation, and belongs into no log.
    """
    return _with_memory(_with_recall(list(messages), turn.recall), turn.memory)


class TurnKey(NamedTuple):
    """What a turn is about: the same as long as the model is at work on it with its tools."""

    prompt: str
    message_id: str | None
    generation: int
    """Of the context: another one has another memory."""


def held(turn: PreparedTurn | None, asked: TurnKey, last: tuple[TurnKey, PreparedTurn] | None) -> PreparedTurn | None:
    """The turn, with the memory of the one before where it came without, or did not come: a prompt that lacks its first
    section is read anew from there on, and the next one is again."""
    if last is None or last[0].generation != asked.generation or (turn is not None and turn.memory):
        return turn
    if turn is None:
        tokens = msgspec.structs.replace(last[1].tokens, recall=0)
        return msgspec.structs.replace(last[1], recall="", tokens=tokens, entries=[], parts=[])
    tokens = msgspec.structs.replace(turn.tokens, memory=last[1].tokens.memory)
    return msgspec.structs.replace(turn, memory=last[1].memory, tokens=tokens)


def turn_key_of(messages: Sequence[Message], prompt: str | None, generation: int) -> TurnKey | None:
    """What the user said last, where they said anything; `prompt` is the host's word for it."""
    spoken = (message for message in reversed(messages) if message.role == "user" and text_of(message.content).strip())
    newest = next(spoken, None)
    if prompt is None and newest is None:
        return None
    text = text_of(newest.content) if prompt is None and newest is not None else prompt
    return TurnKey(text or "", newest.id if newest else None, generation)


def _with_memory(messages: list[Message], memory: str) -> list[Message]:
    if not memory.strip():
        return messages
    start = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    return [*messages[:start], Message(role="assistant", content=memory), *messages[start:]]


def _with_recall(messages: list[Message], recall: str) -> list[Message]:
    if not recall.strip():
        return messages
    at = _asked_at(messages)
    if at is None:
        return [*messages, Message(role="user", content=recall)]
    asked = messages[at]
    ending = msgspec.structs.replace(asked, content=_ending_with(asked.content, recall))
    return [*messages[:at], ending, *messages[at + 1 :]]


def _asked_at(messages: Sequence[Message]) -> int | None:
    """Where the message stands that the model is about to answer, or is at work on with its tools. None where the
    last word is the assistant's."""
    last = next((message for message in reversed(messages) if message.role != "system"), None)
    if last is not None and last.role == "assistant" and not tool_calls(last):
        return None
    return next((at for at in range(len(messages) - 1, -1, -1) if _is_said_by_user(messages[at])), None)


def _is_said_by_user(message: Message) -> bool:
    """Some dialects bring the results of tools in the user's name."""
    content = message.content
    has_results_only = isinstance(content, list) and bool(content) and all(map(is_result, content))
    return message.role == "user" and not has_results_only


def _ending_with(content: Content, recall: str) -> Content:
    if isinstance(content, str) and not is_binary_path(content, ()):
        return f"{content}{APART}{recall}" if content.strip() else recall
    # With words behind it an image that is given as a string would be taken for words itself.
    blocks = [_text(content)] if isinstance(content, str) else content
    return [*blocks, _text(recall)]


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


# ── A session's messages in the shapes that the APIs of models take ──


class SessionShapes(ABC):
    _slot: Slot

    @abstractmethod
    async def messages(self) -> list[Message]: ...

    async def openai_messages(self) -> list[dict[str, Any]]:
        """`messages()`, as the `messages` of a request to OpenAI's API."""
        await self.messages()
        return self.as_openai()

    async def anthropic_request(self) -> dict[str, Any]:
        """`messages()`, as the `system` and the `messages` of a request to Anthropic's."""
        await self.messages()
        return self.as_anthropic()

    def as_openai(self) -> list[dict[str, Any]]:
        """Slot A as the last `messages()` left it, and what was added since. Nothing is swapped here."""
        from offbook.context.provider_shapes import to_openai

        return to_openai(self._slot.messages)

    def as_anthropic(self) -> dict[str, Any]:
        """As `as_openai`, for Anthropic's API."""
        from offbook.context.provider_shapes import to_anthropic

        return to_anthropic(self._slot.messages)
