"""Which messages are looked at closely: those that share rare words, those that mean the same, and their episodes.

With a few hundred messages all of them are. Above that each retriever names its best, the episodes these lie in
come with them (what opened an episode may share no word with the query), and an even sample of all messages says
what is ordinary. The work on a query is bounded, however long the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offbook.retrieval.evidence import count_in_rows, rarity, term_counts, term_scores
from offbook.retrieval.index.agent_index import AgentIndex
from offbook.retrieval.index.rows import word_numbers
from offbook.retrieval.index.vectors import VectorIndex
from offbook.retrieval.words import query_terms

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ALL_UP_TO = 600
TEXT_HITS = 120
MEANING_HITS = 240
"""Passages; several may be of one message."""
EPISODES = 48
MOST_CANDIDATES = 900
SAMPLE = 256
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
class Found:
    """What the retrievers found, best first."""

    by_text: Ints
    by_meaning: Ints


@dataclass(frozen=True)
class Pool:
    candidates: Ints
    sample: Ints


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
    committed = index.text.search(words.terms, TEXT_HITS, session=session, before_row=count)
    tail = _tail(index, count)
    if session is not None:
        tail = tail[index.rows.view()["session"][tail] == session]
    scores = term_scores(index.rows, tail, words.numbers, words.idf)
    newest = tail[np.argsort(-scores, kind="stable")][: int((scores > 0).sum())][:TEXT_HITS]
    found = np.concatenate([newest, committed])
    return found if is_open is None else found[is_open[found]]


def by_meaning(
    vectors: VectorIndex | None, query: NDArray[np.float32] | None, is_open: NDArray[np.bool_] | None
) -> Ints:
    if vectors is None or query is None or not vectors.count:
        return np.empty(0, np.int64)
    rows, _ = vectors.nearest(query, MEANING_HITS, is_open)
    return rows


def pool(index: AgentIndex, found: Found, count: int, is_open: NDArray[np.bool_] | None) -> Pool:
    """`is_open` says which rows may be shown (a session, a moment); None is all."""
    if is_open is not None:
        everyone = np.flatnonzero(is_open[:count])
    elif count <= ALL_UP_TO:
        everyone = np.arange(count)
    else:
        everyone = None
    total = count if everyone is None else len(everyone)
    if everyone is not None and total <= ALL_UP_TO:
        return Pool(candidates=everyone, sample=everyone)
    steps = np.linspace(0, total - 1, SAMPLE).astype(np.int64)
    sample = steps if everyone is None else everyone[steps]
    hits = _in_turns(found.by_meaning, found.by_text)
    hits = hits[hits < count]
    episodes = _first_distinct(index.rows.view()["episode"][hits].astype(np.int64), EPISODES)
    members = index.rows.episode_rows(episodes, count)
    if is_open is not None:
        members = members[is_open[members]]
    return Pool(candidates=np.unique(np.concatenate([hits, members])[:MOST_CANDIDATES]), sample=np.unique(sample))


def matching_rows(index: AgentIndex, keyword: str | None, session: int | None, limit: int) -> Ints:
    """The rows that hold all words of the keyword, or all rows of the session; the newest, oldest first."""
    count = index.rows.count
    if keyword is None:
        rows = np.arange(count) if session is None else index.rows.session_rows(session, count)
        return rows[-limit:]
    wanted = query_terms(keyword)
    words = known_words(index, wanted, count)
    if len(words.terms) < len(wanted):
        return np.empty(0, np.int64)
    committed = index.text.search(words.terms, 10 * limit, session=session, before_row=count, needs_all=True)
    tail = _tail(index, count)
    if session is not None:
        tail = tail[index.rows.view()["session"][tail] == session]
    held = term_counts(index.rows, tail, words.numbers).all(axis=1) if len(tail) else np.empty(0, bool)
    return np.sort(np.concatenate([committed, tail[held]]))[-limit:]


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
