from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.search.index import vectors as vectors_module
from offbook.search.index.vectors import VectorIndex, is_sound, quantised

CHANCE = np.random.default_rng(1)


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def clustered(count: int, dimensions: int, clusters: int = 200) -> np.ndarray:
    """As messages are: many about the same few things."""
    centres = CHANCE.normal(size=(clusters, dimensions))
    near = centres[CHANCE.integers(clusters, size=count)] + 0.7 * CHANCE.normal(size=(count, dimensions))
    return unit(near)


def filled(folder: Path, vectors: np.ndarray, rows: np.ndarray | None = None) -> VectorIndex:
    index = VectorIndex(folder, vectors.shape[1], count=0)
    rows = np.arange(len(vectors)) if rows is None else rows
    index.append(rows, np.zeros(len(vectors), np.int64), quantised(vectors))
    return index


def by_brute_force(vectors: np.ndarray, queries: np.ndarray, limit: int) -> list[list[int]]:
    data = quantised(vectors)
    scale = np.ascontiguousarray(data[:, :4]).view(np.float32)[:, 0]
    similarity = (queries @ data[:, 4:].astype(np.float32).T) * scale
    return np.argsort(-similarity, axis=1, kind="stable")[:, :limit].tolist()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[VectorIndex]:
    opened = VectorIndex(tmp_path / "vectors", 64, count=0)
    yield opened
    opened.close()


@given(st.integers(min_value=1, max_value=400), st.integers(min_value=0, max_value=2**32 - 1))
def test_a_vector_in_bytes_is_nearly_the_same(dimensions: int, seed: int) -> None:
    vectors = unit(np.random.default_rng(seed).normal(size=(3, dimensions)))
    data = quantised(vectors)
    assert all(is_sound(row.tobytes(), dimensions) for row in data)
    scale = np.ascontiguousarray(data[:, :4]).view(np.float32)
    again = data[:, 4:].astype(np.float32) * scale
    assert np.abs(again - vectors).max() <= np.abs(vectors).max() / 127
    assert (np.einsum("ij,ij->i", unit(again), vectors) > 0.999).all()


def test_nothing_at_all_has_a_vector_in_bytes_too() -> None:
    data = quantised(np.zeros((1, 8), np.float32))
    assert data[0, 4:].tolist() == [0] * 8
    assert not is_sound(data.tobytes()[:-1], 8)


@pytest.mark.parametrize("dimensions", [1, 8, 63, 64, 65, 384])
def test_few_are_compared_exactly(tmp_path: Path, dimensions: int) -> None:
    vectors = unit(CHANCE.normal(size=(500, dimensions)))
    index = filled(tmp_path, vectors)
    queries = unit(CHANCE.normal(size=(10, dimensions)))
    for query, expected in zip(queries, by_brute_force(vectors, queries, 20), strict=True):
        rows, similarity = index.nearest(query, 20)
        assert rows.tolist() == expected
        assert (np.diff(similarity) <= 0).all()
    index.close()


@pytest.mark.parametrize("dimensions", [384, 100])
def test_many_are_compared_nearly_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dimensions: int) -> None:
    monkeypatch.setattr(vectors_module, "EXACT_UP_TO", 1_000)
    vectors = clustered(20_000, dimensions)
    index = filled(tmp_path, vectors)
    queries = unit(vectors[CHANCE.integers(len(vectors), size=50)] + 0.03 * CHANCE.normal(size=(50, dimensions)))
    found = 0
    for query, expected in zip(queries, by_brute_force(vectors, queries, 10), strict=True):
        rows, _ = index.nearest(query, 10)
        found += len(set(rows.tolist()) & set(expected))
    assert found / (10 * len(queries)) >= 0.97
    index.close()


def test_the_best_is_found_behind_thousands_that_are_nearly_as_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "EXACT_UP_TO", 1_000)
    query = unit(CHANCE.normal(size=(1, 128)))[0]
    nearly = query.copy()
    nearly[:20] *= -1
    index = filled(tmp_path, np.concatenate([np.tile(nearly, (8_000, 1)), query[None, :]]))
    rows, similarity = index.nearest(query, 5)
    assert rows[0] == 8_000
    assert similarity[0] == pytest.approx(1, abs=0.01)
    index.close()


