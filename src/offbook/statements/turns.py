"""A message of a session in its place, with its sentences: read once, for every view."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from offbook.ingest.noise import SHORTEST_SUBSTANCE_CHARS
from offbook.model.content import own_text
from offbook.model.statement import ReadSentence
from offbook.model.types import Message
from offbook.models.sentence_kinds import read_sentences
from offbook.search.spotting import unwrapped

READ_BEGINNING_CHARS, READ_END_CHARS = 6_000, 2_000
"""Of a longer message these are read: the middle of it is pasted or printed."""


class Turn(NamedTuple):
    seq: int
    at: datetime
    message: Message
    is_noise: bool
    said: str = ""
    """Its own text, without what tools were given and gave; "" where somebody else speaks through it."""
    sentences: Sequence[ReadSentence] = ()

    @property
    def is_users(self) -> bool:
        """Said by the user in person, and not noise."""
        return self.message.role == "user" and bool(self.said)

    @property
    def is_agents(self) -> bool:
        return self.message.role == "assistant" and bool(self.said)


def read_turn(seq: int, at: datetime, message: Message, *, is_noise: bool) -> Turn:
    said = _said(message, is_noise=is_noise)
    if not said:
        return Turn(seq, at, message, is_noise)
    return Turn(seq, at, message, is_noise, said, read_sentences(_ends(said), is_user=message.role == "user"))


def text_read(message: Message, *, is_noise: bool) -> str:
    """The text that a turn's sentences have their places in."""
    return _ends(_said(message, is_noise=is_noise))


def _said(message: Message, *, is_noise: bool) -> str:
    is_own = message.role in ("user", "assistant") and _is_own(message)
    said = unwrapped(own_text(message.content)).strip() if is_own else ""
    # Too short to be worth recalling, "stop" still means something here.
    return "" if is_noise and message.role == "user" and len(said) >= SHORTEST_SUBSTANCE_CHARS else said


def _is_own(message: Message) -> bool:
    return message.origin in (None, "", message.role) and message.tool_call_id is None


def _ends(text: str) -> str:
    if len(text) <= READ_BEGINNING_CHARS + READ_END_CHARS:
        return text
    return f"{text[:READ_BEGINNING_CHARS]}\n{text[-READ_END_CHARS:]}"
