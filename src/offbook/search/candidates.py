"""Which messages are looked at closely: those that share rare words, those that mean the same, and their episodes.

With a few hundred messages all of them are. Above that each retriever names its best, the episodes these lie in
come with them (what opened an episode may share no word with the query), and an even sample of all messages says
what is ordinary. The work on a query is bounded, however long the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from offbook.search.evidence import SaidWords, Setting, count_in_rows, rarity, term_scores
from offbook.search.index.agent_index import AgentIndex
from offbook.search.index.rows import DENIAL, MEMORY_QUESTION, SYSTEM, word_numbers
from offbook.search.index.vectors import VectorIndex
from offbook.search.words import keyword_terms

if TYPE_CHECKING:
    pass


Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ALL_UP_TO = 600
TEXT_HITS = 60
MOST_TEXT_HITS = 30_000
"""Looked through where a moment or a bound leaves out most of the best."""
MEANING_HITS = 120
"""Passages; several may be of one message."""
EPISODES = 24
MOST_CANDIDATES = 320
SAMPLE = 128
MOST_WORDS = 32
"""Of a query. A long message is searched for by its rarest words."""
MOST_TAIL = 20_000
"""Rows not yet in the text index that are looked through. More have come only while a large import is indexed."""


@dataclass(frozen=True)
class Words:
    """The words of a query that any message holds, and how rare each is."""

    terms: list[str]
    numbers: NDArray[np.uint32]
    idf: Floats


@dataclass(frozen=True)
class RetrieverHits:
    """What the retrievers found, best first."""

    by_text: Ints
    by_meaning: Ints


@dataclass(frozen=True)
class Pool:
    candidates: Ints
    members: Ints
    """All rows of the episodes that count as wholes."""


def known_words(index: AgentIndex, terms: Sequence[str], count: int) -> Words:
    """The rarest of the terms that occur at all."""
    numbers = word_numbers(terms)
    tail = _tail(index, count)
    held = index.text.frequencies(terms) + count_in_rows(index.rows, tail, numbers)
    idf = rarity(held, max(count, 1))
    known = np.flatnonzero(held > 0)
    rarest = np.sort(known[np.argsort(-idf[known], kind="stable")[:MOST_WORDS]])
    return Words(terms=[terms[at] for at in rarest], numbers=numbers[rarest], idf=idf[rarest])


def by_text(
    index: AgentIndex, words: Words, count: int, *, session: int | None, is_open: NDArray[np.bool_] | None
) -> Ints:
    """Rows that hold the words, best first; those not yet committed are looked through here."""
    # First those that are not: what is committed meanwhile is found twice, and would not be found at all else.
    tail = _tail(index, count)
    committed = _open_hits(index, words, count, session, is_open)
    if session is not None:
        tail = tail[index.rows.view()["session"][tail] == session]
    scores = term_scores(index.rows, tail, words.numbers, words.idf)
    newest = tail[np.argsort(-scores, kind="stable")][: int((scores > 0).sum())][:TEXT_HITS]
    newest = newest if is_open is None else newest[is_open[newest]]
    return np.concatenate([newest, committed[~np.isin(committed, newest)]])


def _open_hits(
    index: AgentIndex, words: Words, count: int, session: int | None, is_open: NDArray[np.bool_] | None
) -> Ints:
    """The best committed rows that may be shown: asked for more where too many of the best may not."""
    limit = TEXT_HITS
    while True:
        hits = index.text.search(words.terms, limit, session=session)
        found = hits[hits < count]
        found = found if is_open is None else found[is_open[found]]
        if len(found) >= TEXT_HITS or len(hits) < limit or limit >= MOST_TEXT_HITS:
            return found[:TEXT_HITS]
        limit *= 8


def by_meaning(
    vectors: VectorIndex | None, query: NDArray[np.float32] | None, count: int, is_open: NDArray[np.bool_] | None
) -> Ints:
    """Rows of the nearest passages, nearest first. Some may have come after the others were counted."""
    if vectors is None or query is None or not vectors.count:
        return np.empty(0, np.int64)
    rows, _ = vectors.nearest(query, MEANING_HITS, is_open)
    return rows[rows < count]


def pool(index: AgentIndex, found: RetrieverHits, count: int, is_open: NDArray[np.bool_] | None) -> Pool:
    """`is_open` says which rows may be shown (a session, a moment); None is all."""
    if is_open is not None or count <= ALL_UP_TO:
        everyone = np.arange(count) if is_open is None else np.flatnonzero(is_open)
        if len(everyone) <= ALL_UP_TO:
            return Pool(candidates=everyone, members=everyone)
    hits = _in_turns(found.by_meaning, found.by_text)
    episodes = _first_distinct(index.rows.view()["episode"][hits].astype(np.int64), EPISODES)
    members = index.rows.episode_rows(episodes, count)
    if is_open is not None:
        members = members[is_open[members]]
    return Pool(candidates=np.unique(np.concatenate([hits, members])[:MOST_CANDIDATES]), members=members)


def ordinary(index: AgentIndex, vectors: VectorIndex | None, count: int) -> Setting:
    """An even sample of all messages, which says what any message has. It is kept as long as it is one: until a
    sixteenth more has come."""
    key = (
        vectors,
        count.bit_length(),
        count * 16 >> count.bit_length(),
        (vectors.count if vectors else 0) * 16 // count,
    )
    kept: tuple[object, Setting] | None = index.kept_sample
    if kept is None or kept[0] != key:
        sample = np.unique(np.linspace(0, count - 1, min(count, SAMPLE)).astype(np.int64))
        view = index.rows.view()[sample]
        speaks = ((view["flags"] & (DENIAL | MEMORY_QUESTION)) == 0) & (view["role"] != SYSTEM)
        sample = sample[speaks] if speaks.any() else sample
        episodes = np.unique(index.rows.view()["episode"][sample]).astype(np.int64)
        kept = key, Setting(index.rows, vectors, sample, index.rows.episode_rows(episodes, count))
        index.kept_sample = kept
    return kept[1]


def matching_rows(index: AgentIndex, keyword: str | None, session: int | None, limit: int) -> Ints:
    """The rows that hold all words of the keyword, or all rows of the session; the newest, oldest first. What the host
    told the agent is not among them."""
    count = index.rows.count
    if keyword is None:
        rows = np.arange(count) if session is None else index.rows.session_rows(session, count)
        return _without_system(index, rows)[-limit:]
    wanted = keyword_terms(keyword)
    words = known_words(index, wanted, count)
    if not wanted or len(words.terms) < min(len(wanted), MOST_WORDS):
        return np.empty(0, np.int64)
    tail = _tail(index, count)
    committed = index.text.search(words.terms, 10 * limit, session=session, before_row=count, needs_all=True)
    if session is not None:
        tail = tail[index.rows.view()["session"][tail] == session]
    held = (SaidWords(index.rows, tail).counts(words.numbers) > 0).all(axis=1)
    return _without_system(index, np.unique(np.concatenate([committed, tail[held]])))[-limit:]


def _without_system(index: AgentIndex, rows: Ints) -> Ints:
    said: Ints = rows[index.rows.view()["role"][rows] != SYSTEM]
    return said


def _tail(index: AgentIndex, count: int) -> Ints:
    return np.arange(max(min(index.text.committed, count), count - MOST_TAIL), count)


def _in_turns(one: Ints, other: Ints) -> Ints:
    """The best of each in turns, each row once."""
    longer = max(len(one), len(other))
    mixed = np.full(2 * longer, -1, np.int64)
    mixed[: 2 * len(one) : 2] = one
    mixed[1 : 2 * len(other) : 2] = other
    return _first_distinct(mixed[mixed >= 0], len(mixed))


def _first_distinct(values: Ints, most: int) -> Ints:
    _, first = np.unique(values, return_index=True)
    return values[np.sort(first)][:most]


# ── What was acknowledged and is not in the index yet, found by its words ──