@pytest.mark.parametrize("exact_up_to", [6_000, 100])
def test_only_what_is_allowed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exact_up_to: int) -> None:
    monkeypatch.setattr(vectors_module, "EXACT_UP_TO", exact_up_to)
    vectors = clustered(2_000, 96)
    index = filled(tmp_path, vectors)
    allowed = np.zeros(1_500, bool)
    allowed[::3] = True
    rows, _ = index.nearest(vectors[7], 50, allowed)
    assert len(rows) == 50
    assert allowed[rows].all(), "and what came after the mask was made is not allowed"
    nothing, _ = index.nearest(vectors[7], 50, np.zeros(2_000, bool))
    assert not len(nothing)
    index.close()


def test_an_empty_index_finds_nothing(index: VectorIndex) -> None:
    rows, similarity = index.nearest(unit(CHANCE.normal(size=(1, 64)))[0], 5)
    assert (len(rows), len(similarity)) == (0, 0)
    passages = index.passages_of(np.array([0, 5]))
    assert passages.has.tolist() == [False, False]
    assert [each.tolist() for each in passages.similarity(np.ones(64, np.float32))] == [[0, 0], [0, 0]]
    assert not index.means(np.array([0, 5])).any()
    assert index.best_part(0, np.ones(64, np.float32)) is None


def test_rows_with_several_passages_with_none_and_beyond_the_end(index: VectorIndex) -> None:
    vectors = unit(CHANCE.normal(size=(4, 64)))
    index.append(np.array([1, 1, 1, 4]), np.array([0, 1, 2, 0]), quantised(vectors))
    assert index.has(6).tolist() == [False, True, False, False, True, False]
    assert index.has(2).tolist() == [False, True]
    assert (index.embedded, index.count) == (2, 4)
    rows = np.array([4, 0, 1, 99])
    passages = index.passages_of(rows)
    assert passages.has.tolist() == [True, False, True, False]
    nearest, mean = passages.similarity(vectors[2])
    every = vectors[:3] @ vectors[2]
    assert nearest.tolist() == pytest.approx([vectors[3] @ vectors[2], 0, 1, 0], abs=0.02)
    assert mean.tolist() == pytest.approx([vectors[3] @ vectors[2], 0, every.mean(), 0], abs=0.02)
    assert index.means(rows)[2] == pytest.approx(unit(vectors[:3].sum(axis=0)[None, :])[0], abs=0.02)
    assert not index.means(rows)[[1, 3]].any()
    assert index.best_part(1, vectors[2]) == 2
    assert index.best_part(0, vectors[2]) is None


def test_a_row_embedded_again_counts_from_its_last_time_also_when_opened_again(tmp_path: Path) -> None:
    old, new = unit(CHANCE.normal(size=(2, 64))), unit(CHANCE.normal(size=(2, 64)))
    index = VectorIndex(tmp_path, 64, count=0)
    parts = np.array([0, 1])
    for vectors in (old, new):
        index.append(np.array([3, 3]), parts, quantised(vectors))
    again = VectorIndex(tmp_path, 64, count=4)
    for each in (index, again):
        assert each.embedded == 1
        assert each.passages_of(np.array([3])).counts.tolist() == [2]
        assert each.passages_of(np.array([3])).similarity(new[1])[0][0] == pytest.approx(1, abs=0.01)
        each.close()


@pytest.mark.parametrize("dimensions", [64, 100])
def test_opened_again_it_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dimensions: int) -> None:
    monkeypatch.setattr(vectors_module, "EXACT_UP_TO", 100)
    vectors = clustered(1_000, dimensions)
    index = filled(tmp_path, vectors)
    index.sync()
    index.close()
    again = VectorIndex(tmp_path, dimensions, count=1_000)
    for query in vectors[:10]:
        assert index.nearest(query, 10)[0].tolist() == again.nearest(query, 10)[0].tolist()
    assert again.embedded == 1_000
    again.close()
    with pytest.raises(ValueError, match="not 9999"):
        VectorIndex(tmp_path, dimensions, count=9_999)
