"""What others do, over the same turns with the same model: plain retrievers, and the rules of the two plugins.

Each is given every help it may have: the questions are asked at the time of the last visible turn, nothing has
expired or been pruned, and what a rule would cut off after its first few is ranked on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.data import A_TURN, Conversation
from benchmarks.quality.metric import MOST, Returned
from offbook.models.protocols import Embedder
from offbook.search.query import read_query
from offbook.search.results import passages
from offbook.search.substance import is_boilerplate, is_denial, is_memory_question
from offbook.search.words import terms

Floats = NDArray[np.float64]
Answer = list[Returned]

K1, B = 1.2, 0.75
DENSE_SHARE = 0.7
LEAST_COSINE, LEAST_CHUNKS, NEWEST_CHUNKS, LEAST_NEWEST_CHARS, SAME_COSINE = 0.4, 2, 2, 20, 0.9
"""Seed document 000: minScore, the minimum, the fallback, dedup."""
HALF_LIFE_DAYS, RECENCY_WEIGHT, FETCHED = 14.0, 0.15, 30
"""Seed document 004."""


class Corpus:
    """A conversation as a list of turns; a question sees the first `seen` of them."""

    def __init__(self, conversation: Conversation, embedder: Embedder) -> None:
        self._embedder = embedder
        self.turns = [turn for session in conversation.sessions for turn in session.turns]
        self.days = np.array(
            [
                (began + number * A_TURN).timestamp() / 86_400
                for session, began in zip(conversation.sessions, conversation.began(), strict=True)
                for number in range(len(session.turns))
            ]
        )
        self._sessions = np.repeat(
            np.arange(len(conversation.sessions)), [len(session.turns) for session in conversation.sessions]
        )
        self._postings: dict[str, list[tuple[int, int]]] = {}
        lengths = []
        for number, turn in enumerate(self.turns):
            words = terms(turn.text)
            lengths.append(len(words))
            for word, times in Counter(words).items():
                self._postings.setdefault(word, []).append((number, times))
        self._lengths = np.array(lengths, float)

    @cached_property
    def passages(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The vectors of all passages, and where each turn's begin."""
        parts = [passages(turn.text) for turn in self.turns]
        starts = np.cumsum([0, *map(len, parts)])
        return self._embedder.embed([part for some in parts for part in some]), starts

    @cached_property
    def exchanges(self) -> tuple[NDArray[np.float32], list[tuple[int, ...]]]:
        """A turn and its answer, by turns of a session, embedded as one text."""
        pairs: list[tuple[int, ...]] = []
        number = 0
        while number < len(self.turns):
            has_answer = (
                number + 1 < len(self.turns)
                and self._sessions[number] == self._sessions[number + 1]
                and self.turns[number].speaker != self.turns[number + 1].speaker
            )
            pairs.append((number, number + 1) if has_answer else (number,))
            number += len(pairs[-1])
        texts = ["\n".join(self.turns[number].text for number in pair) for pair in pairs]
        return self._embedder.embed(texts), pairs

    def asked(self, question: str) -> NDArray[np.float32]:
        return self._embedder.embed([question])[0]

    def cosine(self, question: str, seen: int) -> Floats:
        """Of each turn: of its nearest passage."""
        vectors, starts = self.passages
        return np.maximum.reduceat(vectors[: starts[seen]] @ self.asked(question), starts[:seen]).astype(float)

    def bm25(self, question: str, seen: int) -> Floats:
        scores = np.zeros(seen)
        lengths = self._lengths[:seen]
        relative = 1 - B + B * lengths / max(lengths.mean(), 1)
        for word in dict.fromkeys(terms(question)):
            postings = self._postings.get(word, [])
            postings = postings[: bisect_left(postings, (seen, 0))]
            if postings:
                rows, times = np.array(postings).T
                rarity = np.log(1 + (seen - len(rows) + 0.5) / (len(rows) + 0.5))
                scores[rows] += rarity * times * (K1 + 1) / (times + K1 * relative[rows])
        return scores

    def answer(self, numbers: NDArray[np.int64] | list[int]) -> Answer:
        return [Returned((self.turns[at].id,), len(self.turns[at].text)) for at in numbers]


def bm25(corpus: Corpus, question: str, seen: int) -> Answer:
    return corpus.answer(_best(corpus.bm25(question, seen)))


def dense(corpus: Corpus, question: str, seen: int) -> Answer:
    return corpus.answer(_best(corpus.cosine(question, seen)))


def hybrid(corpus: Corpus, question: str, seen: int) -> Answer:
    scores = DENSE_SHARE * _standard(corpus.cosine(question, seen))
    return corpus.answer(_best(scores + (1 - DENSE_SHARE) * _standard(corpus.bm25(question, seen))))


def swap(corpus: Corpus, question: str, seen: int) -> Answer:
    """Cosine of the expanded query, at least 0.4, each thing once; two at the least; the newest where nothing fits.

    The document does not say how the query is expanded: here by its words of content.
    """
    cosine = corpus.cosine(f"{question} {read_query(question).focus}", seen)
    vectors, starts = corpus.passages
    chosen: list[int] = []
    for at in np.argsort(-cosine, kind="stable"):
        if len(chosen) == MOST or (cosine[at] < LEAST_COSINE and len(chosen) >= LEAST_CHUNKS):
            break
        if all(float(vectors[starts[at]] @ vectors[starts[other]]) <= SAME_COSINE for other in chosen):
            chosen.append(int(at))
    if cosine.max() < LEAST_COSINE:
        newest = [at for at in range(seen - 1, -1, -1) if len(corpus.turns[at].text) >= LEAST_NEWEST_CHARS]
        chosen = newest[:NEWEST_CHUNKS]
    return corpus.answer(chosen)


def continuity(corpus: Corpus, question: str, seen: int) -> Answer:
    """The 30 nearest exchanges, by distance less what is new; without denials, questions about memory, greetings."""
    vectors, pairs = corpus.exchanges
    whole = [at for at, pair in enumerate(pairs) if pair[-1] < seen]
    cosine = vectors[whole] @ corpus.asked(question)
    distance = np.sqrt(np.maximum(0.0, 2 - 2 * cosine))
    fetched = np.argsort(distance, kind="stable")[:FETCHED]
    age = corpus.days[seen - 1] - corpus.days[[pairs[whole[at]][0] for at in fetched]]
    composite = distance[fetched] - np.exp(-age / HALF_LIFE_DAYS) * RECENCY_WEIGHT
    ranked = [pairs[whole[at]] for at in fetched[np.argsort(composite, kind="stable")]]
    return [
        Returned(
            tuple(corpus.turns[at].id for at in pair),
            sum(len(corpus.turns[at].text) for at in pair),
        )
        for pair in ranked
        if not _is_noise([corpus.turns[at].text for at in pair])
    ]


Rule = Callable[[Corpus, str, int], Answer]
RULES: dict[str, Rule] = {
    "BM25 alone": bm25,
    "dense alone": dense,
    "swap rule (000)": swap,
    "continuity rule (004)": continuity,
    "0.7/0.3 hybrid": hybrid,
}


def _is_noise(texts: list[str]) -> bool:
    asked, answered = texts[0], texts[-1]
    return is_memory_question(asked) or is_boilerplate(asked) or (len(texts) > 1 and is_denial(answered, "assistant"))


def _best(scores: Floats) -> NDArray[np.int64]:
    return np.argsort(-scores, kind="stable")[:MOST]


def _standard(scores: Floats) -> Floats:
    return (scores - scores.mean()) / max(float(scores.std()), 1e-9)
