"""An index of a few messages with vectors made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from offbook.model.memory_entry import StoredVector
from offbook.search.evidence import Evidence, QueryFeatures, Setting, gather
from offbook.search.index.agent_index import AgentIndex
from offbook.search.index.rows import IndexedMessage, word_numbers
from offbook.search.index.vectors import VectorIndex, quantised

MODEL = "by-hand"
DIMENSIONS = 4


def unit(*numbers: float) -> NDArray[np.float32]:
    vector = np.array([*numbers, *([0.0] * (DIMENSIONS - len(numbers)))], np.float32)
    return vector / np.linalg.norm(vector)


def small_index(
    folder: Path, said: Sequence[IndexedMessage], vectors: Mapping[int, NDArray[np.float32]] | None = None
) -> AgentIndex:
    """`vectors` by place; nothing is committed: all of it is the tail that is looked through."""
    index = AgentIndex(folder, silence=timedelta(hours=2))
    index.take(said, 1)
    if vectors:
        stored = [
            StoredVector(number=number, place=place, part=0, data=quantised(vector[None, :])[0].tobytes())
            for number, (place, vector) in enumerate(vectors.items(), 1)
        ]
        index.take_vectors(MODEL, DIMENSIONS, stored)
    return index


def asked_for(
    words: Sequence[str], idf: Sequence[float], vector: NDArray[np.float32] | None = None, *, at_micros: int = 0
) -> QueryFeatures:
    return QueryFeatures(
        words=word_numbers(words),
        idf=np.array(idf, np.float64),
        vector=vector,
        speakers=frozenset(),
        roles=frozenset(),
        at_micros=at_micros,
    )


def setting(index: AgentIndex, rows: Sequence[int]) -> Setting:
    """These rows, with all of their episodes."""
    chosen = np.array(rows, np.int64)
    return Setting(index.rows, vectors_of(index), chosen, members(index, rows))


def members(index: AgentIndex, rows: Sequence[int]) -> NDArray[np.int64]:
    episodes = np.unique(index.rows.view()["episode"][np.array(rows, np.int64)]).astype(np.int64)
    return index.rows.episode_rows(episodes, index.rows.count)


def evidence(index: AgentIndex, asked: QueryFeatures, rows: Sequence[int], sample: Sequence[int]) -> Evidence:
    candidates = np.array(rows, np.int64)
    return gather(index.rows, vectors_of(index), asked, candidates, members(index, rows), setting(index, sample))


def vectors_of(index: AgentIndex) -> VectorIndex | None:
    return index.vectors(MODEL)
