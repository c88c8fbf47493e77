"""Which messages hold these words: tantivy, over the words as `words.terms` reads them.

Committed about once a second; what came since is counted from the rows' own words (`counting`), so that a message
is found as soon as it has a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tantivy
from numpy.typing import NDArray

from offbook.model.content import render, without_stand_ins
from offbook.model.memory_entry import PlacedMessage
from offbook.model.private_files import make_folders
from offbook.model.types import Message
from offbook.search.addressing import labelled_speaker, names_called
from offbook.search.index.events import Event, told_events
from offbook.search.index.records import damage_told
from offbook.search.index.rows import BOILERPLATE, DENIAL, MEMORY_QUESTION, QUESTION, IndexedMessage, Rows
from offbook.search.substance import asks, is_boilerplate, is_denial, is_memory_question
from offbook.search.words import MAX_TERM_CHARS, distinct_terms, indexed_terms

WRITER_BYTES = 32_000_000
"""Of memory for words not yet in a segment. tantivy asks for 15 MB at the least."""
_TOKENIZER = "terms"


class TextIndex:
    """Rows are added in order. One thread writes; any may search what is committed."""

    @damage_told()
    def __init__(self, folder: Path, *, rows: int) -> None:
        """Opens the index of the first `rows` rows; ValueError where it holds fewer."""
        make_folders(folder)
        self._schema = _schema()
        self._index = tantivy.Index(self._schema, path=str(folder))
        self._index.register_tokenizer(_TOKENIZER, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
        self._writer: Any = None
        self.committed = rows
        self._index.reload()
        self._searcher = self._index.searcher()
        if self._searcher.num_docs < rows:
            raise ValueError(f"{folder} holds {self._searcher.num_docs} messages, not {rows}")

    # ── writing ──

    @damage_told()
    def add(self, first_row: int, said: Sequence[IndexedMessage]) -> None:
        writer = self._open_writer()
        for row, one in enumerate(said, first_row):
            document = tantivy.Document()
            document.add_unsigned("row", row)
            document.add_unsigned("session", one.session)
            document.add_text("words", " ".join((*one.terms, *one.further)))
            writer.add_document(document)

    @damage_told()
    def commit(self, rows: int) -> None:
        if self._writer is not None:
            self._writer.commit()
            self._reload()
        self.committed = rows

    @damage_told()
    def close(self) -> None:
        """What was not committed is lost, and added again from the log. Nobody writes after it, whatever went wrong."""
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                writer.rollback()
            finally:
                writer.wait_merging_threads()

    @damage_told()
    def rest(self) -> None:
        """Let go of the writer's memory and threads until there is something to write."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.wait_merging_threads()
            self._reload()

    # ── reading ──

    @damage_told(ValueError)
    def search(
        self,
        terms: Sequence[str],
        limit: int,
        *,
        session: int | None = None,
        before_row: int | None = None,
        needs_all: bool = False,
    ) -> NDArray[np.int64]:
        """The rows that say most of these words (or all of them), best first, among those committed."""
        before_row = self.committed if before_row is None else min(before_row, self.committed)
        searcher = self._searcher
        if not terms or not searcher.num_docs:
            return np.empty(0, np.int64)
        occurs = tantivy.Occur.Must if needs_all else tantivy.Occur.Should
        wanted = [(occurs, self._term("words", term, "freq")) for term in terms]
        query = tantivy.Query.boolean_query(wanted)
        if session is not None:
            only = tantivy.Query.const_score_query(self._term("session", session, "basic"), 0.0)
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, only)])
        # Without a count tantivy skips whatever cannot come among the first.
        hits = searcher.search(query, limit, count=False).hits
        rows = searcher.fast_field_values("row", [address for _, address in hits])
        found = np.array(rows, np.int64) if hits else np.empty(0, np.int64)
        return found[found < before_row]

    @damage_told(ValueError)
    def frequencies(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """How many committed messages hold each term."""
        return np.array([self._searcher.doc_freq("words", term) for term in terms], np.int64)

    # ── how ──

    def _term(self, field: str, value: Any, option: str) -> Any:
        return tantivy.Query.term_query(self._schema, field, value, option)

    def _open_writer(self) -> Any:
        if self._writer is None:
            self._writer = self._index.writer(WRITER_BYTES, 1)
            self._trim()
        return self._writer

    def _reload(self) -> None:
        self._index.reload()
        self._searcher = self._index.searcher()

    def _trim(self) -> None:
        """A crash may come between tantivy's commit and ours: what is beyond ours will be added again. Done before
        the first addition, so that an index can be opened and read where nothing can be written."""
        if self._searcher.num_docs > self.committed:
            beyond = tantivy.Query.range_query(self._schema, "row", tantivy.FieldType.Unsigned, self.committed, None)
            self._writer.delete_documents_by_query(beyond)
            self._writer.commit()
            self._reload()


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("row", stored=False, indexed=True, fast=True)
    builder.add_unsigned_field("session", stored=False, indexed=True, fast=False)
    builder.add_text_field("words", stored=False, tokenizer_name=_TOKENIZER, index_option="freq")
    return builder.build()


# ── A message of the log as it is indexed ──

INDEXED_CHARS = 200_000
"""Of one message, read word for word. Beyond that it is a file: each of its words counts once."""


class Reading(NamedTuple):
    """What was found out about a message and does not change; it takes longer than to read its words."""

    flags: int
    events: list[Event]


class KnownReadings:
    """Those of rows that were, by the places of their messages. A copy, since the files of those rows go."""

    def __init__(self, rows: Rows) -> None:
        view = rows.view()
        order = np.argsort(view["place"], kind="stable")
        self._places, self._flags = view["place"][order], view["flags"][order]
        events = rows.events.view()
        self._events: dict[int, list[Event]] = {}
        places = view["place"].tolist()
        for row, start, end in zip(*(events[name].tolist() for name in ("row", "start", "end")), strict=True):
            if row < len(places):
                self._events.setdefault(places[row], []).append((start, end))

    def of(self, places: Sequence[int]) -> list[Reading | None]:
        """None where there was no row."""
        wanted = np.asarray(places, np.int64)
        if not len(self._places):
            return [None] * len(wanted)
        at = np.minimum(np.searchsorted(self._places, wanted), len(self._places) - 1)
        is_there = self._places[at] == wanted
        return [
            Reading(flags, self._events.get(place, [])) if known else None
            for place, flags, known in zip(places, self._flags[at].tolist(), is_there, strict=True)
        ]


def said_by(placed: PlacedMessage, whole: Message | None = None, *, known: Reading | None = None) -> IndexedMessage:
    """`whole`: the message with its large parts back in their places. `known`: what was found out about it before."""
    logged = placed.logged
    message = whole or logged.message
    everything = without_stand_ins(render(message))
    text, terms = everything[:INDEXED_CHARS], indexed_terms(everything[:INDEXED_CHARS])
    label, said = labelled_speaker(text) if message.role != "system" else ("", text)
    said_at = logged.message.ts or logged.received_at
    reading = known or Reading(_flags(said, message.role), told_events(said, said_at))
    return IndexedMessage(
        place=placed.place,
        session=placed.session,
        ts=said_at,
        arrived=logged.received_at,
        role=message.role,
        speaker=message.name or "",
        text=text,
        terms=terms,
        further=_further(everything, terms),
        flags=reading.flags,
        events=reading.events,
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
        QUESTION * asks(text)
        | DENIAL * is_denial(text, role)
        | MEMORY_QUESTION * is_memory_question(text)
        | BOILERPLATE * is_boilerplate(text)
    )
