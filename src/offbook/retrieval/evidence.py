"""What speaks for each candidate: how near it is, which words it shares, and the same of its setting.

Everything here is arithmetic over arrays, a candidate a row. A candidate's setting is the message before and after
it, and the episode (what was said in one go) that it belongs to. So that a score means the same whether there are
fifty messages or a million, it is measured against a sample of all messages: in how many standard deviations it
lies above what any message would have.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offbook.retrieval.index.rows import NO_ROW, QUESTION, USER, Rows
from offbook.retrieval.index.vectors import VectorIndex

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TERM_SATURATION = 1.2
LENGTH_SHARE = 0.75
"""k1 and b of BM25, as everybody sets them."""
DAY_MICROS = 86_400_000_000
RECENCY_DAYS = 30.0
"""In which the weight of newness fades to 1/e."""

MEASURED = (
    "meaning",
    "words",
    "window_meaning",
    "window_words",
    "episode_words",
    "episode_best",
    "episode_meaning",
    "length",
)
"""What is counted in standard deviations; the rest is 0 or 1, or a share."""
FACTS = ("speaker", "user", "question", "opening", "recency")
SETTING = ("previous_meaning", "previous_words", "next_meaning", "next_words")
FEATURES = (*MEASURED, *SETTING, *FACTS)


@dataclass(frozen=True)
class Asked:
    """What is looked for, as numbers."""

    words: NDArray[np.uint32]
    idf: Floats
    """How rare each word is among all messages."""
    vector: NDArray[np.float32] | None
    speakers: frozenset[int]
    at_micros: int


@dataclass(frozen=True)
class Evidence:
    """`rows` are the candidates; `features[name]` is what each of them has of it."""

    rows: Ints
    features: dict[str, Floats]
    similarity: NDArray[np.float32]
    """Plain cosine to the nearest passage: what `minScore` means."""
    has_vector: NDArray[np.bool_]
    notes: dict[str, Any] = field(default_factory=dict)


def gather(
    rows: Rows, vectors: VectorIndex | None, asked: Asked, candidates: Ints, sample: Ints, count: int
) -> Evidence:
    """Evidence for the candidates, measured against the sample."""
    of_interest = np.unique(np.concatenate([candidates, sample]))
    surroundings = _Surroundings(rows, of_interest, count)
    at_sample = np.searchsorted(of_interest, sample)
    at_candidates = np.searchsorted(of_interest, candidates)

    measured = {"length": np.log1p(rows.view()["chars"][of_interest].astype(np.float64))}
    alone = {"words": _add_words(measured, rows, surroundings, asked, at_sample)}
    similarity, has_vector = (
        np.zeros(len(surroundings.everyone), np.float32),
        np.zeros(len(surroundings.everyone), bool),
    )
    if vectors is not None and asked.vector is not None:
        similarity, has_vector = _add_meaning(measured, vectors, surroundings, asked.vector)
        alone["meaning"] = similarity.astype(np.float64)

    features = {name: np.zeros(len(candidates)) for name in FEATURES}
    for name, values in measured.items():
        features[name] = _standardised(values, values[at_sample])[at_candidates]
    for kind, values in alone.items():
        for side, neighbours in (("previous", surroundings.before), ("next", surroundings.after)):
            scaled = _standardised(values[neighbours], measured[kind][at_sample])
            features[f"{side}_{kind}"] = np.where(neighbours != NO_ROW, scaled, 0.0)[at_candidates]
    features |= _facts(rows.view()[candidates], asked)
    own = surroundings.here[at_candidates]
    return Evidence(rows=candidates, features=features, similarity=similarity[own], has_vector=has_vector[own])


class _Surroundings:
    """The rows of interest, their neighbours and their episodes, as indexes into `everyone`."""

    def __init__(self, rows: Rows, of_interest: Ints, count: int) -> None:
        view = rows.view()[:count]
        previous = view["previous"][of_interest].astype(np.int64)
        following = rows.next_of(of_interest, count)
        members = rows.episode_rows(np.unique(view["episode"][of_interest]).astype(np.int64), count)
        self.everyone = np.unique(
            np.concatenate([of_interest, members, previous[previous != NO_ROW], following[following != NO_ROW]])
        )
        self.here, self.before, self.after = (self._index(some) for some in (of_interest, previous, following))
        episodes, self.episode_of = np.unique(view["episode"][self.everyone], return_inverse=True)
        self.episodes = len(episodes)
        self.episode_here = self.episode_of[self.here]

    def _index(self, rows: Ints) -> Ints:
        return np.where(rows == NO_ROW, NO_ROW, np.searchsorted(self.everyone, np.maximum(rows, 0)))

    def with_neighbours(self, values: NDArray[Any]) -> NDArray[Any]:
        """Of each row of interest and the messages beside it, together."""
        total = values[self.here].copy()
        for neighbours in (self.before, self.after):
            beside = values[neighbours]
            beside[neighbours == NO_ROW] = 0
            total += beside
        return total

    def by_episode(self, values: NDArray[Any]) -> NDArray[Any]:
        total = np.zeros((self.episodes, *values.shape[1:]), values.dtype)
        np.add.at(total, self.episode_of, values)
        return total


def _add_words(
    measured: dict[str, Floats], rows: Rows, surroundings: _Surroundings, asked: Asked, at_sample: Ints
) -> Floats:
    """BM25 of each message, with its neighbours, and of its episode. Returns that of everyone."""
    frequency = term_counts(rows, surroundings.everyone, asked.words)
    lengths = rows.view()["words"][surroundings.everyone].astype(np.float64)
    sampled = lengths[surroundings.here[at_sample]]
    average = max(float(sampled.mean()), 1.0) if len(sampled) else 1.0
    alone = _bm25(frequency, lengths, asked.idf, average)
    measured["words"] = alone[surroundings.here]
    measured["window_words"] = _bm25(
        surroundings.with_neighbours(frequency), surroundings.with_neighbours(lengths), asked.idf, 3 * average
    )
    episode_lengths = surroundings.by_episode(lengths)
    episode_words = _bm25(
        surroundings.by_episode(frequency), episode_lengths, asked.idf, max(float(episode_lengths.mean()), 1.0)
    )
    measured["episode_words"] = episode_words[surroundings.episode_here]
    return alone


def _add_meaning(
    measured: dict[str, Floats], vectors: VectorIndex, surroundings: _Surroundings, query: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """How near each message is, with its neighbours, and its episode. Returns that of everyone, and who has one."""
    nearest, mean, has_vector = vectors.of_rows(surroundings.everyone, query)
    if has_vector.any():
        # A message that is not embedded yet is neither near nor far.
        nearest[~has_vector] = nearest[has_vector].mean()
    best = np.full(surroundings.episodes, -1.0)
    np.maximum.at(best, surroundings.episode_of, nearest)
    measured["meaning"] = nearest[surroundings.here].astype(np.float64)
    measured["window_meaning"] = _cosine(surroundings.with_neighbours(mean), query)
    measured["episode_meaning"] = _cosine(surroundings.by_episode(mean), query)[surroundings.episode_here]
    measured["episode_best"] = best[surroundings.episode_here]
    return nearest, has_vector


def _facts(chosen: NDArray[Any], asked: Asked) -> dict[str, Floats]:
    age_days = np.maximum(asked.at_micros - chosen["ts"], 0) / DAY_MICROS
    return {
        "speaker": np.isin(chosen["speaker"], list(asked.speakers)).astype(np.float64),
        "user": (chosen["role"] == USER).astype(np.float64),
        "question": ((chosen["flags"] & QUESTION) > 0).astype(np.float64),
        "opening": (chosen["position"] == 0).astype(np.float64),
        "recency": np.exp(-age_days / RECENCY_DAYS),
    }


def rarity(frequencies: Ints, count: int) -> Floats:
    """BM25's idf."""
    held = np.minimum(frequencies, count).astype(np.float64)
    return np.log1p((count - held + 0.5) / (held + 0.5))


