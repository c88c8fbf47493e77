"""LangChain's own agent with the middleware, where nobody answers: what the model is given and what is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel, Field

from offbook import Client
from offbook.contrib.frameworks.langchain import HotSwapMiddleware
from offbook.model.errors import InvalidInput

RUN: Any = {"configurable": {"thread_id": "t1"}}


class Scripted(BaseChatModel):
    answers: list[AIMessage]
    given: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **more: Any) -> ChatResult:
        self.given.append(messages)
        return ChatResult(generations=[ChatGeneration(message=self.answers[len(self.given) - 1])])


class Requesting(AgentMiddleware[Any, Any, Any]):
    """Changes a request, and only that."""

    def __init__(self, change: Callable[[list[Any]], Sequence[Any]]) -> None:
        super().__init__()
        self._change = change

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(request.override(messages=list(self._change(list(request.messages)))))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Client]:
    with Client(f"unix://{tmp_path}/nobody.sock", home=tmp_path, agent_id="main") as client:
        yield client


def weigh() -> str:
    """Weighs it."""
    return "3 kg"


def calling(call_id: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "weigh", "args": {}, "id": call_id}])


def texts(messages: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(one.type, one.content) for one in messages]


def recorded(swap: HotSwapMiddleware) -> list[tuple[str, Any]]:
    return [(one.role, one.content) for one in swap.session(RUN).messages()]


def agent_of(model: BaseChatModel, *middleware: AgentMiddleware[Any, Any, Any], **options: Any) -> Any:
    return create_agent(model, middleware=list(middleware), checkpointer=InMemorySaver(), **options)


# ── what is given and recorded ──


async def test_the_model_is_given_the_hosts_own_messages_and_all_is_recorded_once(memory: Client) -> None:
    swap = HotSwapMiddleware(memory, context_window=10_000)
    model = Scripted(answers=[calling("c1"), AIMessage("Light."), AIMessage("Yes."), AIMessage("好 🦜")])
    agent = agent_of(model, swap, tools=[weigh], system_prompt="Be brief.")
    state = agent.invoke({"messages": [("user", "How heavy?")]}, RUN)
    state = await agent.ainvoke({"messages": [("user", "Really?")]}, RUN)
    pieces = [piece async for piece, _ in agent.astream({"messages": [("user", "你好")]}, RUN, stream_mode="messages")]
    assert pieces[-1].content == "好 🦜"
    state = agent.get_state(RUN).values
    assert texts(state["messages"]) == [
        ("human", "How heavy?"),
        ("ai", ""),
        ("tool", "3 kg"),
        ("ai", "Light."),
        ("human", "Really?"),
        ("ai", "Yes."),
        ("human", "你好"),
        ("ai", "好 🦜"),
    ]
    assert model.given[-1] == [SystemMessage("Be brief."), *state["messages"][:-1]]
    assert [content for _, content in recorded(swap)] == [one.content for one in state["messages"]]
    assert memory.outbox_status()["waiting"] == 8  # each once, and not the instructions


async def test_a_thread_that_goes_on_in_another_process_is_recorded_once(memory: Client) -> None:
    saver = InMemorySaver()
    model = Scripted(answers=[AIMessage("One."), AIMessage("Two.")])
    for text in ("First.", "Second."):
        swap = HotSwapMiddleware(memory, context_window=10_000)
        agent: Any = create_agent(model, middleware=[swap], checkpointer=saver)
        await agent.ainvoke({"messages": [("user", text)]}, RUN)
    assert [one.content for one in model.given[-1]] == ["First.", "One.", "Second."]


@pytest.mark.parametrize("is_first", [True, False])
def test_what_other_middleware_puts_into_a_request_is_given_and_not_recorded(memory: Client, is_first: bool) -> None:
    swap = HotSwapMiddleware(memory, context_window=10_000)
    other = Requesting(
        lambda shown: [{"role": "user", "content": "Files: a"}, *shown, {"role": "user", "content": "Today"}]
    )
    model = Scripted(answers=[AIMessage("One."), AIMessage("Two.")])
    agent = agent_of(model, *([swap, other] if is_first else [other, swap]))
    for text in ("First.", "Second."):
        agent.invoke({"messages": [("user", text)]}, RUN)
    assert [one.content for one in model.given[-1]] == ["Files: a", "First.", "One.", "Second.", "Today"]
    assert [content for _, content in recorded(swap)] == ["First.", "One.", "Second.", "Two."]


def test_what_other_middleware_changes_or_leaves_out_is_so_for_the_model_only(memory: Client) -> None:
    def change(shown: list[Any]) -> list[Any]:
        return [one.model_copy(update={"content": one.content.replace("4711", "****")}) for one in shown[-2:]]

    swap = HotSwapMiddleware(memory, context_window=10_000)
    model = Scripted(answers=[AIMessage("One."), AIMessage("Two.")])
    agent = agent_of(model, Requesting(change), swap)
    for text in ("First.", "The code is 4711."):
        agent.invoke({"messages": [("user", text)]}, RUN)
    assert [one.content for one in model.given[-1]][-2:] == ["One.", "The code is ****."]
    assert "First." not in str(model.given[-1])
    assert [content for _, content in recorded(swap)] == ["First.", "One.", "The code is 4711.", "Two."]


def test_a_call_that_could_not_be_read_is_answered_where_it_stands(memory: Client) -> None:
    broken = AIMessage("", invalid_tool_calls=[{"name": "weigh", "args": "{", "id": "c1", "error": "no JSON"}])
    swap = HotSwapMiddleware(memory, context_window=10_000)
    model = Scripted(answers=[broken, AIMessage("Sorry."), AIMessage("Two.")])
    agent = agent_of(model, swap, tools=[weigh])
    for text in ("First.", "Second.", "Third."):
        state = agent.invoke({"messages": [("user", text)]}, RUN)
    kinds = ["human", "ai", "tool", "human", "ai", "human"]
    assert [one.type for one in model.given[1]] == kinds[:4]
    assert [one.type for one in model.given[2]] == kinds
    assert [one.id for one in model.given[2]] == [one.id for one in state["messages"][:6]]
    assert model.given[2][1].invalid_tool_calls == broken.invalid_tool_calls  # type: ignore[attr-defined]
    assert memory.outbox_status()["waiting"] == 7


class Parcel(BaseModel):
    """A parcel."""

    weight: int


def test_an_answer_of_a_given_shape_is_recorded_with_what_its_prompt_took(memory: Client) -> None:
    usage: Any = {"input_tokens": 4_000, "output_tokens": 2, "total_tokens": 4_002}
    call = {"name": "Parcel", "args": {"weight": 3}, "id": "c1"}
    swap = HotSwapMiddleware(memory, context_window=10_000)
    model = Scripted(answers=[AIMessage("", tool_calls=[call], usage_metadata=usage)])
    agent = agent_of(model, swap, response_format=ToolStrategy(Parcel))
    state = agent.invoke({"messages": [("user", "How heavy?")]}, RUN)
    assert state["structured_response"] == Parcel(weight=3)
    assert isinstance(state["messages"][-1], ToolMessage)
    assert [role for role, _ in recorded(swap)] == ["user", "assistant", "tool"]
    assert swap.session(RUN).used_tokens > 4_000


# ── whose session it is ──


def test_a_run_without_a_session_is_told_how_to_name_one(memory: Client) -> None:
    swap = HotSwapMiddleware(memory, context_window=10_000)
    agent: Any = create_agent(Scripted(answers=[AIMessage("Hi.")]), middleware=[swap])
    with pytest.raises(InvalidInput, match="thread_id"):
        agent.invoke({"messages": [("user", "Hello.")]})


def test_a_session_can_be_named(memory: Client) -> None:
    swap = HotSwapMiddleware(memory, context_window=10_000, session_id="chat")
    agent: Any = create_agent(Scripted(answers=[AIMessage("Hi.")]), middleware=[swap])
    agent.invoke({"messages": [("user", "Hello.")]})
    assert swap.session({}).session_id == "chat"
    assert memory.outbox_status()["waiting"] == 2
