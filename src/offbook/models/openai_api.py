"""Any endpoint that speaks OpenAI's embeddings: Ollama, llama.cpp, vLLM, LM Studio, a company's own, OpenAI.

What it answers is checked before it is believed: a vector that belongs to another text is worse than none. The key
goes into one header and nowhere else.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from offbook.errors import ModelUnavailable
from offbook.models.endpoint import Answer, Broken, Endpoint
from offbook.models.texts import readable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TEXTS_PER_REQUEST = 64
LONGEST_TEXT_CHARS = 8_000
"""Of a longer text the beginning is embedded: the endpoints that refuse what is too long take 8,192 tokens or more."""
NOTHING = "."
"""Sent for a text of nothing but blanks, which many endpoints refuse."""

ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 20.0
QUERY_SECONDS = 5.0
"""For a query, whose vector nobody waits for much longer than a second; and it is asked for once."""


class Vector(msgspec.Struct, frozen=True):
    index: int
    embedding: list[float]


class Vectors(msgspec.Struct, frozen=True):
    data: list[Vector]


class OpenAIEmbedder:
    """An `Embedder`."""

    def __init__(
        self,
        endpoint: str,
        model: str,
        *,
        dimensions: int,
        key: str | None = None,
        key_variable: str = "OPENAI_API_KEY",
        timeout_seconds: float = 60.0,
        first_pause_seconds: float = FIRST_PAUSE_SECONDS,
    ) -> None:
        self._key_variable = _shown_name(key_variable)
        if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
            raise ModelUnavailable(f"the variable {self._key_variable} holds no key, but blanks or foreign letters")
        self._endpoint = Endpoint(endpoint, key=key, timeout_seconds=timeout_seconds)
        self.name = model
        self.dimensions = dimensions
        self.fingerprint = _fingerprint(self._endpoint.url, model, dimensions)
        self._first_pause_seconds = first_pause_seconds
        self._closed = threading.Event()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for first in range(0, len(texts), TEXTS_PER_REQUEST):
            batch = texts[first : first + TEXTS_PER_REQUEST]
            vectors[first : first + len(batch)] = self._embed_batch(batch)
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """In seconds or not at all."""
        return self._embed_batch([text], attempts=1, timeout_seconds=QUERY_SECONDS)

    def close(self) -> None:
        """Whoever waits for an answer or for another attempt stops waiting."""
        self._closed.set()
        self._endpoint.close()

    def _embed_batch(
        self, texts: Sequence[str], *, attempts: int = ATTEMPTS, timeout_seconds: float | None = None
    ) -> NDArray[np.float32]:
        sent = [readable(text[:LONGEST_TEXT_CHARS]).replace("\0", " ") for text in texts]
        body = msgspec.json.encode({"model": self.name, "input": [text if text.strip() else NOTHING for text in sent]})
        return self._checked(self._ask(body, attempts, timeout_seconds).body, len(texts))

    def _ask(self, body: bytes, attempts: int, timeout_seconds: float | None) -> Answer:
        pause = self._first_pause_seconds
        for attempt in range(1, attempts + 1):
            if self._closed.is_set():
                raise ModelUnavailable("the embedding model is closed")
            try:
                answer = self._endpoint.post(body, timeout_seconds=timeout_seconds)
            except Broken as broken:
                failure, asked_pause = self._unreachable(broken), 0.0
            else:
                if answer.status == 200:
                    return answer
                failure, asked_pause = self._refused(answer), answer.retry_after_seconds
            if not failure.retryable or attempt == attempts:
                raise failure
            # Half of it by chance, so that those who were refused together do not come again together.
            spread = pause * random.uniform(0.5, 1.0)  # noqa: S311 - nothing secret
            self._closed.wait(min(max(spread, asked_pause), LONGEST_PAUSE_SECONDS))
            pause *= 2
        raise AssertionError("unreachable")

    def _unreachable(self, broken: Broken) -> ModelUnavailable:
        return ModelUnavailable(
            f"the embedding endpoint {self._endpoint.url} does not answer ({broken}): start it, or mend the setting "
            "embedding.endpoint",
            retryable=True,
        )

    def _refused(self, answer: Answer) -> ModelUnavailable:
        what = f"the embedding endpoint {self._endpoint.url} answered {answer.status}"
        if answer.status in (401, 403):  # without its words, which may quote the key
            return ModelUnavailable(f"{what}: put a key that it takes into the variable {self._key_variable}")
        said = f"{what} for model {self.name!r} ({self._endpoint.without_key(answer.excerpt)})"
        if answer.status in (408, 429) or answer.status >= 500:
            return ModelUnavailable(f"{said}: it may do so again later", retryable=True)
        return ModelUnavailable(f"{said}: mend the settings embedding.endpoint and embedding.model")

    def _checked(self, body: bytes, count: int) -> NDArray[np.float32]:
        import numpy as np

        try:
            found = msgspec.json.decode(body, type=Vectors).data
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._wrong(f"what is not an answer of /embeddings ({error})") from None
        if len(found) != count:
            raise self._wrong(f"{len(found)} vectors for {count} texts")
        if {vector.index for vector in found} != set(range(count)):
            raise self._wrong("vectors whose indexes do not say which text is whose")
        for vector in found:
            if len(vector.embedding) != self.dimensions:
                raise ModelUnavailable(
                    f"{self.name!r} makes vectors of {len(vector.embedding)} numbers, the setting embedding.dimensions "
                    f"says {self.dimensions}: set it to what the model makes"
                )
        vectors = np.array([each.embedding for each in sorted(found, key=lambda each: each.index)], dtype=np.float64)
        if not np.isfinite(vectors).all():
            raise self._wrong("vectors with numbers that are none")
        largest = np.abs(vectors).max(axis=1, keepdims=True)
        if not largest.all():
            raise self._wrong("a vector of zeros")
        vectors /= largest  # so that no square is too large or too small for a number
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)

    def _wrong(self, what: str) -> ModelUnavailable:
        return ModelUnavailable(
            f"the embedding endpoint {self._endpoint.url} sent {what}: check that it serves embeddings of {self.name!r}"
        )


def _fingerprint(url: str, model: str, dimensions: int) -> str:
    """Another server of the same name may run other weights, so the address counts."""
    made_from = (url, model, str(dimensions), f"{LONGEST_TEXT_CHARS} characters", "unit length")
    return f"openai-api:{sha256(chr(0).join(made_from).encode()).hexdigest()[:16]}"


def _shown_name(variable: str) -> str:
    """The name of a variable, and not the key itself where somebody wrote that into the setting."""
    return variable if re.fullmatch(r"[A-Z_][A-Z_0-9]*", variable) else "that embedding.apiKeyVariable names"
