"""The process that reads and embeds: what it answers, and what becomes of what is asked when it is killed."""

from __future__ import annotations

import asyncio
import math
import operator
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from offbook.model.errors import ModelUnavailable, WorkerUnavailable
from offbook.model.settings.sections import Embedding
from offbook.models.embedder import open_local
from offbook.models.worker import InProcess, OwnProcess, Worker
from offbook.models.worker_embedder import WorkerEmbedder
from offbook.models.worker_process import Answers, serve


@pytest.fixture
async def worker() -> AsyncIterator[OwnProcess]:
    own = OwnProcess()
    yield own
    await own.close()


@pytest.mark.parametrize("kind", [InProcess, OwnProcess])
async def test_both_answer_and_raise_the_same(kind: type[InProcess] | type[OwnProcess]) -> None:
    worker: Worker = kind()
    try:
        assert await worker.run(math.factorial, 20) == math.factorial(20)
        assert await asyncio.to_thread(worker.call, "query", operator.add, "a", "b") == "ab"
        with pytest.raises(ValueError, match="negative"):
            await worker.run(math.factorial, -1)
        with pytest.raises(TypeError):
            await worker.run(operator.add, 1, "b")
    finally:
        await worker.close()


async def test_many_at_once_get_their_own_answers(worker: OwnProcess) -> None:
    numbers = range(300)
    assert await asyncio.gather(*(worker.run(operator.mul, one, 2) for one in numbers)) == [2 * one for one in numbers]


async def test_large_arguments_and_answers(worker: OwnProcess) -> None:
    text = "ä" * 3_000_000
    assert await worker.run(operator.add, text, "b") == text + "b"


async def test_what_a_killed_one_had_in_hand_is_done_by_the_next(worker: OwnProcess, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    asked = _begin_and_wait(worker, begun)
    while not begun.exists():
        await asyncio.sleep(0.01)
    first = worker.process_id
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert await asked == "done"
    assert worker.process_id not in (None, first)


def _begin_and_wait(worker: Worker, begun: Path) -> asyncio.Task[str]:
    """Something that ends only where it had begun before. A program: the worker does not know the tests' modules."""
    script = f"test -e '{begun}' && printf done || {{ touch '{begun}'; exec sleep 60; }}"
    return asyncio.create_task(worker.run(subprocess.getoutput, script))


async def test_what_kills_every_one_is_given_up_and_others_go_on(worker: OwnProcess) -> None:
    with pytest.raises(WorkerUnavailable, match="_exit"):
        await worker.run(os._exit, 3)
    assert await worker.run(operator.add, 1, 2) == 3


async def test_a_query_does_not_wait_for_what_is_derived(worker: OwnProcess, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    asked = _begin_and_wait(worker, begun)
    while not begun.exists():
        await asyncio.sleep(0.01)
    assert await asyncio.to_thread(worker.call, "query", operator.add, 1, 2) == 3
    assert not asked.done()
    asked.cancel()


async def test_closed_it_is_gone_and_says_so() -> None:
    worker = OwnProcess()
    await worker.run(operator.add, 1, 2)
    process = worker.process_id
    assert process is not None
    await worker.close()
    assert not Path(f"/proc/{process}").exists() or worker.process_id is None
    with pytest.raises(WorkerUnavailable):
        worker.call("derive", operator.add, 1, 2)


def test_it_ends_when_nothing_is_asked_and_when_its_owner_is_gone(tmp_path: Path) -> None:
    for seconds, is_owner_gone in ((0.01, False), (600.0, True)):
        reading, writing = os.pipe()
        with (tmp_path / "answers").open("wb") as answers, os.fdopen(reading, "rb", buffering=0) as requests:
            serving = threading.Thread(
                target=serve, args=(requests, Answers(answers)), kwargs={"idle_seconds": seconds}
            )
            serving.start()
            if is_owner_gone:
                os.close(writing)
            serving.join(60)
            assert not serving.is_alive()
        if not is_owner_gone:
            os.close(writing)


async def test_a_model_in_it_gives_the_same_vectors(worker: OwnProcess, packaged: Path, tmp_path: Path) -> None:
    local = open_local(Embedding(), tmp_path)
    beside = await asyncio.to_thread(WorkerEmbedder, worker, Embedding(), tmp_path)
    assert (beside.name, beside.fingerprint, beside.dimensions) == (local.name, local.fingerprint, local.dimensions)
    texts = ["I moved to Leipzig.", "", "端口 9111"]
    ours, theirs = local.embed(texts), await asyncio.to_thread(beside.embed, texts)
    assert (ours == theirs).all()
    assert (ours[0] == (await asyncio.to_thread(beside.embed_query, texts[0]))[0]).all()


async def test_why_there_is_no_model_is_said_here(worker: OwnProcess, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="dimensions"):
        await asyncio.to_thread(WorkerEmbedder, worker, Embedding(dimensions=7), tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the environment of a process is not to be seen")
async def test_it_does_not_have_the_secret_of_an_encrypted_folder(
    worker: OwnProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFFBOOK_PASSPHRASE", "correct horse battery")
    monkeypatch.setenv("OTHER", "something else")
    process = await worker.run(os.getpid)
    environ = Path(f"/proc/{process}/environ").read_bytes()
    assert b"something else" in environ
    assert b"correct horse" not in environ
