"""Any endpoint that speaks OpenAI's embeddings: Ollama, llama.cpp, vLLM, LM Studio, a company's own, OpenAI.

What it answers is checked before it is believed: a vector that belongs to another text is worse than none. The key
goes into one header and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from offbook.model.errors import ModelUnavailable
from offbook.models.endpoint import Endpoint
from offbook.models.remote import Remote, checked_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# ── Text as models can read it ──


def readable(text: str) -> str:
    """Halves of a character, which JSON can carry and UTF-8 cannot, joined where they meet, else marked as unknown."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


TEXTS_PER_REQUEST = 64
LONGEST_TEXT_CHARS = 8_000
"""Of a longer text the beginning is embedded: the endpoints that refuse what is too long take 8,192 tokens or more."""
NOTHING = "."
"""Sent for a text of nothing but blanks, which many endpoints refuse."""

ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 0.5
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
        shown_variable = checked_key(key, key_variable, "embedding.apiKeyVariable")
        self._remote = Remote(
            Endpoint(endpoint, key=key, timeout_seconds=timeout_seconds),
            called="the embedding endpoint",
            model=model,
            settings=("embedding.endpoint", "embedding.model"),
            key_variable=shown_variable,
        )
        self.name = model
        self.dimensions = dimensions
        self.fingerprint = _fingerprint(self._remote.url, model, dimensions)
        self._first_pause_seconds = first_pause_seconds

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
        self._remote.close()

    def _embed_batch(
        self, texts: Sequence[str], *, attempts: int = ATTEMPTS, timeout_seconds: float | None = None
    ) -> NDArray[np.float32]:
        sent = [readable(text[:LONGEST_TEXT_CHARS]).replace("\0", " ") for text in texts]
        body = msgspec.json.encode({"model": self.name, "input": [text if text.strip() else NOTHING for text in sent]})
        answer = self._remote.ask(
            body,
            attempts=attempts,
            first_pause_seconds=self._first_pause_seconds,
            timeout_seconds=timeout_seconds,
        )
        return self._checked(answer.body, len(texts))

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
        return self._remote.wrong(what, "embeddings")


def _fingerprint(url: str, model: str, dimensions: int) -> str:
    """Another server of the same name may run other weights, so the address counts."""
    made_from = (url, model, str(dimensions), f"{LONGEST_TEXT_CHARS} characters", "unit length")
    return f"openai-api:{sha256(chr(0).join(made_from).encode()).hexdigest()[:16]}"
