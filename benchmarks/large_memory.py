"""A memory of any size, made at once: the messages really in the store, the index built beside it, vectors made up.

Through the log and the model a million messages would take hours. So the words are English in their usual shares,
the vectors lie about those of real texts, and the index is built by its own methods from what the store holds.
"""

from __future__ import annotations

import asyncio
import gzip
import random
import shutil
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
import uvloop
from numpy.typing import NDArray

from benchmarks.run import Run
from offbook.ingest.entries import prepare
from offbook.log.sql.row_ids import place_of
from offbook.log.sqlite.store import SqliteStore
from offbook.model.home import Home
from offbook.model.memory_entry import StoredVector
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding
from offbook.model.types import AuditDraft, Entry, Message, Role, Scope, SessionGaps, now
from offbook.models.embedder import open_embedder
from offbook.models.minilm import DIMENSIONS, fingerprint
from offbook.projections.embedders import ACTIVE
from offbook.projections.indexes import folder_name
from offbook.search.index.agent_index import FORMAT, AgentIndex
from offbook.search.index.rows import IndexedMessage
from offbook.search.index.vectors import quantised
from offbook.search.results import LONGEST_WHOLE_CHARS, passages
from offbook.search.words import terms

AGENT = "main"
SESSION_MESSAGES = 20
USUAL_WORDS, SPREAD = 16, 0.7
"""Of a message: the middle and the spread of a log-normal."""
LONG_SHARE, LONG_WORDS = 0.06, (150, 400)
"""Answers of several passages."""
SENTENCE_WORDS = 12
FIRST_WORD = "the"
"""With which the model's words begin, roughly the most frequent first."""
CENTRES = 256
NEARNESS = 0.6
"""Cosine of a vector to the real one it lies about."""
SESSIONS_AT_ONCE = 100
VECTORS_AT_ONCE = 20_000
COMMITTED_AT_ONCE = 100_000
FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)


class Text(NamedTuple):
    text: str
    terms: list[str]


class Language:
    """Random texts of English words."""

    def __init__(self, seed: int) -> None:
        lines = gzip.decompress(files("offbook.models.data").joinpath("wordpiece-uncased.txt.gz").read_bytes())
        pieces = lines.decode().splitlines()
        known = pieces[pieces.index(FIRST_WORD) :]
        self._words = [word for word in known if word.isascii() and word.isalpha() and len(word) > 1]
        self._terms = [terms(word) if len(terms(word)) == 1 else [] for word in self._words]
        shares = 1 / np.arange(2.7, len(self._words) + 2.7)
        self._shares = np.cumsum(shares / shares.sum())
        self._chance = np.random.default_rng(seed)

    def texts(self, count: int) -> list[Text]:
        lengths = np.maximum(3, self._chance.lognormal(np.log(USUAL_WORDS), SPREAD, count).astype(int))
        is_long = self._chance.random(count) < LONG_SHARE
        lengths[is_long] = self._chance.integers(*LONG_WORDS, int(is_long.sum()))
        drawn = np.searchsorted(self._shares, self._chance.random(int(lengths.sum()))).tolist()
        ends = np.cumsum(lengths).tolist()
        return [self._text(drawn[end - length : end]) for end, length in zip(ends, lengths.tolist(), strict=True)]

    def rare_words(self, count: int) -> list[str]:
        """Words of content, as a question has them."""
        return [self._words[at] for at in self._chance.integers(150, 8_000, count)]

    def _text(self, numbers: list[int]) -> Text:
        words = [self._words[number] for number in numbers]
        sentences = [" ".join(words[at : at + SENTENCE_WORDS]) for at in range(0, len(words), SENTENCE_WORDS)]
        return Text(". ".join(sentences) + ".", [term for number in numbers for term in self._terms[number]])


