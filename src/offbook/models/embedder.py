"""Embedders: which one the settings ask for, vectors of queries, and the one behind an endpoint."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec
import structlog

from offbook.model.errors import ModelUnavailable
from offbook.model.settings.sections import Embedding
from offbook.models import weights
from offbook.models.endpoint import Endpoint, Remote, checked_key
from offbook.models.protocols import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


NO_MODEL = "none"
INSTALLED = "local:"
"""Before the name of a model that `offbook model install` has put into the folder of models."""
LOCAL_NAMES = frozenset({"Xenova/all-MiniLM-L6-v2", "all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"})
"""All of them are the one that comes with Offbook, whatever the endpoint."""


def is_local(embedding: Embedding) -> bool:
    """Whether it runs here, whatever the endpoint."""
    return embedding.model in LOCAL_NAMES or is_installed(embedding)


def is_installed(embedding: Embedding) -> bool:
    """Whether it is one that somebody installed, with a folder of its own."""
    return embedding.model.startswith(INSTALLED)


def open_embedder(embedding: Embedding, folder: Path, *, environ: Mapping[str, str] = os.environ) -> Embedder:
    """Ready to embed. `folder` keeps the weights of local models; ModelUnavailable says why there is none."""
    if embedding.model == NO_MODEL:
        raise ModelUnavailable("embeddings are switched off: set embedding.model to all-MiniLM-L6-v2 to have them")
    return open_local(embedding, folder) if is_local(embedding) else open_remote(embedding, environ)


def open_local(embedding: Embedding, folder: Path) -> Embedder:
    if is_installed(embedding):
        return _open_installed(embedding, folder)
    from offbook.models.minilm import DIMENSIONS, MiniLM

    if embedding.dimensions != DIMENSIONS:
        raise ModelUnavailable(wrong_dimensions(embedding, DIMENSIONS))
    try:
        return MiniLM(weights.ensure(weights.MINILM, folder), name=embedding.model)
    except ImportError as error:
        raise ModelUnavailable(
            f"what runs the embedding model is not installed, or does not load here ({error}): "
            "run `pip install --upgrade numpy onnxruntime tokenizers`, or set embedding.endpoint and embedding.model"
        ) from error


def _open_installed(embedding: Embedding, folder: Path) -> Embedder:
    from offbook.models.onnx_embedder import OnnxEmbedder, folder_of, read_manifest

    own = folder_of(embedding.model, folder)
    made = read_manifest(own).dimensions
    if embedding.dimensions != made:
        raise ModelUnavailable(wrong_dimensions(embedding, made))
    return OnnxEmbedder(own, name=embedding.model)


def open_remote(embedding: Embedding, environ: Mapping[str, str]) -> Embedder:
    """Nothing is sent before the first text."""

    if embedding.endpoint is None:
        raise ModelUnavailable(
            f"{embedding.model!r} is not a model that runs here: set embedding.endpoint to the OpenAI-compatible "
            "server that has it (such as http://127.0.0.1:11434/v1), or embedding.model to all-MiniLM-L6-v2"
        )
    return OpenAIEmbedder(
        embedding.endpoint,
        embedding.model,
        dimensions=embedding.dimensions,
        key=environ.get(embedding.api_key_variable, "").strip() or None,
        key_variable=embedding.api_key_variable,
    )


def wrong_dimensions(embedding: Embedding, made: int) -> str:
    return (
        f"{embedding.model} makes vectors of {made} numbers, the setting embedding.dimensions says "
        f"{embedding.dimensions}: set it to {made}"
    )


# ── Vectors of queries, in threads of their own ──
# An endpoint that hangs keeps these, and nobody else's.


THREADS = 2
VECTORS_KEPT = 16
"""Of the newest queries, by a digest of their words: whoever asks several agents' memories asks them the same."""

log = structlog.get_logger("offbook.embedding")


@runtime_checkable
class Quick(Protocol):
    """An `Embedder` that can be asked for less patience."""

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """A vector, in the first row."""
        ...


@dataclass
class _PendingVector:
    vector: asyncio.Future[NDArray[np.float32]]
    waiting: int = 0


class Queries:
    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="offbook-query")
        self._begun: dict[int, tuple[str, float]] = {}
        self._asked: OrderedDict[tuple[str, bytes], _PendingVector] = OrderedDict()
        self._numbers = itertools.count()
        self._is_closed = False

    async def vector(self, embedder: Embedder, text: str, *, seconds: float) -> NDArray[np.float32]:
        """TimeoutError after that many seconds. While a model owes an earlier answer it is not asked. The same words
        are embedded once, whoever asks for them again or meanwhile."""
        if self._is_closed:
            raise ModelUnavailable("the embedding model is closed")
        key = embedder.fingerprint, sha256(text.encode("utf-8", "surrogatepass")).digest()
        asked = self._asked.get(key)
        if asked is not None and asked.vector.cancelled():
            asked = None
        if asked is None:
            if self._is_overdue(embedder.fingerprint, seconds):
                raise ModelUnavailable("no answer yet of the model to an earlier query", retryable=True)
            asked = self._ask(key, embedder, text)
        asked.waiting += 1
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(asked.vector)
        finally:
            asked.waiting -= 1
            # Who has not begun when nobody waits any more never will; who has goes on.
            if not asked.waiting and not asked.vector.done():
                asked.vector.cancel()

    def close(self) -> None:
        """Waits for nobody."""
        self._is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, key: tuple[str, bytes], embedder: Embedder, text: str) -> _PendingVector:
        running = asyncio.get_running_loop().run_in_executor(self._pool, self._embedded, embedder, text)
        asked = self._asked[key] = _PendingVector(running)
        while len(self._asked) > VECTORS_KEPT:
            self._asked.popitem(last=False)

        def ended(vector: asyncio.Future[NDArray[np.float32]]) -> None:
            if (vector.cancelled() or vector.exception() is not None) and self._asked.get(key) is asked:
                del self._asked[key]

        running.add_done_callback(ended)
        return asked

    def _is_overdue(self, model: str, seconds: float) -> bool:
        before = time.monotonic() - seconds
        return any(asked == model and begun_at <= before for asked, begun_at in list(self._begun.values()))

    def _embedded(self, embedder: Embedder, text: str) -> NDArray[np.float32]:
        number = next(self._numbers)
        self._begun[number] = (embedder.fingerprint, time.monotonic())
        try:
            vectors = embedder.embed_query(text) if isinstance(embedder, Quick) else embedder.embed([text])
            first: NDArray[np.float32] = vectors[0]
            return first
        except ModelUnavailable:
            raise
        except Exception as error:
            # The one broad handler of queries: whatever a model does, the answer is by text.
            log.exception("failed", action="embedding.query", model=embedder.name)
            raise ModelUnavailable(f"the model failed ({type(error).__name__}): the log says more") from error
        finally:
            del self._begun[number]


# ── Any endpoint that speaks OpenAI's embeddings ──
# Ollama, llama.cpp, vLLM, LM Studio, a company's own, OpenAI.
# What it answers is checked before it is believed: a vector that belongs to another text is worse than none. The
# key goes into one header and nowhere else.


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
