"""Runs of the OpenAI Agents SDK, streamed and not, that are cancelled or wait for a person; nobody answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.run_config import CallModelData, ModelInputData
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseCreatedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from offbook import AsyncClient
from offbook.contrib.frameworks.openai_agents import OffbookSession


class Scripted(Model):
    """Calls a tool, then answers."""

    async def get_response(self, system_instructions: Any, input: Any, *others: Any, **more: Any) -> ModelResponse:
        return ModelResponse(output=[answer_to(input)], usage=Usage(), response_id=None)

    async def stream_response(
        self, system_instructions: Any, input: Any, *others: Any, **more: Any
    ) -> AsyncIterator[Any]:
        response = Response(
            id="r",
            object="response",
            created_at=0,
            model="scripted",
            output=[answer_to(input)],
            tools=[],
            tool_choice="auto",
            parallel_tool_calls=True,
        )
        yield ResponseCreatedEvent(type="response.created", response=response, sequence_number=0)
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=1)


def answer_to(items: Any) -> Any:
    name = f"{len(items)}"
    if items[-1].get("type") != "function_call_output":
        return ResponseFunctionToolCall(id=f"f{name}", type="function_call", call_id=name, name="weigh", arguments="{}")
    text = ResponseOutputText(type="output_text", text="3 kg.", annotations=[])
    return ResponseOutputMessage(id=f"m{name}", type="message", role="assistant", status="completed", content=[text])


@function_tool(needs_approval=True)
def weigh() -> str:
    """Weighs it."""
    return "3 kg"


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(f"unix://{tmp_path}/nobody.sock", home=tmp_path, agent_id="main") as client:
        yield client


class Watched(OffbookSession):
    """Keeps, of each request, whether a swap could happen in it."""

    swappable: list[bool]

    async def with_memory(self, data: CallModelData[Any]) -> ModelInputData:
        self._given_after = -1  # as if there had been a swap since
        given = await self._current(data.model_data)
        self.swappable.append(given is not data.model_data)
        assert [said(one) for one in given.input] == [said(one) for one in data.model_data.input]
        return given


def said(item: Any) -> Any:
    return item.get("call_id") or item["content"]


def session_of(memory: AsyncClient) -> Watched:
    session = Watched("chat", memory, context_window=10_000)
    session.swappable = []
    return session


async def ended(agent: Agent, said_or_state: Any, is_streamed: bool, session: Watched) -> Any:
    config = RunConfig(tracing_disabled=True, call_model_input_filter=session.with_memory)
    if not is_streamed:
        return await Runner.run(agent, said_or_state, session=session, run_config=config)
    streamed = Runner.run_streamed(agent, said_or_state, session=session, run_config=config)
    async for _ in streamed.stream_events():
        pass
    return streamed


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_run_that_waited_for_a_person_goes_on_and_can_be_swapped(
    memory: AsyncClient, is_streamed: bool
) -> None:
    agent, session = Agent(name="harbour", model=Scripted(), tools=[weigh]), session_of(memory)
    for number in range(2):
        result = await ended(agent, f"How heavy is parcel {number}?", is_streamed, session)
        state = result.to_state()
        for waiting in result.interruptions:
            state.approve(waiting)
        result = await ended(agent, state, is_streamed, session)
        assert result.final_output == "3 kg."
    kinds = [item.get("type") or item.get("role") for item in await session.get_items()]
    assert kinds == ["user", "function_call", "function_call_output", "message"] * 2
    assert memory.outbox_status()["waiting"] == 8
    # Before the first message of a streamed run there is nothing of the session's yet.
    assert session.swappable == [not is_streamed, True, True, True]
    await session.close()


async def test_what_was_asked_in_a_run_that_was_cancelled_stays(memory: AsyncClient) -> None:
    agent, session = Agent(name="harbour", model=Scripted()), OffbookSession("chat", memory, context_window=10_000)
    config = RunConfig(tracing_disabled=True, call_model_input_filter=session.with_memory)
    for text in ("First?", "Second?"):
        streamed = Runner.run_streamed(agent, text, session=session, run_config=config)
        async for event in streamed.stream_events():
            if event.type == "raw_response_event":
                streamed.cancel()
    assert [item.get("content") for item in await session.get_items()] == ["First?", "Second?"]
    assert memory.outbox_status()["waiting"] == 2
    await session.close()


THOUGHT = {"type": "reasoning", "summary": [], "id": "rs_1", "encrypted_content": "AAA"}


@pytest.mark.parametrize(
    ("newest", "is_same"),
    [
        (THOUGHT, True),
        ({name: value for name, value in THOUGHT.items() if name != "id"}, True),  # `reasoning_item_id_policy="omit"`
        ({**THOUGHT, "id": "rs_2"}, False),
        ({"type": "reasoning", "summary": [], "encrypted_content": "BBB"}, False),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Weighing it."}]}, False),
    ],
)
async def test_a_thought_is_not_taken_for_another(memory: AsyncClient, newest: Any, is_same: bool) -> None:
    session = session_of(memory)
    asked: Any = {"role": "user", "content": "How heavy?"}
    await session.add_items([asked, cast(Any, THOUGHT)])
    await session.get_items()
    session._given_after = -1  # as if there had been a swap since
    given = ModelInputData(input=[asked, newest], instructions=None)
    assert (await session._current(given) is not given) == is_same
    await session.close()
