"""What speaks for each candidate: how near it is, which words it shares, and the same of its setting.

Everything here is arithmetic over arrays, a candidate a row. A candidate's setting is the message before and after
it, and the episode (what was said in one go) that it belongs to. So that a score means the same whether there are
fifty messages or a million, it is measured against a sample of all messages: in how many standard deviations it
lies above what any message would have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offbook.search.index.rows import DENIAL, MEMORY_QUESTION, NO_ROW, QUESTION, USER, Rows
from offbook.search.index.vectors import Passages, VectorIndex

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TERM_SATURATION = 1.2
LENGTH_SHARE = 0.75
"""k1 and b of BM25, as everybody sets them."""
DAY_MICROS = 86_400_000_000
MOST_BY_WORDS = 3.0
"""Standard deviations of nearness that words alone can vouch for."""
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
class QueryFeatures:
    """What is looked for, as numbers."""

    words: NDArray[np.uint32]
    idf: Floats
    """How rare each word is among all messages."""
    vector: NDArray[np.float32] | None
    speakers: frozenset[int]
    roles: frozenset[int]
    """Whose words are asked for: by the names hosts give, and by those the sides call each other."""
    at_micros: int


@dataclass(frozen=True)
class Evidence:
    """`rows` are the candidates; `features[name]` is what each of them has of it."""

    rows: Ints
    features: dict[str, Floats]
    similarity: NDArray[np.float32]
    """Plain cosine to the nearest passage: what `minScore` means."""
    has_vector: NDArray[np.bool_]
    usual_similarity: float = 0.0
    """Of any message: where the model knows a language little, all of it is alike."""


def gather(
    rows: Rows, vectors: VectorIndex | None, asked: QueryFeatures, candidates: Ints, members: Ints, ordinary: Setting
) -> Evidence:
    """Evidence for the candidates. `members` are the rows of the episodes that count as wholes; `ordinary` is what
    any message has."""
    setting = Setting(rows, vectors, candidates, members)
    usual = ordinary.measured(asked, None)
    average = usual.average
    found = setting.measured(asked, average)
    features = {name: np.zeros(len(candidates)) for name in FEATURES}
    for name, values in found.alone.items():
        features[name] = _standardised(values, usual.alone[name])
    if found.has_vector.any():
        # What was said a moment ago has no vector yet: its words speak for its meaning.
        fresh = ~found.has_vector
        features["meaning"][fresh] = np.minimum(features["words"][fresh], MOST_BY_WORDS)
    for kind in ("words", "meaning"):
        for side, values in ((name, found.beside[name, kind]) for name in ("previous", "next") if kind in found.alone):
            scaled = _standardised(values, usual.alone[kind])
            features[f"{side}_{kind}"] = np.where(np.isnan(values), 0.0, scaled)
    features |= _facts(rows.view()[candidates], asked)
    return Evidence(
        rows=candidates,
        features=features,
        similarity=found.similarity,
        has_vector=found.has_vector,
        usual_similarity=float(usual.alone["meaning"].mean()) if len(usual.alone.get("meaning", ())) else 0.0,
    )


@dataclass(frozen=True)
class Measured:
    """Of each row of interest: its own measures, and those of the messages beside it (NaN where there is none)."""

    alone: dict[str, Floats]
    beside: dict[tuple[str, str], Floats]
    similarity: NDArray[np.float32]
    has_vector: NDArray[np.bool_]
    average: tuple[float, float]
    """Words of a message, and of an episode."""


class Setting:
    """Rows of interest with their neighbours and episodes, ready to be measured against any query."""

    def __init__(self, rows: Rows, vectors: VectorIndex | None, of_interest: Ints, members: Ints) -> None:
        view = rows.view()
        count = len(view)
        previous = view["previous"][of_interest].astype(np.int64)
        following = rows.next_of(of_interest, count)
        everyone = np.unique(
            np.concatenate([of_interest, members, previous[previous != NO_ROW], following[following != NO_ROW]])
        )
        self._here, self._before, self._after = (_at(everyone, some) for some in (of_interest, previous, following))
        self._by_episode = np.argsort(view["episode"][everyone], kind="stable")
        _, self._episode_starts, in_order = np.unique(
            view["episode"][everyone][self._by_episode], return_index=True, return_inverse=True
        )
        self._episode_of = np.empty(len(everyone), np.int64)
        self._episode_of[self._by_episode] = in_order
        # What only speaks about memory says nothing about what it stands beside (D7).
        self._speaks = (view["flags"][everyone] & (DENIAL | MEMORY_QUESTION)) == 0
        self._words = SaidWords(rows, everyone)
        self._chars = np.log1p(view["chars"][of_interest].astype(np.float64))
        self._passages = vectors.passages_of(everyone) if vectors is not None else None

    def measured(self, asked: QueryFeatures, average: tuple[float, float] | None) -> Measured:
        """`average` lengths are taken from these rows where none are given."""
        alone = {"length": self._chars}
        beside: dict[tuple[str, str], Floats] = {}
        average = average or self._average()
        self._measure_words(asked, average, alone, beside)
        similarity, has_vector = np.zeros(len(self._here), np.float32), np.zeros(len(self._here), bool)
        if self._passages is not None and asked.vector is not None:
            similarity, has_vector = self._measure_meaning(self._passages, asked.vector, alone, beside)
        return Measured(alone, beside, similarity, has_vector, average)

    def _average(self) -> tuple[float, float]:
        lengths = self._words.lengths
        of_episodes = self._episode_sums(lengths)
        return max(float(lengths[self._here].mean()), 1.0), max(float(of_episodes.mean()), 1.0)

    def _measure_words(
        self,
        asked: QueryFeatures,
        average: tuple[float, float],
        alone: dict[str, Floats],
        beside: dict[tuple[str, str], Floats],
    ) -> None:
        frequency, lengths = self._words.counts(asked.words), self._words.lengths
        each = _bm25(frequency, lengths, asked.idf, average[0])
        alone["words"] = each[self._here]
        alone["window_words"] = _bm25(self._window(frequency), self._window(lengths), asked.idf, 3 * average[0])
        of_episodes = _bm25(self._episode_sums(frequency), self._episode_sums(lengths), asked.idf, average[1])
        alone["episode_words"] = of_episodes[self._episode_of[self._here]]
        self._look_beside("words", each, beside)

    def _measure_meaning(
        self,
        passages: Passages,
        query: NDArray[np.float32],
        alone: dict[str, Floats],
        beside: dict[tuple[str, str], Floats],
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        nearest, mean = passages.similarity(query)
        has_vector = passages.has
        if has_vector.any():
            # A message that is not embedded yet is neither near nor far.
            nearest[~has_vector], mean[~has_vector] = nearest[has_vector].mean(), mean[has_vector].mean()
        episode = self._episode_of[self._here]
        alone["meaning"] = nearest[self._here].astype(np.float64)
        ones = np.ones(len(mean), np.float32)
        alone["window_meaning"] = self._window(mean) / self._window(ones)
        alone["episode_meaning"] = (self._episode_sums(mean) / np.maximum(self._episode_sums(ones), 1))[episode]
        best = np.maximum.reduceat(np.where(self._speaks, nearest, -1.0)[self._by_episode], self._episode_starts)
        alone["episode_best"] = best[episode]
        self._look_beside("meaning", nearest, beside)
        return nearest[self._here], has_vector[self._here]

    def _window(self, values: NDArray[Any]) -> NDArray[Any]:
        """Of each row of interest and the messages beside it, together."""
        total = values[self._here].copy()
        for neighbours in (self._before, self._after):
            beside = values[neighbours]
            beside[self._is_silent(neighbours)] = 0
            total += beside
        return total

    def _is_silent(self, neighbours: Ints) -> NDArray[np.bool_]:
        """Where there is no neighbour, or one that says nothing."""
        silent: NDArray[np.bool_] = (neighbours == NO_ROW) | ~self._speaks[neighbours]
        return silent

    def _episode_sums(self, values: NDArray[Any]) -> NDArray[Any]:
        heard = values * (self._speaks if values.ndim == 1 else self._speaks[:, None])
        sums: NDArray[Any] = np.add.reduceat(heard[self._by_episode], self._episode_starts, axis=0)
        return sums

    def _look_beside(self, kind: str, values: NDArray[Any], beside: dict[tuple[str, str], Floats]) -> None:
        for side, neighbours in (("previous", self._before), ("next", self._after)):
            beside[side, kind] = np.where(self._is_silent(neighbours), np.nan, values[neighbours])


class SaidWords:
    """The words of some rows, side by side, so that counting is one comparison for each word looked for."""

    def __init__(self, rows: Rows, chosen: Ints) -> None:
        view = rows.view()
        counts = view["words"][chosen].astype(np.int64)
        self.lengths = counts.astype(np.float64)
        self._filled = np.flatnonzero(counts)
        counts = counts[self._filled]
        self._starts = np.cumsum(counts) - counts
        at = np.repeat(view["words_at"][chosen[self._filled]] - self._starts, counts) + np.arange(counts.sum())
        self._said = rows.words()[at]

    def counts(self, words: NDArray[np.uint32]) -> Floats:
        """How often each row says each word."""
        table = np.zeros((len(self.lengths), len(words)))
        if len(self._filled):
            for column, word in enumerate(words):
                hits = np.flatnonzero(self._said == word)
                owners = np.searchsorted(self._starts, hits, "right") - 1
                table[self._filled, column] = np.bincount(owners, minlength=len(self._filled))
        return table


def _at(everyone: Ints, rows: Ints) -> Ints:
    return np.where(rows == NO_ROW, NO_ROW, np.searchsorted(everyone, np.maximum(rows, 0)))


def _facts(chosen: NDArray[Any], asked: QueryFeatures) -> dict[str, Floats]:
    age_days = np.maximum(asked.at_micros - chosen["ts"], 0) / DAY_MICROS
    return {
        "speaker": (
            np.isin(chosen["speaker"], list(asked.speakers)) | np.isin(chosen["role"], list(asked.roles))
        ).astype(np.float64),
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
    found: Ints = (SaidWords(rows, chosen).counts(words) > 0).sum(axis=0)
    return found


def term_scores(rows: Rows, chosen: Ints, words: NDArray[np.uint32], idf: Floats) -> Floats:
    """BM25 of the chosen rows among themselves."""
    said = SaidWords(rows, chosen)
    average = max(float(said.lengths.mean()), 1.0) if len(chosen) else 1.0
    return _bm25(said.counts(words), said.lengths, idf, average)


def _bm25(frequency: Floats, lengths: Floats, idf: Floats, average: float) -> Floats:
    norm = TERM_SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * lengths / average)
    found: Floats = np.vecdot(frequency * (TERM_SATURATION + 1) / (frequency + norm[:, None] + 1e-9), idf)
    return found


def _standardised(values: Floats, sample: Floats) -> Floats:
    if not len(sample):
        return np.zeros(len(values))
    deviation = float(sample.std())
    found: Floats = (values - sample.mean()) / (deviation if deviation > 1e-9 else 1.0)
    return found
