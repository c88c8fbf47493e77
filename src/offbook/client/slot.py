"""Slot A, what an agent runs on: something that stands for the past, then every message since. Pure."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from offbook.client.messages import message_of
from offbook.client.recorder import MessageLike
from offbook.context.replayable import QUOTED_RESULT, has_orphan, leading_orphans, quoted, with_orphans_quoted
from offbook.context.validity import faults
from offbook.ingest.frames import is_framed
from offbook.model.content import is_binary_path, is_result, render, text_of, tool_calls, tool_results
from offbook.model.errors import WrongShape
from offbook.model.turn import PreparedTurn
from offbook.model.types import Block, Content, Message
from offbook.models.tokens import estimate_tokens

MESSAGE_TOKENS = 4
"""What a provider counts for a message besides its text."""
AWAITED_FOR_MESSAGES = 20
"""A call that so many messages came after without a result is not waited for: its tool was cancelled, or crashed."""


def tokens_of(messages: Iterable[Message]) -> int:
    return sum(estimate_tokens(render(message)) + MESSAGE_TOKENS for message in messages)


def orphan_in(messages: Sequence[Message]) -> int | None:
    """Where a tool's result stands whose call does not come before it: most providers of models refuse that."""
    called: set[str] = set()
    for index, message in enumerate(messages):
        if has_orphan(message, called):
            return index
        called.update(tool_calls(message))
    return None


class Added(NamedTuple):
    """A message of the agent's, by its place among all that were added to the session."""

    position: int
    id: str
    message: Message
    tokens: int
    is_unrecorded: bool = False
    """The provider refused it for good: nothing of the provider's will ever stand for it."""


class Slot(NamedTuple):
    """`base` stands for the past up to the message at `covered`, whose id is `last_id`; `added` is what came since.

    Whatever takes the place of the base says how far it reaches, and what came since stays: so a message is never
    lost and never there twice, whenever it arrived and however late the answer was.
    """

    base: tuple[Message, ...] = ()
    added: tuple[Added, ...] = ()
    covered: int = 0
    last_id: str | None = None
    total: int = 0
    """How many were added in all."""
    tokens: int = 0
    called: frozenset[str] = frozenset()
    """Every call in it."""
    has_orphans: bool = False
    """Whether there is a result in it whose call is not."""

    @property
    def whole(self) -> list[Message]:
        return self.up_to(self.total)

    @property
    def messages(self) -> list[Message]:
        """What a model can be given: a result whose call is no longer there is quoted."""
        return with_orphans_quoted(self.whole) if self.has_orphans else self.whole

    def up_to(self, position: int) -> list[Message]:
        return [*self.base, *(one.message for one in self.added if one.position <= position)]

    @property
    def settled(self) -> int:
        """The position up to which no tool is still at work: its result will need its call."""
        waiting: dict[str, list[int]] = {}  # a model may use an id again: a result answers the latest call of it
        for one in self.added[-AWAITED_FOR_MESSAGES:]:
            for call_id in tool_calls(one.message):
                waiting.setdefault(call_id, []).append(one.position)
            for call_id in tool_results(one.message):
                if waiting.get(call_id):
                    waiting[call_id].pop()
        return min((position - 1 for positions in waiting.values() for position in positions), default=self.total)

    @property
    def has_open_calls(self) -> bool:
        return self.settled < self.total

    def with_added(self, message: Message, message_id: str) -> Slot:
        one = Added(self.total + 1, message_id, message, tokens_of([message]))
        calls = tool_calls(message)
        return self._replace(
            added=(*self.added, one),
            total=one.position,
            tokens=self.tokens + one.tokens,
            called=self.called.union(calls) if calls else self.called,
            has_orphans=self.has_orphans or has_orphan(message, set(self.called)),
        )

    def reach_of(self, messages: Sequence[Message]) -> int | None:
        """How far something of the provider's reaches: to the newest message of ours that it shows, where it shows one.

        Messages arrive in order, so one that is there tells that those before it are.
        """
        positions = {one.id: one.position for one in self.added}
        if self.last_id is not None:
            positions[self.last_id] = self.covered
        return max((positions[message.id] for message in messages if message.id in positions), default=None)

    def without(self, ids: Collection[str], unrecorded: Collection[str] = ()) -> Slot:
        """Less what a context from before stands for, in whatever order the host added it again."""
        added = [one for one in self.added if one.id not in ids]
        if len(added) == len(self.added):
            return self
        newer = (one.position for one in added if not one.is_unrecorded and one.id not in unrecorded)
        slot = self._with_base(self.base, self.covered, added)
        return slot._replace(covered=next(newer, self.total + 1) - 1, last_id=None)

    def replaced(self, base: Sequence[Message], covered: int, unrecorded: Collection[str] = ()) -> Slot:
        """`base` in the place of everything up to `covered`, except of what the provider never took."""
        kept = [
            one if one.position > covered else one._replace(is_unrecorded=True, message=_as_text(one.message))
            for one in self.added
            if one.position > covered or one.is_unrecorded or one.id in unrecorded
        ]
        return self._with_base(base, covered, kept)

    def compacted(self, base: Sequence[Message], covered: int) -> Slot:
        """The agent's own: it has seen all of them, and what it leaves out it leaves out."""
        return self._with_base(base, covered, [one for one in self.added if one.position > covered])

    def _with_base(self, base: Sequence[Message], covered: int, added: Sequence[Added]) -> Slot:
        last_id = next((one.id for one in self.added if one.position == covered), self.last_id)
        if last_id is None:  # nothing of ours yet: the newest of a context that was there before
            last_id = next((message.id for message in reversed(base) if message.id is not None), None)
        whole = [*base, *(one.message for one in added)]
        return self._replace(
            base=tuple(base),
            added=tuple(added),
            covered=covered,
            last_id=last_id,
            tokens=tokens_of(base) + sum(one.tokens for one in added),
            called=frozenset(call_id for message in whole for call_id in tool_calls(message)),
            has_orphans=orphan_in(whole) is not None,
        )