def queries(count: int) -> list[str]:
    """Half of them questions, half ordinary messages."""
    language = Language(7)
    questions = [f"What did we decide about the {' '.join(language.rare_words(2 + n % 4))}?" for n in range(count // 2)]
    messages = [text.text[:300] for text in language.texts(count - len(questions))]
    mixed = questions + messages
    random.Random(7).shuffle(mixed)
    return mixed


def memory_of(run: Run, entries: int) -> Path:
    """The data folder of one agent with so many entries, all embedded. Kept between runs."""
    home = run.cache / f"memory-{entries}-{FORMAT}"
    whole = home / "whole"
    if not whole.exists() or not _is_as_made(Home(home), entries):
        shutil.rmtree(home, ignore_errors=True)
        Home(home).prepare()
        uvloop.run(_make(run, Home(home), entries))
        whole.touch()
    return home


def _is_as_made(home: Home, entries: int) -> bool:
    """An index of another version is made anew from the log when it is opened, without our vectors."""
    index = AgentIndex(home.indexes / folder_name(AGENT), silence=Settings().session.interrupted_gap)
    try:
        vectors = index.vectors(fingerprint())
        return index.rows.count == entries and vectors is not None and vectors.embedded == entries
    finally:
        index.close()


def log_of(run: Run, messages: int) -> Path:
    """The data folder of an agent with so many messages of which nothing is indexed yet. Kept between runs."""
    home = run.cache / f"log-{messages}"
    whole = home / "whole"
    if not whole.exists():
        shutil.rmtree(home, ignore_errors=True)
        Home(home).prepare()
        uvloop.run(_make_log(run, Home(home), messages))
        whole.touch()
    return home


async def forget_model(home: Path) -> None:
    """So that a memory opened without a model does not go on with the one that served before."""
    store = SqliteStore(Home(home).database)
    try:
        await store.set_agent_note(AGENT, ACTIVE, None, None)
    finally:
        await store.close()


async def _make_log(run: Run, home: Home, messages: int) -> None:
    store = SqliteStore(home.database)
    try:
        await _fill(run, store, None, messages)
    finally:
        await store.close()


async def _make(run: Run, home: Home, entries: int) -> None:
    silence = Settings().session.interrupted_gap
    index = AgentIndex(home.indexes / folder_name(AGENT), silence=silence)
    store = SqliteStore(home.database)
    try:
        parts = await _fill(run, store, index, entries)
        head = await store.audit_head(AGENT)
        index.take((), head.seq)
        _fill_vectors(run, index, parts, home.models)
        index.commit(head.hash)
    finally:
        await store.close()
        index.close()


async def _fill(run: Run, store: SqliteStore, index: AgentIndex | None, entries: int) -> NDArray[np.int64]:
    """Messages and rows; returns how many passages each row has."""
    language = Language(entries)
    sessions = -(-entries // SESSION_MESSAGES)
    parts: list[int] = []
    for first in range(0, sessions, SESSIONS_AT_ONCE):
        numbers = range(first, min(first + SESSIONS_AT_ONCE, sessions))
        said: list[IndexedMessage] = []
        appends = []
        for number in numbers:
            texts = language.texts(min(SESSION_MESSAGES, entries - number * SESSION_MESSAGES))
            parts += [len(passages(one.text)) if len(one.text) > LONGEST_WHOLE_CHARS else 1 for one in texts]
            spoken = [_message(number, turn, one.text) for turn, one in enumerate(texts)]
            appends.append(_append(store, number, spoken))
            # Sessions are numbered from 1 in the order of their first message.
            paired = zip(spoken, texts, strict=True)
            said += [_said(number + 1, seq, message, one) for seq, (message, one) in enumerate(paired, 1)]
        await asyncio.gather(*appends)
        if index is not None:
            index.take(said, 0)
            if index.rows.count // COMMITTED_AT_ONCE != (index.rows.count - len(said)) // COMMITTED_AT_ONCE:
                index.commit("")
        run.progress(f"making a memory of {entries:,} entries", len(parts), entries)
    last = sessions - 1
    assert await store.session_number(AGENT, f"session-{last}") == last + 1
    return np.array(parts, np.int64)


def _message(session: int, turn: int, text: str) -> Message:
    role: Role = "assistant" if turn % 2 else "user"
    at = FIRST_DAY + timedelta(minutes=10 * session + turn / 4)
    return Message(id=f"{session}-{turn}", role=role, content=text, ts=at)


def _said(session: int, seq: int, message: Message, one: Text) -> IndexedMessage:
    assert message.ts is not None
    return IndexedMessage(
        place=place_of(session, seq),
        session=session,
        ts=message.ts,
        arrived=now(),
        role=message.role,
        speaker="",
        text=one.text,
        terms=one.terms,
        flags=0,
    )


async def _append(store: SqliteStore, session: int, messages: list[Message]) -> None:
    scope = Scope(agent_id=AGENT, session_id=f"session-{session}")
    event = AuditDraft(verb="onMessage", actor="local", session_id=scope.session_id)
    await store.append(scope, [_entry(message) for message in messages], event, gaps=SessionGaps())


def _entry(message: Message) -> Entry:
    return prepare(message, frame_key=b"", externalise_over=65_536, redacts=False).entry


def _fill_vectors(run: Run, index: AgentIndex, parts: NDArray[np.int64], models: Path) -> None:
    chance = np.random.default_rng(1)
    centres = open_embedder(Embedding(), models).embed([text.text for text in Language(2).texts(CENTRES)])
    places = index.rows.view()["place"]
    for first in range(0, len(parts), VECTORS_AT_ONCE):
        counts = parts[first : first + VECTORS_AT_ONCE]
        owners = np.repeat(places[first : first + VECTORS_AT_ONCE], counts).tolist()
        part_numbers = np.concatenate([np.arange(count) for count in counts]).tolist()
        noise = chance.standard_normal((len(owners), DIMENSIONS), np.float32)
        noise *= np.sqrt(1 - NEARNESS**2) / np.linalg.norm(noise, axis=1, keepdims=True)
        vectors = NEARNESS * centres[chance.integers(0, CENTRES, len(owners))] + noise
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        data = quantised(vectors.astype(np.float32))
        stored = [
            StoredVector(number=0, place=place, part=part, data=row.tobytes())
            for place, part, row in zip(owners, part_numbers, data, strict=True)
        ]
        index.take_vectors(fingerprint(), DIMENSIONS, stored)
        run.progress("making vectors", first + len(counts), len(parts))
