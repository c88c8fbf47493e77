"""Whether what a provider gave may take the place of what an agent runs on. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from offbook.client.slot import Slot
from offbook.compression.validity import faults
from offbook.types import Message


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
