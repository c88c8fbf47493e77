"""Recall with `depth` deep, embedded: a real store, no vectors, and a model that answers over a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.api.embedded import open_memory
from offbook.api.memory import Memory
from offbook.model.memory_entry import Recollection
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding, Rerank, Summarizer
from offbook.model.types import Message
from tests.unit.models.chat_server import Answer, Server, completion, reply, serving

SAID = [
    "The ferry to Naxos is a nice ferry.",
    "We saw the ferry from the window.",
    "Nine in the morning, that is when the ferry leaves.",
    "My aunt has never been on a ferry.",
]
QUERY = "when does the ferry leave?"


def passages(body: dict[str, Any]) -> list[str]:
    content = body["messages"][0]["content"]
    return [json.loads(line)["said"] for line in content.splitlines() if line.startswith('{"n":')]


def by_reading(body: dict[str, Any]) -> Answer:
    """A reader that knows what answers the question."""
    number = next(at for at, text in enumerate(passages(body), 1) if "morning" in text)
    return completion(json.dumps({"order": [number]}), usage={"prompt_tokens": 100, "completion_tokens": 10})


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(by_reading) as made:
        yield made


def settings_of(server: Server, **fields: Any) -> Settings:
    rerank = Rerank(**{"reader": "openai:large", "deadline": timedelta(seconds=60), **fields.pop("rerank", {})})
    return msgspec.structs.replace(
        Settings(),
        embedding=Embedding(model="none"),
        rerank=rerank,
        summarizer=Summarizer(endpoint=f"{server.url}/v1", dollars_per_million_input=1.0, **fields),
    )


@pytest.fixture
async def memory(tmp_path: Path, server: Server) -> AsyncIterator[Memory]:
    async with open_memory(tmp_path, settings=settings_of(server), environ={}) as opened:
        await told(opened)
        yield opened


async def told(memory: Memory) -> None:
    await memory.on_message(memory.scope("chat"), [Message(role="user", content=text, name="Dana") for text in SAID])


async def deep(memory: Memory, query: str = QUERY, **fields: Any) -> Recollection:
    return await memory.recall(memory.scope("now"), query, **{"limit": 2, "depth": "deep", **fields})


def reasons(found: Recollection) -> list[str]:
    return [note for note in found.degraded if note.startswith("reader:")]


async def test_the_reader_decides_what_comes_first(memory: Memory, server: Server) -> None:
    normal = await memory.recall(memory.scope("now"), QUERY, limit=4)
    assert not server.asked, "nobody who did not ask for it waits for a model"
    assert normal.entries[0].text != SAID[2]
    found = await deep(memory)
    assert found.entries[0].text == SAID[2]
    assert len(found.entries) == 2
    assert sorted(passages(server.asked[0][2])) == sorted(SAID), "it reads more than are shown"
    assert not reasons(found)
    scores = [entry.score for entry in found.entries]
    assert scores == sorted(scores, reverse=True)
    assert found.entries[0].found_by[-1] == "reader"
    assert found.entries[0].why is None
    assert found.explained is None
    assert '"who":"Dana"' in server.asked[0][2]["messages"][0]["content"]


async def test_an_explanation_has_its_rank(memory: Memory) -> None:
    found = await deep(memory, explain=True, limit=3)
    first, second, _ = found.entries
    assert first.why is not None
    assert second.why is not None
    assert first.why.ranks["reader"] == 1
    assert "reader" not in second.why.ranks
    assert found.explained is not None


async def test_only_what_is_shown_counts_as_retrieved(memory: Memory) -> None:
    await deep(memory, limit=1)
    assert (await memory.status("main")).retrievals == 1
    event = (await memory.audit("main", verbs=["recall"])).events[-1]
    assert event.details["depth"] == "deep"
    assert len(event.details["entries"]) == 1


async def test_the_same_question_over_the_same_passages_is_asked_once(memory: Memory, server: Server) -> None:
    await deep(memory)
    again = await deep(memory)
    assert again.entries[0].text == SAID[2]
    assert len(server.asked) == 1
    await memory.on_message(memory.scope("chat"), [Message(role="user", content="Another ferry leaves at ten.")])
    await deep(memory)
    assert len(server.asked) == 2


async def test_what_it_used_is_counted(memory: Memory) -> None:
    await deep(memory)
    costs = (await memory.status("main")).costs
    assert (costs.tokens, costs.dollars) == (110, pytest.approx(100 / 1e6))


async def test_what_is_forgotten_takes_the_answers_with_it(memory: Memory, server: Server) -> None:
    found = await deep(memory)
    await memory.forget("main", entry_ids=[found.entries[0].id], reason="asked for")
    server.usual = lambda _: completion('{"order": [1]}')
    left = await deep(memory, limit=10)
    assert SAID[2] not in [entry.text for entry in left.entries]
    assert len(server.asked) == 2
    assert SAID[2] not in passages(server.asked[1][2])


async def test_what_is_forgotten_while_it_is_read_is_not_shown(memory: Memory, server: Server) -> None:
    loop = asyncio.get_running_loop()
    (wanted,) = [entry for entry in (await deep(memory, limit=10)).entries if entry.text == SAID[2]]

    def forget_meanwhile(body: dict[str, Any]) -> Answer:
        forgetting = memory.forget("main", entry_ids=[wanted.id], reason="asked for")
        asyncio.run_coroutine_threadsafe(forgetting, loop).result(60)
        return by_reading(body)

    server.usual = forget_meanwhile
    found = await deep(memory, "which ferry leaves in the morning?", limit=10)
    assert SAID[2] not in [entry.text for entry in found.entries]
    assert reasons(found) == ["reader: something was forgotten meanwhile"]


# ── without an answer ──


async def test_nobody_reads_by_default(tmp_path: Path, server: Server) -> None:
    async with open_memory(tmp_path, settings=settings_of(server, rerank={"reader": None}), environ={}) as memory:
        await told(memory)
        normal = await memory.recall(memory.scope("now"), QUERY, limit=2)
        found = await deep(memory)
    assert [entry.id for entry in found.entries] == [entry.id for entry in normal.entries]
    (why,) = reasons(found)
    assert "set rerank.reader" in why
    assert not server.asked


async def test_an_answer_that_is_none_leaves_the_first_order(memory: Memory, server: Server) -> None:
    normal = await memory.recall(memory.scope("now"), QUERY, limit=2)
    server.usual = lambda _: completion("I would rather not.")
    found = await deep(memory)
    assert [entry.id for entry in found.entries] == [entry.id for entry in normal.entries]
    assert "no JSON object" in reasons(found)[0]
    status = await memory.status("main")
    assert status.index.reader == "openai:large"
    assert "no JSON object" in (status.index.reader_trouble or "")


async def test_after_three_failures_it_is_left_alone(memory: Memory, server: Server) -> None:
    server.usual = lambda _: reply({}, status=503)
    for _ in range(5):
        assert reasons(await deep(memory))
    assert len(server.asked) == 3


async def test_the_caps_of_the_day_hold_for_it(tmp_path: Path, server: Server) -> None:
    async with open_memory(tmp_path, settings=settings_of(server, max_tokens_per_day=500), environ={}) as memory:
        await told(memory)
        found = await deep(memory)
    assert found.entries
    assert "summarizer.maxTokensPerDay" in reasons(found)[0]
    assert not server.asked


async def test_beyond_the_deadline_the_first_order_is_given(tmp_path: Path, server: Server) -> None:
    import threading

    let_go = threading.Event()

    def hang(body: dict[str, Any]) -> Answer:
        let_go.wait(30)
        return by_reading(body)

    server.usual = hang
    settings = settings_of(server, rerank={"deadline": timedelta(milliseconds=300)})
    async with open_memory(tmp_path, settings=settings, environ={}) as memory:
        await told(memory)
        found = await deep(memory)
        let_go.set()
    assert len(found.entries) == 2
    assert "300" in reasons(found)[0] or "0.3" in reasons(found)[0]


async def test_the_hosts_own_model_can_read(tmp_path: Path, server: Server) -> None:
    async with open_memory(tmp_path, settings=settings_of(server, rerank={"reader": "host"}), environ={}) as memory:
        await told(memory)
        assert "no host asks for work" in reasons(await deep(memory))[0]
        await memory.claim_job("main")
        asking = asyncio.create_task(deep(memory))
        claimed = await memory.claim_job("main", wait_seconds=30)
        assert claimed.job is not None
        body = {"messages": [{"content": claimed.job.messages[0].content}]}
        number = next(at for at, text in enumerate(passages(body), 1) if "morning" in text)
        await memory.complete_job("main", claimed.job.id, json.dumps({"order": [number]}))
        found = await asking
    assert found.entries[0].text == SAID[2]
    assert not server.asked


async def test_a_turn_never_waits_for_it(memory: Memory, server: Server) -> None:
    await memory.prepare_turn(memory.scope("now"), QUERY)
    assert not server.asked