def count_in_rows(rows: Rows, chosen: Ints, words: NDArray[np.uint32]) -> Ints:
    """How many of the chosen rows hold each word."""
    found: Ints = (term_counts(rows, chosen, words) > 0).sum(axis=0)
    return found


def term_scores(rows: Rows, chosen: Ints, words: NDArray[np.uint32], idf: Floats) -> Floats:
    """BM25 of the chosen rows among themselves."""
    lengths = rows.view()["words"][chosen].astype(np.float64)
    return _bm25(
        term_counts(rows, chosen, words), lengths, idf, max(float(lengths.mean()), 1.0) if len(lengths) else 1.0
    )


def term_counts(rows: Rows, chosen: Ints, words: NDArray[np.uint32]) -> Floats:
    """How often each chosen row says each word."""
    view, all_words = rows.view(), rows.words()
    counts = view["words"][chosen].astype(np.int64)
    table = np.zeros((len(chosen), len(words)))
    filled = np.flatnonzero(counts)
    if not len(filled) or not len(words):
        return table
    counts = counts[filled]
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    at = np.repeat(view["words_at"][chosen[filled]] - starts, counts) + np.arange(counts.sum())
    said = all_words[at]
    for column, word in enumerate(words):
        table[filled, column] = np.add.reduceat(said == word, starts, dtype=np.int64)
    return table


def _bm25(frequency: Floats, lengths: Floats, idf: Floats, average: float) -> Floats:
    norm = TERM_SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * lengths / average)
    found: Floats = (frequency * (TERM_SATURATION + 1) / (frequency + norm[:, None] + 1e-9)) @ idf
    return found


def _cosine(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1)
    found: Floats = (vectors @ query) / np.maximum(lengths, 1e-9)
    return found


def _standardised(values: Floats, sample: Floats) -> Floats:
    if not len(sample):
        return np.zeros(len(values))
    deviation = float(sample.std())
    found: Floats = (values - sample.mean()) / (deviation if deviation > 1e-9 else 1.0)
    return found
