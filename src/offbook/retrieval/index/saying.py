"""A message of the log as it is indexed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from offbook.content import render, without_stand_ins
from offbook.entries import PlacedMessage
from offbook.retrieval.addressing import labelled_speaker, names_called
from offbook.retrieval.index.rows import BOILERPLATE, DENIAL, MEMORY_QUESTION, QUESTION, Rows, Said
from offbook.retrieval.substance import is_boilerplate, is_denial, is_memory_question, is_question
from offbook.retrieval.words import MAX_TERM_CHARS, distinct_terms, indexed_terms
from offbook.types import Message

INDEXED_CHARS = 200_000
"""Of one message, read word for word. Beyond that it is a file: each of its words counts once."""


class KnownFlags:
    """Those of rows that were, by the places of their messages: a message's do not change, and to read it for them
    takes longer than to read its words. A copy, since the files of those rows go."""

    def __init__(self, rows: Rows) -> None:
        view = rows.view()
        order = np.argsort(view["place"], kind="stable")
        self._places, self._flags = view["place"][order], view["flags"][order]

    def of(self, places: Sequence[int]) -> list[int | None]:
        """None where there was no row."""
        wanted = np.asarray(places, np.int64)
        if not len(self._places):
            return [None] * len(wanted)
        at = np.minimum(np.searchsorted(self._places, wanted), len(self._places) - 1)
        is_there = self._places[at] == wanted
        return [flags if known else None for flags, known in zip(self._flags[at].tolist(), is_there, strict=True)]


def said_by(placed: PlacedMessage, whole: Message | None = None, *, flags: int | None = None) -> Said:
    """`whole`: the message with its large parts back in their places. `flags`: where they are known."""
    logged = placed.logged
    message = whole or logged.message
    everything = without_stand_ins(render(message))
    text, terms = everything[:INDEXED_CHARS], indexed_terms(everything[:INDEXED_CHARS])
    label, said = labelled_speaker(text) if message.role != "system" else ("", text)
    return Said(
        place=placed.place,
        session=placed.session,
        ts=logged.message.ts or logged.received_at,
        arrived=logged.received_at,
        role=message.role,
        speaker=message.name or "",
        text=text,
        terms=terms,
        further=_further(everything, terms),
        flags=_flags(said, message.role) if flags is None else flags,
        calls=names_called(said),
        label=label,
    )


def is_indexed(placed: PlacedMessage) -> bool:
    """Noise stays in the log. What the host tells the agent is found by who looks for it, and comes to nobody's mind
    by itself (see `Ask.only_said`). What our own integrations note for themselves is for nobody."""
    return placed.logged.entry.noise is None and not _is_own_note(placed.logged.message)


def _is_own_note(message: Message) -> bool:
    """`kept: memories/ada` of a LangGraph store, "the message before this one was taken back" of an Agents session."""
    if message.role != "system" or not message.meta:
        return False
    marks = [message.meta.get(name) for name in ("langgraph", "openaiAgents")]
    return any(isinstance(mark, dict) and ("what" in mark or "withdrawn" in mark) for mark in marks)


def _further(everything: str, known: Sequence[str]) -> list[str]:
    if len(everything) <= INDEXED_CHARS:
        return []
    # The word that stands across the bound is read whole.
    rest, held = distinct_terms(everything[INDEXED_CHARS - MAX_TERM_CHARS :]), set(known)
    return [term for term in rest if term not in held]


def _flags(text: str, role: str) -> int:
    return (
        QUESTION * is_question(text)
        | DENIAL * is_denial(text, role)
        | MEMORY_QUESTION * is_memory_question(text)
        | BOILERPLATE * is_boilerplate(text)
    )
