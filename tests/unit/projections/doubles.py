"""Models of a few lines, at the edge where the real ones would be, and the settings that name them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import msgspec
import numpy as np

from offbook.model.errors import ModelUnavailable
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding
from offbook.search.words import terms


@cache
def _vector(term: str, dimensions: int) -> np.ndarray:
    return np.random.default_rng(crc32(term.encode())).normal(size=dimensions).astype(np.float32)


class WordsEmbedder:
    """An `Embedder`: texts that share words are near to each other."""

    def __init__(self, name: str = "words", dimensions: int = 64) -> None:
        self.name = name
        self.fingerprint = f"{name}:1"
        self.dimensions = dimensions
        self.is_closed = False
        self.texts: list[str] = []
        self.threads: set[int] = set()
        self.before_each: Callable[[], object] = lambda: None
        self.refused = ""

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.before_each()
        if self.is_closed:
            raise ModelUnavailable("closed")
        if self.refused and any(self.refused in text for text in texts):
            raise ModelUnavailable("refused")
        self.texts += texts
        self.threads.add(threading.get_ident())
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            for term in [*terms(text), self.name]:
                vectors[row] += _vector(f"{self.name} {term}", self.dimensions)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def close(self) -> None:
        self.is_closed = True


class WordsJudge:
    """Stands in for `RelationModel`: a later text that says “now” takes the place of an earlier one with which it shares
    a telling word."""

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []

    def replaces(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.pairs += pairs
        return [_replaces(earlier, later) for earlier, later in pairs]


def _replaces(earlier: str, later: str) -> float:
    words = set(terms(later))
    shared = (words & set(terms(earlier))) - {"now"}
    return 0.99 if "now" in words and shared else 0.0


class KnownJudge(NamedTuple):
    """Sure of these pairs, and of no other."""

    known: frozenset[tuple[str, str]]

    def replaces(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [0.99 if pair in self.known else 0.0 for pair in pairs]


class Shelf:
    """Stands in for `open_embedder`: the models that can be had now, by name."""

    def __init__(self, *embedders: WordsEmbedder) -> None:
        self.embedders = {embedder.name: embedder for embedder in embedders}
        self.opened: list[str] = []

    def __call__(self, embedding: Embedding, folder: Path) -> WordsEmbedder:
        self.opened.append(embedding.model)
        if embedding.model not in self.embedders:
            raise ModelUnavailable(f"no {embedding.model} here")
        return self.embedders[embedding.model]


def settings_for(model: str, threads: int = 1, dimensions: int = 64, **fields: object) -> Settings:
    embedding = Embedding(model=model, threads=threads, dimensions=dimensions)
    return msgspec.structs.replace(Settings(), embedding=embedding, **fields)
