from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from offbook.log.blobs import BlobFiles
from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import ModelUnavailable
from offbook.model.memory_entry import VectorRow
from offbook.models import weights
from offbook.models.minilm import MiniLM
from offbook.projections import embeddings as embedding_module
from offbook.projections.embeddings import MESSAGES_AT_A_TIME, EmbeddingStep, embedded_in
from offbook.projections.indexes import Indexes
from offbook.search.index.vectors import quantised
from tests.unit.log.sqlite.test_sqlite import tamper
from tests.unit.projections.conftest import add, indexed, numbered, open_indexes, places_of, until
from tests.unit.projections.doubles import WordsEmbedder


@pytest.fixture
async def step(store: SqliteStore, blobs: BlobFiles, indexes: Indexes) -> AsyncIterator[EmbeddingStep]:
    made = EmbeddingStep(store, blobs, indexes, threads=1)
    yield made
    await made.close()


@pytest.fixture
def model() -> WordsEmbedder:
    return WordsEmbedder()


async def run_to_the_end(step: EmbeddingStep, model: WordsEmbedder | MiniLM) -> int:
    """How often it had to be run."""
    for times in range(1, 1_000):
        if await step.run("main", model):
            return times
    raise AssertionError("it has no end")


def embedded(indexes: Indexes, model: str = "words:1") -> int:
    index = indexes.peek("main")
    return embedded_in(index, model) if index else 0


async def test_everything_is_embedded_from_the_newest_to_the_oldest(
    store: SqliteStore, indexes: Indexes, step: EmbeddingStep, model: WordsEmbedder
) -> None:
    await add(store, *numbered(50))
    assert not await step.run("main", model)
    assert sorted(model.texts) == sorted(numbered(50)[-MESSAGES_AT_A_TIME:])
    await run_to_the_end(step, model)
    assert sorted(model.texts) == sorted(numbered(50)), "each once"
    assert embedded(indexes) == 50
    assert await store.vector_models("main") == {"words:1": 50}
    assert await step.run("main", model)
    assert len(model.texts) == 50


async def test_the_oldest_are_waited_for_though_the_newest_come_first(
    store: SqliteStore, indexes: Indexes, step: EmbeddingStep, model: WordsEmbedder
) -> None:
    await add(store, *numbered(MESSAGES_AT_A_TIME + 2))
    for has_oldest in (False, True):
        await step.run("main", model)
        index = indexes.peek("main")
        assert index is not None
        assert [step.has_all(index, "words:1", count) for count in (0, 2, 3)] == [True, has_oldest, has_oldest]


async def test_an_agent_without_messages_has_nothing_left(step: EmbeddingStep, model: WordsEmbedder) -> None:
    assert await step.run("nobody", model)


async def test_noise_is_not_embedded(
    store: SqliteStore, indexes: Indexes, step: EmbeddingStep, model: WordsEmbedder
) -> None:
    await add(store, "HEARTBEAT_OK", noise="heartbeat")
    await add(store, "a cat")
    await run_to_the_end(step, model)
    assert model.texts == ["a cat"]


async def test_a_long_message_has_several_passages(
    store: SqliteStore, indexes: Indexes, step: EmbeddingStep, model: WordsEmbedder
) -> None:
    await add(store, " ".join(f"This is sentence number{number} of many." for number in range(100)), "short")
    await run_to_the_end(step, model)
    assert embedded(indexes) == 2
    assert (await store.vector_models("main"))["words:1"] == len(model.texts) > 5


async def test_two_threads_do_the_same(
    store: SqliteStore, blobs: BlobFiles, indexes: Indexes, model: WordsEmbedder
) -> None:
    await add(store, *numbered(70))
    meeting = threading.Barrier(2, timeout=60)
    model.before_each = lambda: meeting.wait() if len(model.texts) < 2 * MESSAGES_AT_A_TIME - 1 else None
    step = EmbeddingStep(store, blobs, indexes, threads=2)
    assert not await step.run("main", model)
    assert sorted(model.texts) == sorted(numbered(70)[-2 * MESSAGES_AT_A_TIME :])
    assert len(model.threads) == 2
    model.before_each = lambda: None
    await run_to_the_end(step, model)
    assert sorted(model.texts) == sorted(numbered(70))
    vectors = await store.vectors("main", "words:1", limit=1_000)
    by_place = {one.place: one.data for one in vectors}
    for placed in (await store.arrivals("main", after_event=0)).messages:
        expected = quantised(WordsEmbedder().embed([str(placed.logged.message.content)]))
        assert by_place[placed.place] == expected[0].tobytes()
    await step.close()


