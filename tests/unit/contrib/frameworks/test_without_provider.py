"""Each of them where nobody answers: the agent goes on with what it has, and what was said waits in the outbox."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents.memory import Session
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, SystemMessage
from langgraph.graph.message import add_messages
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from offbook import AsyncClient, Client
from offbook.contrib.frameworks.history_matcher import Sessions
from offbook.contrib.frameworks.langgraph import OffbookStore, hot_swap_hook
from offbook.contrib.frameworks.langgraph_store import message_of_value, value_in
from offbook.contrib.frameworks.openai_agents import OffbookSession
from offbook.contrib.frameworks.pydantic_ai import HotSwap
from offbook.model.errors import InvalidInput, OffbookError, ProviderUnavailable, WrongShape

RUN: Any = {"configurable": {"thread_id": "t1"}}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Client]:
    with Client(f"unix://{tmp_path}/nobody.sock", home=tmp_path, agent_id="main") as client:
        yield client


# ── what is not installed ──


@pytest.mark.parametrize(
    ("module", "extra", "needed"),
    [
        ("openai_agents", "openai-agents", "agents.items"),
        ("langchain", "langchain", "langchain.agents.middleware"),
        ("langgraph", "langgraph", "langchain_core.messages"),
        ("pydantic_ai", "pydantic-ai", "pydantic_ai.capabilities"),
    ],
)
def test_a_framework_that_is_missing_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, extra: str, needed: str
) -> None:
    monkeypatch.delitem(sys.modules, f"offbook.contrib.frameworks.{module}", raising=False)
    monkeypatch.setitem(sys.modules, needed, None)
    with pytest.raises(ImportError, match="is not installed") as raised:
        importlib.import_module(f"offbook.contrib.frameworks.{module}")
    assert isinstance(raised.value, OffbookError)
    assert f"pip install 'offbook[{extra}]'" in str(raised.value)


# ── OpenAI Agents SDK ──


async def test_a_session_goes_on_with_what_it_holds(tmp_path: Path) -> None:
    items: list[Any] = [{"role": "user", "content": f"Parcel {number}"} for number in range(5)]
    async with AsyncClient(f"unix://{tmp_path}/nobody.sock", home=tmp_path, agent_id="main") as client:
        session = OffbookSession("chat", client, context_window=10_000)
        assert isinstance(session, Session)
        await session.add_items(items)
        assert await session.get_items() == items
        assert await session.get_items(2) == items[3:]
        assert await session.pop_item() == items[4]
        assert await session.get_items() == items[:4]
        with pytest.raises(ProviderUnavailable, match="not cleared"):
            await session.clear_session()
        assert await session.get_items() == items[:4]
        assert client.outbox_status()["waiting"] == 6  # five that were said, and that one was taken back
        got = await session.get_items()
        got[0]["content"] = "changed by the SDK"  # type: ignore[typeddict-unknown-key,index]
        assert await session.get_items() == items[:4]
        await session.close()


async def test_a_full_window_is_compacted_without_the_provider(tmp_path: Path) -> None:
    async with AsyncClient(f"unix://{tmp_path}/nobody.sock", home=tmp_path, agent_id="main") as client:
        session = OffbookSession("chat", client, context_window=300)
        for number in range(60):
            await session.add_items([{"role": "user", "content": f"Parcel {number} goes to pier {number % 7}."}])
            newest = (await session.get_items())[-1]
        assert "Parcel 59" in str(newest)
        assert len(await session.get_items()) < 40
        assert client.outbox_status()["waiting"] == 60
        await session.close()


# ── LangGraph ──


def given_to_model(hook: Any, state: dict[str, list[AnyMessage]]) -> list[AnyMessage]:
    given: list[AnyMessage] = hook(state, RUN)["llm_input_messages"]
    return given


def test_a_hook_gives_the_hosts_own_messages(memory: Client) -> None:
    hook = hot_swap_hook(memory, context_window=10_000)
    image = [
        {"type": "text", "text": "Look."},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
    ]
    messages: Any = add_messages(
        [], [SystemMessage("Be brief."), HumanMessage("Hello."), AIMessage("Hi."), HumanMessage(image)]
    )  # type: ignore[arg-type]
    given = given_to_model(hook, {"messages": messages})
    assert all(one is other for one, other in zip(given, messages, strict=True))
    assert hook.record({"messages": [*messages, AIMessage("A parrot.", id="a2")]}, RUN) == {}
    given_to_model(hook, {"messages": [*messages, AIMessage("A parrot.", id="a2"), HumanMessage("Yes.", id="h3")]})
    assert memory.outbox_status()["waiting"] == 5  # each once, and not the instructions


def test_what_the_host_removed_is_not_shown_again(memory: Client) -> None:
    hook = hot_swap_hook(memory, context_window=10_000)
    messages: Any = add_messages([], [HumanMessage("My number is 42.", id="m1"), HumanMessage("Hello.", id="m2")])  # type: ignore[arg-type]
    given_to_model(hook, {"messages": messages})
    fewer: Any = add_messages(messages, [RemoveMessage(id="m1")])  # type: ignore[arg-type]
    assert [one.id for one in given_to_model(hook, {"messages": fewer})] == ["m2"]


def test_messages_without_ids_are_recorded_once(memory: Client) -> None:
    hook = hot_swap_hook(memory, context_window=10_000, session_id="chat")
    messages: Any = [HumanMessage("Yes."), AIMessage("And?"), HumanMessage("Yes.")]
    for end in (1, 2, 3, 3):
        assert given_to_model(hook, {"messages": messages[:end]}) == messages[:end]
    assert memory.outbox_status()["waiting"] == 3


def test_a_run_without_a_session_is_told_how_to_name_one(memory: Client) -> None:
    with pytest.raises(InvalidInput, match="thread_id"):
        hot_swap_hook(memory, context_window=10_000)({"messages": []}, {})


def test_a_store_answers_with_what_this_process_knows(memory: Client) -> None:
    store = OffbookStore(memory)
    store.put(("a", "b"), "k", {"n": 1})
    store.put(("a", "b"), "k", {"n": 2})
    item = store.get(("a", "b"), "k")
    assert item is not None
    assert item.value == {"n": 2}
    assert [one.value for one in store.search(("a",), query="anything")] == [{"n": 2}]
    assert store.list_namespaces() == [("a", "b")]
    with pytest.raises(ProviderUnavailable, match="delete it again"):
        store.delete(("a", "b"), "k")
    assert store.get(("a", "b"), "k") is None


def test_a_value_comes_back_from_its_message() -> None:
    for value in ({}, {"text": "你好 🦜\x00" * 20_000}, {"deep": [[{"x": None}]]}):
        assert value_in(message_of_value(("a",), "k", value)) == value
    with pytest.raises(WrongShape, match="not JSON"):
        message_of_value(("a",), "k", {"x": object()})


# ── Pydantic AI ──


async def test_a_capability_leaves_the_history_whole(memory: Client) -> None:
    given: list[list[ModelMessage]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        given.append(messages)
        return ModelResponse(parts=[TextPart("Yes.")])

    agent = Agent(
        FunctionModel(answer), system_prompt="Be brief.", capabilities=[HotSwap(memory, context_window=10_000)]
    )
    history: list[ModelMessage] = []
    for number in range(4):
        result = await agent.run(f"Parcel {number}", conversation_id="chat", message_history=history)
        history = result.all_messages()
    assert len(history) == 8
    assert [message.parts for message in given[-1]] == [message.parts for message in history[:7]]
    assert memory.outbox_status()["waiting"] == 8


async def test_a_call_that_was_never_answered_is_not_given_to_a_model(memory: Client) -> None:
    given: list[list[str]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        given.append([part.part_kind for message in messages for part in message.parts])
        calls = len(given) == 1
        return ModelResponse(parts=[ToolCallPart("fail", {}, "c1") if calls else TextPart("Yes.")])

    def fail() -> str:
        raise ValueError("no such parcel")

    agent = Agent(FunctionModel(answer), tools=[fail], capabilities=[HotSwap(memory, context_window=10_000)])
    with pytest.raises(ValueError, match="no such parcel"):
        await agent.run("Call it.", conversation_id="chat")
    await agent.run("Go on.", conversation_id="chat")
    assert given[-1] == ["user-prompt", "user-prompt"]
    assert memory.outbox_status()["waiting"] == 4


# ── many conversations ──


def test_only_so_many_sessions_are_held(memory: Client) -> None:
    sessions = Sessions(memory, {"context_window": 1_000}, most=2)
    first, second = sessions.of("a"), sessions.of("b")
    assert sessions.of("a") is first
    sessions.of("c")
    assert sessions.of("a") is first
    assert sessions.of("b") is not second