def _as_text(message: Message) -> Message:
    """A call or a result whose other half is shown elsewhere, and as text there too."""
    if not tool_calls(message) and not tool_results(message) and message.role != "tool":
        return message
    if message.role != "assistant":
        return quoted(message)
    return Message(role="assistant", content=render(message), id=message.id, ts=message.ts)


# ── Whether what a provider gave may take the place of what an agent runs on. Pure ──


def wrong_with(answer: Sequence[Message], reach: int | None, arrived: int, before: Slot, after: Slot) -> str | None:
    """Why not to use an answer, which would make `after` of `before`; None where it is sound.

    `arrived` is how many of our messages the provider had for certain when it was asked.
    """
    if not answer:
        return "it is empty"
    if reach is None or reach < max(arrived, before.covered):
        return "the newest message is not in it"
    refused = faults(answer)
    if refused:
        return f"a model would refuse it: {refused[0]}"
    if after.has_orphans and not before.has_orphans:
        return "a tool's result would lose its call"
    return None


def not_smaller(before: Slot, after: Slot) -> str | None:
    if after.tokens < before.tokens:
        return None
    return f"it has {after.tokens:,} tokens, no fewer than the {before.tokens:,} in use"


# ── What an agent does without its provider: its own compaction, or the newest messages ──

OwnCompaction = Callable[[list[Message]], Sequence[MessageLike] | Awaitable[Sequence[MessageLike]]]
"""Takes what is in use and gives fewer, waiting or not."""


def newest_messages(messages: Sequence[Message], keep: int, max_tokens: int) -> list[Message]:
    """The newest `keep` that fit, after the instructions and the memory that a context begins with.

    The very newest is there whether it fits or not, and no result is there without its call.
    """
    head = 0
    while head < len(messages) and _is_standing(messages[head]):
        head += 1
    room = max_tokens - tokens_of(messages[:head])
    tail = list(messages[max(head, len(messages) - max(keep, 1)) :])
    while len(tail) > 1 and tokens_of(tail) > room:
        del tail[0]
    whole = tail[leading_orphans(tail) :]
    return [*messages[:head], *with_orphans_quoted(whole or tail)]


def _is_standing(message: Message) -> bool:
    text = text_of(message.content)
    return message.role == "system" or (is_framed(text) and QUOTED_RESULT not in text)


async def compacted(compact: OwnCompaction, messages: list[Message]) -> list[Message]:
    """Raises WrongShape where what comes back cannot be used, and whatever `compact` raises."""
    given = compact(list(messages))
    if inspect.isawaitable(given):
        given = await given
    fewer = [message_of(one) for one in given]
    if not fewer:
        raise WrongShape("the agent's own compaction left nothing")
    if orphan_in(fewer) is not None:
        raise WrongShape("the agent's own compaction parted a tool's result from its call")
    if tokens_of(fewer) >= tokens_of(messages):
        raise WrongShape("the agent's own compaction left no fewer tokens than there were")
    return fewer


# ── Where a host puts what a turn was prepared with ──
# What stays the same first, what is of this turn only last.
# So all that a model's provider has cached from the turn before, memory and history, is read from its cache again.
# Pure.


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