async def test_vectors_that_the_store_has_are_taken_and_not_made_again(
    store: SqliteStore, indexes: Indexes, step: EmbeddingStep, model: WordsEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a rebuild, whatever is looked at first: the log or the vectors."""
    monkeypatch.setattr(embedding_module, "FOLLOW_SECONDS", 0)
    for number in range(15):
        await add(store, *numbered(100, f"batch{number}"))
    vectors = [
        VectorRow(place=place, part=part, data=quantised(model.embed(["x"]))[0].tobytes())
        for place in await places_of(store)
        for part in range(2)
    ]
    await store.add_vectors("main", model.fingerprint, vectors)
    model.texts.clear()
    await run_to_the_end(step, model)
    assert model.texts == []
    await indexes.rebuild("main")
    assert not await step.run("main", model), "while the index is behind nothing is complete"
    await run_to_the_end(step, model)
    assert model.texts == []
    assert embedded(indexes) == 1_500


async def test_all_parts_of_a_message_are_taken_together(
    store: SqliteStore, indexes: Indexes, step: EmbeddingStep, model: WordsEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_module, "VECTORS_AT_A_TIME", 5)
    await add(store, *numbered(9))
    data = quantised(model.embed(["x"]))[0].tobytes()
    vectors = [VectorRow(place=place, part=part, data=data) for place in await places_of(store) for part in range(3)]
    await store.add_vectors("main", model.fingerprint, vectors)
    await run_to_the_end(step, model)
    index = indexes.peek("main")
    assert index is not None
    taken = index.vectors(model.fingerprint)
    assert taken is not None
    assert taken.passages_of(np.arange(9)).counts.tolist() == [3] * 9
    assert taken.count == 27


async def test_broken_off_half_way_it_goes_on(
    store: SqliteStore, indexes: Indexes, step: EmbeddingStep, model: WordsEmbedder
) -> None:
    await add(store, *numbered(60))
    await step.run("main", model)
    begun = threading.Event()
    may_go_on = threading.Event()
    model.before_each = lambda: (begun.set(), may_go_on.wait(60))
    task = asyncio.create_task(step.run("main", model))
    await until(begun.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    may_go_on.set()
    assert embedded(indexes) == MESSAGES_AT_A_TIME
    model.before_each = lambda: None
    await run_to_the_end(step, model)
    assert embedded(indexes) == 60
    assert await store.vector_models("main") == {"words:1": 60}


async def test_a_close_waits_for_one_piece_only(
    store: SqliteStore, blobs: BlobFiles, indexes: Indexes, model: WordsEmbedder
) -> None:
    long = " ".join(f"This is sentence number{number} of many." for number in range(900))
    await add(store, *[f"{number} {long}" for number in range(4)])
    step = EmbeddingStep(store, blobs, indexes, threads=1)
    begun, may_go_on = threading.Event(), threading.Event()
    model.before_each = lambda: (begun.set(), may_go_on.wait(60))
    task = asyncio.create_task(step.run("main", model))
    await until(begun.is_set)
    closing = asyncio.create_task(step.close())
    await asyncio.sleep(0.02)
    may_go_on.set()
    await asyncio.gather(closing, task, return_exceptions=True)
    assert len(model.texts) == embedding_module.PASSAGES_AT_A_TIME
    assert await store.vector_models("main") == {}, "half a message is none"


async def test_a_damaged_message_does_not_keep_the_others_from_being_embedded(
    store: SqliteStore, indexes: Indexes, step: EmbeddingStep, model: WordsEmbedder, tmp_path: Path
) -> None:
    await add(store, *numbered(60))
    await indexed(indexes)
    places = await places_of(store)
    damaged = places[-20:]
    marks = ",".join(str(place) for place in damaged)
    tamper(tmp_path / "offbook.db", f"UPDATE messages SET content = '{{' WHERE place IN ({marks})")
    await run_to_the_end(step, model)
    assert embedded(indexes) == 40
    assert sorted(model.texts) == sorted(numbered(60)[:40])


async def test_two_models_beside_each_other(
    store: SqliteStore, indexes: Indexes, step: EmbeddingStep, model: WordsEmbedder
) -> None:
    other = WordsEmbedder("other", dimensions=72)
    await add(store, *numbered(20))
    await run_to_the_end(step, model)
    await run_to_the_end(step, other)
    assert (embedded(indexes), embedded(indexes, "other:1")) == (20, 20)
    assert await store.vector_models("main") == {"words:1": 20, "other:1": 20}


async def test_the_real_model(store: SqliteStore, indexes: Indexes, step: EmbeddingStep) -> None:
    path = weights.packaged(weights.MINILM)
    assert path is not None
    minilm = MiniLM(path)
    await add(
        store, "My sister lives by the sea in Portugal.", "The build broke because of a missing header.", "", "💥"
    )
    await run_to_the_end(step, minilm)
    index = indexes.peek("main")
    assert index is not None
    vectors = index.vectors(minilm.fingerprint)
    assert vectors is not None
    for query, row in (("Where does my sibling have her home?", 0), ("compiler error", 1)):
        assert vectors.nearest(minilm.embed([query])[0], 1)[0].tolist() == [row]
    minilm.close()


# ── refused, restored ──


async def test_a_text_that_the_model_refuses_does_not_keep_the_others_from_being_embedded(
    store: SqliteStore, indexes: Indexes, step: EmbeddingStep, model: WordsEmbedder
) -> None:
    model.refused = "poison"
    await add(store, *numbered(20), "poison", *numbered(20, "newer"))
    await add(store, *numbered(MESSAGES_AT_A_TIME + 4, "poison"))
    await run_to_the_end(step, model)
    assert embedded(indexes) == 40
    model.texts.clear()
    await add(store, "one more")
    await run_to_the_end(step, model)
    assert (embedded(indexes), model.texts) == (41, ["one more"])
    model.refused = ""
    await indexes.close()
    await run_to_the_end(step, model)
    assert embedded(indexes) == 41 + 1 + MESSAGES_AT_A_TIME + 4, "tried again when it is opened again"


async def test_a_model_that_refuses_everything_is_asked_twice_and_nothing_is_set_aside(
    store: SqliteStore, indexes: Indexes, step: EmbeddingStep, model: WordsEmbedder
) -> None:
    await add(store, *numbered(40))
    asked = []
    model.before_each = lambda: asked.append(1)
    model.is_closed = True
    with pytest.raises(ModelUnavailable):
        await step.run("main", model)
    assert len(asked) == 2
    model.is_closed = False
    await run_to_the_end(step, model)
    assert embedded(indexes) == 40


async def test_a_model_that_is_away_is_not_asked_again_at_once(
    store: SqliteStore, step: EmbeddingStep, model: WordsEmbedder
) -> None:
    await add(store, *numbered(40))
    asked = []

    def away() -> None:
        asked.append(1)
        raise ModelUnavailable("away", retryable=True)

    model.before_each = away
    with pytest.raises(ModelUnavailable, match="away"):
        await step.run("main", model)
    assert len(asked) == 1


@pytest.mark.parametrize("kept", [0, 10])
async def test_a_restored_store_that_has_less_than_the_index_is_followed_anew(
    blobs: BlobFiles, tmp_path: Path, model: WordsEmbedder, kept: int
) -> None:
    store = SqliteStore(tmp_path / "offbook.db")
    await add(store, *numbered(30))
    data = quantised(model.embed(["x"]))[0].tobytes()
    places = await places_of(store)
    await store.add_vectors("main", "words:1", [VectorRow(place=place, part=0, data=data) for place in places[:kept]])
    await store.close()
    saved = (tmp_path / "offbook.db").read_bytes()

    async def run() -> int:
        model.texts.clear()
        store = SqliteStore(tmp_path / "offbook.db")
        indexes = open_indexes(store, blobs, tmp_path)
        step = EmbeddingStep(store, blobs, indexes, threads=1)
        await run_to_the_end(step, model)
        assert embedded(indexes) == 30
        vectors = await store.vector_models("main")
        await indexes.commit("main", at_once=True)
        await step.close()
        await indexes.close()
        await store.close()
        assert vectors == {"words:1": 30}
        return len(model.texts)

    assert await run() == 30 - kept
    assert await run() == 0, "what the store has is not made again"
    for path in tmp_path.glob("offbook.db*"):
        path.unlink()
    (tmp_path / "offbook.db").write_bytes(saved)
    assert await run() == 30 - kept


async def test_what_has_no_vector_although_it_was_given_one_is_set_aside(
    store: SqliteStore,
    indexes: Indexes,
    step: EmbeddingStep,
    model: WordsEmbedder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await add(store, *numbered(20))

    async def lose(*args: object) -> None:
        pass

    monkeypatch.setattr(store, "add_vectors", lose)
    await run_to_the_end(step, model)
    assert sorted(model.texts) == sorted(numbered(20)), "each once"
    assert embedded(indexes) == 0


async def test_a_close_does_not_wait_for_ever(
    store: SqliteStore, blobs: BlobFiles, indexes: Indexes, model: WordsEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_module, "CLOSE_SECONDS", 0.1)
    await add(store, "a cat")
    step = EmbeddingStep(store, blobs, indexes, threads=1)
    begun, may_go_on = threading.Event(), threading.Event()
    model.before_each = lambda: (begun.set(), may_go_on.wait(600))
    task = asyncio.create_task(step.run("main", model))
    await until(begun.is_set)
    async with asyncio.timeout(120):
        await step.close()
    may_go_on.set()
    await asyncio.gather(task, return_exceptions=True)
