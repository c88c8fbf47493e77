"""Whether what a provider gave may take the place of what an agent runs on. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from offbook.client.slot import Slot
from offbook.compression.pairs import has_orphan
from offbook.compression.validity import faults
from offbook.content import tool_calls
from offbook.types import Message


def orphan_in(messages: Sequence[Message]) -> int | None:
    """Where a tool's result stands whose call does not come before it: most providers of models refuse that."""
    called: set[str] = set()
    for index, message in enumerate(messages):
        if has_orphan(message, called):
            return index
        called.update(tool_calls(message))
    return None


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
    index = orphan_in(after.messages)
    if index is not None:
        return f"a tool's result would lose its call, at message {index}"
    return None


def not_smaller(before: Slot, after: Slot) -> str | None:
    if after.tokens < before.tokens:
        return None
    return f"it has {after.tokens:,} tokens, no fewer than the {before.tokens:,} in use"
