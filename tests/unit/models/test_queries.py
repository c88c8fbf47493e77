from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from offbook.errors import ModelUnavailable
from offbook.models.queries import THREADS, Queries


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
        assert self.may_answer.wait(20)
        if self.error:
            raise self.error
        return np.array([[1, 0]], np.float32)

    def close(self) -> None: ...


class QuickModel(Model):
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
    assert (await queries.vector(model, "a cat", seconds=5)).tolist() == [1, 0]
    quick = QuickModel()
    assert (await queries.vector(quick, "a cat", seconds=5)).tolist() == [0, 1]
    assert quick.asked == ["quickly: a cat"]


async def test_a_model_that_owes_an_answer_is_not_asked_again(queries: Queries, model: Model) -> None:
    model.may_answer.clear()
    for _ in range(THREADS + 1):
        with pytest.raises((TimeoutError, ModelUnavailable)):
            await queries.vector(model, "a cat", seconds=0.05)
    with pytest.raises(ModelUnavailable, match="no answer yet"):
        await queries.vector(model, "a cat", seconds=0.05)
    assert len(model.asked) == 1
    other = Model()
    other.fingerprint = "other"
    assert (await queries.vector(other, "a cat", seconds=5)).tolist() == [1, 0]
    model.may_answer.set()
    async with asyncio.timeout(5):
        while queries._begun:
            await asyncio.sleep(0.01)
    assert (await queries.vector(model, "a cat", seconds=5)).tolist() == [1, 0]


async def test_who_had_to_wait_too_long_for_a_thread_is_not_asked_for(queries: Queries, model: Model) -> None:
    model.may_answer.clear()
    asked = [queries.vector(model, str(number), seconds=0.1) for number in range(THREADS + 5)]
    assert {type(one) for one in await asyncio.gather(*asked, return_exceptions=True)} == {TimeoutError}
    model.may_answer.set()
    await asyncio.sleep(0.05)
    assert len(model.asked) == THREADS


async def test_whatever_a_model_does_it_is_unavailable(queries: Queries, model: Model) -> None:
    model.error = RecursionError("too deep")
    with pytest.raises(ModelUnavailable, match="RecursionError"):
        await queries.vector(model, "a cat", seconds=5)


async def test_a_close_waits_for_nobody(model: Model) -> None:
    queries = Queries()
    model.may_answer.clear()
    with pytest.raises(TimeoutError):
        await queries.vector(model, "a cat", seconds=0.05)
    started = time.monotonic()
    queries.close()
    assert time.monotonic() - started < 1
    with pytest.raises(ModelUnavailable, match="closed"):
        await queries.vector(model, "a cat", seconds=5)
