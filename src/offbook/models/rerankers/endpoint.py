"""A second reader behind an endpoint that ranks: `POST …/rerank`, as Cohere, Jina, vLLM, llama.cpp and Text Embeddings
Inference speak it. The last of them has names of its own for the same, and is asked in those once it says so."""

from __future__ import annotations

import math

import msgspec

from offbook.model.errors import ModelUnavailable
from offbook.model.summary import Usage
from offbook.models.embedder import readable
from offbook.models.endpoint import Endpoint, Remote, checked_key, refusal
from offbook.models.protocols import Passage, Reading, ReadingTask
from offbook.models.summarizers.remote import fingerprint_of
from offbook.models.tokens import estimate_tokens

PATH = "/rerank"
LONGEST_QUERY_CHARS = 2_000
"""A cross-encoder reads about 512 tokens of question and passage together; the rest would be cut there."""


class _Ranked(msgspec.Struct, frozen=True):
    index: int
    relevance_score: float | None = None
    score: float | None = None

    @property
    def relevance(self) -> float | None:
        return self.relevance_score if self.relevance_score is not None else self.score


class _Answer(msgspec.Struct, frozen=True):
    results: list[_Ranked]


class EndpointReader:
    """A `Reranker`."""

    def __init__(
        self, endpoint: str, model: str, *, key: str | None, key_variable: str, timeout_seconds: float
    ) -> None:
        self._remote = Remote(
            Endpoint(
                endpoint,
                PATH,
                key=key,
                timeout_seconds=timeout_seconds,
                setting="rerank.endpoint",
                key_setting="rerank.apiKeyVariable",
            ),
            called="the rerank endpoint",
            model=model,
            settings=("rerank.endpoint", "rerank.reader"),
            key_variable=checked_key(key, key_variable, "rerank.apiKeyVariable"),
        )
        self._model = model
        self.name = f"endpoint:{model}"
        self.fingerprint = fingerprint_of("rerank", self._remote.url, model)
        self._takes_texts = False
        """Text Embeddings Inference calls the documents so, and knows one model only."""

    def expected(self, task: ReadingTask) -> Usage:
        """By most models the question is read with each passage anew."""
        read = sum(estimate_tokens(described(one)) for one in task.passages)
        return Usage(input_tokens=read + estimate_tokens(task.query[:LONGEST_QUERY_CHARS]) * len(task.passages))

    def read(self, task: ReadingTask) -> Reading:
        body = self._ask(task)
        try:
            if body.lstrip()[:1] == b"[":
                found = msgspec.json.decode(body, type=list[_Ranked])
            else:
                found = msgspec.json.decode(body, type=_Answer).results
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._remote.wrong(f"what is not an answer of {PATH} ({error})", "rerank") from None
        return Reading(order=self._order(found, len(task.passages)), usage=self.expected(task))

    def close(self) -> None:
        self._remote.close()

    def _ask(self, task: ReadingTask) -> bytes:
        query = _sent(task.query[:LONGEST_QUERY_CHARS])
        texts = [_sent(described(one)) for one in task.passages]
        while True:
            documents = {"texts": texts} if self._takes_texts else {"documents": texts, "top_n": len(texts)}
            question = {"model": self._model, "query": query, **documents}
            try:
                return self._remote.ask(msgspec.json.encode(question), attempts=1, first_pause_seconds=0.0).body
            except ModelUnavailable as error:
                refused = refusal(error)
                if self._takes_texts or refused is None or not refused.names("texts"):
                    raise
                self._takes_texts = True

    def _order(self, found: list[_Ranked], passages: int) -> list[int]:
        """What is no passage is dropped; of what comes twice the better counts."""
        scores: dict[int, float] = {}
        for one in found:
            score = one.relevance
            if score is None or not math.isfinite(score):
                raise self._remote.wrong("results without a score", "rerank")
            if 0 <= one.index < passages:
                scores[one.index] = max(score, scores.get(one.index, score))
        if not scores:
            raise self._remote.wrong("no result for any passage", "rerank")
        return sorted(scores, key=lambda index: (-scores[index], index))


def described(passage: Passage) -> str:
    """Who said it when is part of what was asked for, more often than not."""
    return f"{passage.speaker} ({passage.ts:%d %B %Y}): {passage.text}"


def _sent(text: str) -> str:
    return readable(text).replace("\0", " ")
