"""Slot A, what an agent runs on: something that stands for the past, then every message since. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from offbook.client.messages import message_of
from offbook.client.recorder import MessageLike
from offbook.context.replayable import QUOTED_RESULT, has_orphan, leading_orphans, quoted, with_orphans_quoted
from offbook.context.validity import faults
from offbook.ingest.frames import is_framed
from offbook.model.content import render, text_of, tool_calls, tool_results
from offbook.model.errors import WrongShape
from offbook.model.types import Message
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
