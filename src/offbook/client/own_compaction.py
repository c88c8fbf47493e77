"""What an agent does without its provider: its own compaction, or the newest messages."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence

from offbook.client.messages import message_of
from offbook.client.outgoing import MessageLike
from offbook.client.slot import orphan_in, tokens_of
from offbook.compression.pairs import leading_orphans, with_orphans_quoted
from offbook.content import text_of
from offbook.errors import WrongShape
from offbook.frames import is_framed
from offbook.types import Message

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
    return message.role == "system" or is_framed(text_of(message.content))


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
