"""A swapped context in the place of the old part of a request. Pure.

What the provider hands over is a memory of the old part, then the newest messages word for word. Of those the client
has its own, with all their fields; so only what comes before them takes the place of the client's, up to the very
message it reaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from offbook.client.model_shapes import faults, to_openai
from offbook.client.slot import orphan_in, tokens_of
from offbook.contrib.proxy.fingerprints import ID_PREFIX, Known
from offbook.contrib.proxy.requests import Item, made_item
from offbook.model.content import is_binary_path, render, replace, strings, tool_calls, tool_results
from offbook.model.types import Message

COUNTED_CHARS = 100_000
"""Of one message; the rest is taken to be alike. Counting takes 60 ms a megabyte, and every stream waits meanwhile."""
BINARY_CHARS = 4_000
"""Of an image or a file, what of it is looked at: it is counted as the line that tells of it, however long it is."""


class Base(NamedTuple):
    """Stands for all of a conversation up to the message `last_id`."""

    items: tuple[Item, ...]
    last_id: str
    generation: int


class NotUsed(Exception):
    """A context that may not take the place of what it stands for."""


def base_of(
    answer: Sequence[Message],
    path: Sequence[Known],
    shown: Mapping[str, Item],
    *,
    newest_id: str | None,
    generation: int,
) -> Base:
    """`shown` is what the client's request holds, by id. `newest_id` is the newest that the provider had for certain.

    Raises NotUsed, with the reason.
    """
    positions = {known.id: position for position, known in enumerate(path)}
    # What the client took back is in the log, but not in its conversation.
    kept = [one for one in answer if one.id is None or not one.id.startswith(ID_PREFIX) or one.id in positions]
    reach = max((positions[one.id] for one in kept if one.id in positions), default=None)
    if reach is None or (newest_id in positions and reach < positions[newest_id or ""]):
        raise NotUsed("the newest message is not in it")
    cut = _cut(kept, path, shown, reach)
    first_shown = reach + 1 - (len(kept) - cut)
    while cut < len(kept) and _belongs_to_before(path, shown, first_shown):
        cut, first_shown = cut + 1, first_shown + 1
    if cut == 0 or first_shown < 1:
        raise NotUsed("it stands for nothing")
    standing = kept[:cut]
    refused = faults(standing)
    if refused:
        raise NotUsed(f"a model would refuse it: {refused[0]}")
    items = tuple(made_item(message) for message in to_openai(standing))
    return Base(items, path[first_shown - 1].id, generation)


def _cut(kept: Sequence[Message], path: Sequence[Known], shown: Mapping[str, Item], reach: int) -> int:
    """From where on the client's own messages are the same, word for word and without a gap."""
    cut, position = len(kept), reach
    while cut and position >= 0:
        message, item = kept[cut - 1], shown.get(path[position].id)
        if message.id != path[position].id or item is None or render(message) != render(item.message):
            break
        cut, position = cut - 1, position - 1
    return cut


def _belongs_to_before(path: Sequence[Known], shown: Mapping[str, Item], position: int) -> bool:
    """A result stays with its call; and what the model said in one go stays one, with the thoughts that it came of."""
    role = shown[path[position].id].message.role
    before = shown.get(path[position - 1].id) if position else None
    return role == "tool" or (before is not None and role == before.message.role == "assistant")


def with_base(items: Sequence[Item], base: Base | None) -> list[Item] | None:
    """The request with the base in the place of what it stands for; instructions stay. None where it does not fit:
    the conversation parted before its end, or the client has left that out already."""
    if base is None:
        return None
    at = next((n for n, item in enumerate(items) if item.place is not None and item.place.id == base.last_id), None)
    if at is None:
        return None
    # Without what stood before them: thoughts alone, without what came of them, are refused.
    old = (item for item in items[: at + 1] if item.place is None)
    staying = [item._replace(before=()) if item.before else item for item in old]
    whole = [*staying, *base.items, *items[at + 1 :]]
    return None if orphan_in([item.message for item in whole]) is not None else whole


def has_open_calls(items: Sequence[Item]) -> bool:
    called = {call_id for item in items for call_id in tool_calls(item.message)}
    return bool(called.difference(result for item in items for result in tool_results(item.message)))


def size_tokens(items: Sequence[Item], known: dict[str, int]) -> int:
    """`known` has the sizes found before: a history is long, and comes again with every request."""
    total = 0
    for item in items:
        # With the length: the same answer may come with its thoughts, and later without them.
        key = item.fingerprint if isinstance(item.sent, dict) else f"{item.fingerprint}/{len(memoryview(item.sent))}"
        if key not in known:
            known[key] = _tokens(item.message)
        total += known[key]
    return total


def _tokens(message: Message) -> int:
    message = _without_binaries(message)
    text = render(message)
    if len(text) <= COUNTED_CHARS:
        return tokens_of([message])
    counted = msgspec.structs.replace(message, content=text[:COUNTED_CHARS])
    return int(tokens_of([counted]) * len(text) / COUNTED_CHARS)


def _without_binaries(message: Message) -> Message:
    """With the beginning of what is binary: all of it is read for nothing, at 20 ms a megabyte."""
    if isinstance(message.content, str):
        return message
    long = ((path, text) for path, text in strings(message.content) if len(text) > COUNTED_CHARS)
    cut = {path: text[:BINARY_CHARS] for path, text in long}
    begun = replace(message.content, cut) if cut else message.content
    binaries = {path: text for path, text in cut.items() if is_binary_path(begun, path)}
    return msgspec.structs.replace(message, content=replace(message.content, binaries)) if binaries else message


def shown_by_id(items: Sequence[Item]) -> dict[str, Item]:
    return {item.place.id: item for item in items if item.place is not None}
