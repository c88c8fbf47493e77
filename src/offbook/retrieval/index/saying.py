"""A message of the log as it is indexed."""

from __future__ import annotations

from offbook.content import render, without_stand_ins
from offbook.entries import PlacedMessage
from offbook.retrieval.addressing import labelled_speaker, names_called
from offbook.retrieval.index.rows import BOILERPLATE, DENIAL, MEMORY_QUESTION, QUESTION, Said
from offbook.retrieval.substance import is_boilerplate, is_denial, is_memory_question, is_question
from offbook.retrieval.words import indexed_terms
from offbook.types import Message

INDEXED_CHARS = 200_000
"""Of one message. Beyond that it is a file, and nobody recalls a file by its middle."""


def said_by(placed: PlacedMessage, whole: Message | None = None) -> Said:
    """`whole`: the message with its large parts back in their places."""
    logged = placed.logged
    message = whole or logged.message
    text = without_stand_ins(render(message))[:INDEXED_CHARS]
    label, said = labelled_speaker(text)
    return Said(
        place=placed.place,
        session=placed.session,
        ts=logged.message.ts or logged.received_at,
        arrived=logged.received_at,
        role=message.role,
        speaker=message.name or "",
        text=text,
        terms=indexed_terms(text),
        flags=_flags(said, message.role),
        calls=names_called(said),
        label=label,
    )


def is_indexed(placed: PlacedMessage) -> bool:
    """Noise stays in the log; what the host tells every agent is nobody's memory."""
    return placed.logged.entry.noise is None and placed.logged.message.role != "system"


def _flags(text: str, role: str) -> int:
    return (
        QUESTION * is_question(text)
        | DENIAL * is_denial(text, role)
        | MEMORY_QUESTION * is_memory_question(text)
        | BOILERPLATE * is_boilerplate(text)
    )
