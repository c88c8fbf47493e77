from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from offbook.model.errors import ModelUnavailable
from offbook.models.embedder import THREADS, VECTORS_KEPT, Queries


class Model:
    name = fingerprint = "model"
    dimensions = 2

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.asked: list[str] = []
        self.error: Exception | None = None

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        assert self.may_answer.wait(60)
        if self.error:
            raise self.error
        return np.array([[1, 0]], np.float32)

    def close(self) -> None: ...


class QuickModel(Model):
    fingerprint = "quick"

    def embed_query(self, text: str) -> np.ndarray:
        self.asked.append(f"quickly: {text}")
        return np.array([[0, 1]], np.float32)


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model()
    yield made
    made.may_answer.set()


@pytest.fixture
def queries() -> Iterator[Queries]:
    made = Queries()
    yield made
    made.close()


async def test_a_query_gets_its_vector(queries: Queries, model: Model) -> None:
    assert (await queries.vector(model, "a cat", seconds=30)).tolist() == [1, 0]
    quick = QuickModel()
    assert (await queries.vector(quick, "a cat", seconds=30)).tolist() == [0, 1]
    assert quick.asked == ["quickly: a cat"]


async def test_a_model_that_owes_an_answer_is_not_asked_again(queries: Queries, model: Model) -> None:
    model.may_answer.clear()
    with pytest.raises(TimeoutError):
        await queries.vector(model, "a cat", seconds=0.5)  # so long that its thread has begun on a busy machine, too
    for _ in range(THREADS + 1):
        with pytest.raises(ModelUnavailable, match="no answer yet"):
            await queries.vector(model, "a cat", seconds=0.05)
    assert len(model.asked) == 1
    other = Model()
    other.fingerprint = "other"
    assert (await queries.vector(other, "a cat", seconds=30)).tolist() == [1, 0]
    model.may_answer.set()
    async with asyncio.timeout(120):
        while queries._begun:
            await asyncio.sleep(0.01)
    assert (await queries.vector(model, "a cat", seconds=30)).tolist() == [1, 0]


async def test_the_same_words_are_embedded_once(queries: Queries, model: Model) -> None:
    model.may_answer.clear()
    asked = [asyncio.create_task(queries.vector(model, "a cat", seconds=30)) for _ in range(3)]
    hasty = asyncio.create_task(queries.vector(model, "a cat", seconds=0.05))
    with pytest.raises(TimeoutError):
        await hasty
    model.may_answer.set()
    assert [(await one).tolist() for one in asked] == [[1, 0]] * 3  # one who left did not take it from the others
    await queries.vector(model, "a cat", seconds=30)
    await queries.vector(model, "a dog", seconds=30)
    assert model.asked == ["a cat", "a dog"]


async def test_who_asks_for_what_was_begun_long_ago_waits_for_that(queries: Queries, model: Model) -> None:
    model.may_answer.clear()
    begun = asyncio.create_task(queries.vector(model, "a cat", seconds=20))
    async with asyncio.timeout(120):
        while not queries._begun:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    later = asyncio.create_task(queries.vector(model, "a cat", seconds=0.25))
    await asyncio.sleep(0)
    model.may_answer.set()
    assert [(await one).tolist() for one in (begun, later)] == [[1, 0]] * 2
    assert model.asked == ["a cat"]


async def test_what_failed_is_asked_again_and_what_is_old_is_let_go(queries: Queries, model: Model) -> None:
    model.error = RecursionError("too deep")
    with pytest.raises(ModelUnavailable):
        await queries.vector(model, "a cat", seconds=30)
    model.error = None
    for number in range(VECTORS_KEPT):
        await queries.vector(model, f"cat {number}", seconds=30)
    await queries.vector(model, "a cat", seconds=30)
    await queries.vector(model, "cat 1", seconds=30)
    await queries.vector(model, "cat 0", seconds=30)
    assert model.asked == ["a cat", *(f"cat {number}" for number in range(VECTORS_KEPT)), "a cat", "cat 0"]


async def test_who_had_to_wait_too_long_for_a_thread_is_not_asked_for(queries: Queries, model: Model) -> None:
    model.may_answer.clear()
    asked = [queries.vector(model, str(number), seconds=0.5) for number in range(THREADS + 5)]
    assert {type(one) for one in await asyncio.gather(*asked, return_exceptions=True)} == {TimeoutError}
    model.may_answer.set()
    await asyncio.sleep(0.05)
    assert len(model.asked) == THREADS


async def test_whatever_a_model_does_it_is_unavailable(queries: Queries, model: Model) -> None:
    model.error = RecursionError("too deep")
    with pytest.raises(ModelUnavailable, match="RecursionError"):
        await queries.vector(model, "a cat", seconds=30)


async def test_a_close_waits_for_nobody(model: Model) -> None:
    queries = Queries()
    model.may_answer.clear()
    with pytest.raises(TimeoutError):
        await queries.vector(model, "a cat", seconds=0.05)
    started = time.monotonic()
    queries.close()
    assert time.monotonic() - started < 20
    with pytest.raises(ModelUnavailable, match="closed"):
        await queries.vector(model, "a cat", seconds=30)
