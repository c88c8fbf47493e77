"""Each framework's own agent, with a scripted model and tools, in a small window: many turns, swaps, a provider that is
killed in the middle, a host that is started again. Nothing is lost, nothing doubled, and what was told first is known."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.run_config import CallModelData, ModelInputData
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
    ResponseTextDeltaEvent,
)
from pydantic import Field
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.messages import ModelResponse as PydanticResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from offbook import AsyncClient, Client, Message
from offbook.contrib.frameworks.langchain import HotSwapMiddleware
from offbook.contrib.frameworks.langgraph import HotSwapHook, OffbookStore, hot_swap_hook
from offbook.contrib.frameworks.openai_agents import OffbookSession
from offbook.contrib.frameworks.pydantic_ai import HotSwap
from offbook.model.content import text_of, tool_calls, tool_results
from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, running
from tests.acceptance.test_tutorial import REPOSITORY, Step, pattern, steps

WINDOW = 1_000
TURNS = 34
KILLED_AFTER, BACK_AFTER, ANEW_AFTER = 6, 8, 12
FACT = "Zanzibar"
PATIENCE_SECONDS = 5.0
"""A machine that is busy with other tests is slow, and that is not what is tested."""

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # create_react_agent is where the hooks are
]


class House:
    """A provider that can be killed, and started again in the same folder."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="ob"))
        self._running = ExitStack()
        self.daemon = self._started()

    def _started(self) -> Daemon:
        return self._running.enter_context(running(WITHOUT_MODEL, home=self.home / "home"))

    def kill(self) -> None:
        self.daemon.process.kill()
        self.daemon.process.wait()

    def start(self) -> None:
        self.daemon = self._started()

    def client(self, name: str, worker: str = "") -> Client:
        home = self.home / "client"
        return Client(self.daemon.socket_endpoint, agent_id=name, home=home, client=f"{name}{worker}")

    def async_client(self, name: str) -> AsyncClient:
        return AsyncClient(self.daemon.socket_endpoint, agent_id=name, home=self.home / "client", client=name)

    def close(self) -> None:
        self._running.close()
        shutil.rmtree(self.home, ignore_errors=True)


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    house = House()
    yield house
    house.close()


def told(number: int) -> str:
    first = f"My name is Nina and my boat is called {FACT}. " if number == 0 else ""
    return f"{first}Parcel {number} weighs {number * 3} kg and goes to pier {number % 7}, says the harbour master."


def calls_of(number: int) -> list[str]:
    """Two at a time in every third turn."""
    return [f"call-{number}", *([f"call-{number}-too"] if number % 3 == 0 else [])]


def thinks(number: int) -> bool:
    return number % 4 == 1


def said_in_all(*, with_thoughts: bool = False) -> list[tuple[str, str]]:
    """What was said, told by role and words or by the call."""
    lines = []
    for number in range(TURNS):
        lines.append(("user", told(number)))
        lines += [("assistant", "")] if with_thoughts and thinks(number) else []
        lines += [("assistant", call_id) for call_id in calls_of(number)]
        lines += [("tool", call_id) for call_id in calls_of(number)]
        lines.append(("assistant", f"Parcel {number} is on its way."))
    return lines


def said_by(line: dict[str, Any]) -> list[tuple[str, str]]:
    message = msgspec.convert(line["message"], Message)
    names = [*tool_calls(message), *tool_results(message)]
    return [(message.role, name) for name in names or [text_of(message.content)]]


def check(house: House, session_id: str, prompts: list[str], swaps: int, *, with_thoughts: bool = False) -> None:
    with house.client(session_id.partition(":")[0]) as reader:
        lines = reader.log(session_id, limit=1_000)["messages"]
    assert [said for line in lines for said in said_by(line)] == said_in_all(with_thoughts=with_thoughts)
    assert swaps >= 1
    assert all(FACT in prompt for prompt in prompts[-10:])
    assert all(told(number) in prompts[number * 2] for number in range(TURNS))
    assert max(map(len, prompts)) < WINDOW * 4 * 2  # with memory and recall, which have a budget of their own


# ── OpenAI Agents SDK ──


class ScriptedModel(Model):
    """Calls the tool, then answers; keeps what it was given."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.number = 0

    async def get_response(self, system_instructions: Any, input: Any, *others: Any, **more: Any) -> ModelResponse:
        return ModelResponse(output=self.answer(input), usage=Usage(), response_id=None)

    async def stream_response(
        self, system_instructions: Any, input: Any, *others: Any, **more: Any
    ) -> AsyncIterator[Any]:
        output = self.answer(input)
        for item in output:
            for block in getattr(item, "content", None) or ():
                yield ResponseTextDeltaEvent(
                    type="response.output_text.delta",
                    item_id=item.id,
                    content_index=0,
                    output_index=0,
                    sequence_number=0,
                    delta=block.text,
                    logprobs=[],
                )
        response = Response(
            id="r",
            object="response",
            created_at=0,
            model="scripted",
            output=output,
            tools=[],
            tool_choice="auto",
            parallel_tool_calls=True,
        )
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=1)

    def answer(self, input: Any) -> list[Any]:
        self.prompts.append(msgspec.json.encode(input).decode())
        assert_paired(input)
        number = self.number
        output: list[Any]
        if input[-1].get("type") == "function_call_output":
            text = ResponseOutputText(type="output_text", text=f"Parcel {number} is on its way.", annotations=[])
            name = f"msg_{number}"
            output = [
                ResponseOutputMessage(id=name, type="message", role="assistant", status="completed", content=[text])
            ]
            self.number += 1
        else:
            output = [
                ResponseFunctionToolCall(
                    id=f"fc_{one}", type="function_call", call_id=one, name="weigh", arguments="{}"
                )
                for one in calls_of(number)
            ]
            if thinks(number):
                output.insert(0, ResponseReasoningItem(id=f"rs_{number}", type="reasoning", summary=[]))
        return output


async def run(agent: Agent, text: str, *, is_streamed: bool, **options: Any) -> Any:
    if not is_streamed:
        return await Runner.run(agent, text, **options)
    streamed = Runner.run_streamed(agent, text, **options)
    kinds = [event.type async for event in streamed.stream_events()]
    assert "raw_response_event" in kinds
    return streamed


def assert_paired(items: list[dict[str, Any]]) -> None:
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    results = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert calls == results
    # OpenAI refuses a call by the name that its reasoning gave it, without the reasoning; and reasoning alone.
    thoughts = {item["id"].removeprefix("rs_") for item in items if item.get("type") == "reasoning"}
    named = {item["call_id"].split("-")[1] for item in items if item.get("type") == "function_call" and "id" in item}
    assert {number for number in named if thinks(int(number))} == thoughts


@function_tool
def weigh() -> str:
    """Weighs it."""
    return "as it was told"


@asynccontextmanager
async def openai_session(house: House, name: str) -> AsyncIterator[OffbookSession]:
    async with house.async_client(name) as memory:
        session = OffbookSession("openai-agents:1", memory, context_window=WINDOW, deadline_seconds=PATIENCE_SECONDS)
        yield session
        await session.close()
        assert await memory.flush()


async def test_an_agent_of_the_openai_agents_sdk_goes_on_for_ever(house: House) -> None:
    model = ScriptedModel()
    agent = Agent(name="harbour", instructions="You are brief.", model=model, tools=[weigh])
    swaps = 0
    for numbers in (range(ANEW_AFTER), range(ANEW_AFTER, TURNS)):
        async with openai_session(house, "openai-agents") as session:
            for number in numbers:
                config = RunConfig(tracing_disabled=True, call_model_input_filter=session.with_memory)
                result = await run(
                    agent, told(number), is_streamed=bool(number % 2), session=session, run_config=config
                )
                assert result.final_output == f"Parcel {number} is on its way."
                if number == KILLED_AFTER:
                    house.kill()
                if number == BACK_AFTER:
                    house.start()
            swaps += session.stats.swaps
    check(house, "openai-agents:1", model.prompts, swaps, with_thoughts=True)


class BusyModel(ScriptedModel):
    """Uses its tool again and again before it answers."""

    def answer(self, input: Any) -> list[Any]:
        self.prompts.append(msgspec.json.encode(input).decode())
        self.number += 1
        call_id = f"call-{self.number}"
        output: Any = ResponseFunctionToolCall(type="function_call", call_id=call_id, name="look_up", arguments="{}")
        if self.number > TURNS:
            text = ResponseOutputText(type="output_text", text="Done.", annotations=[])
            output = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
        return [output]


@function_tool
def look_up() -> str:
    """Looks it up."""
    return "The harbour master says that parcels of this kind go to the pier where the ferries are. " * 2


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_one_long_run_is_swapped_in_its_middle(house: House, is_streamed: bool) -> None:
    model = BusyModel()
    agent = Agent(name="harbour", model=model, tools=[look_up])
    session_id = f"openai-agents:busy-{is_streamed}"
    async with house.async_client("openai-agents") as memory:
        session = OffbookSession(session_id, memory, context_window=WINDOW, deadline_seconds=PATIENCE_SECONDS)
        config = RunConfig(tracing_disabled=True, call_model_input_filter=session.with_memory)
        options: dict[str, Any] = {"session": session, "run_config": config, "max_turns": TURNS + 2}
        result = await run(agent, told(0), is_streamed=is_streamed, **options)
        assert result.final_output == "Done."
        assert session.stats.swaps >= 1
        assert max(map(len, model.prompts)) < WINDOW * 4 * 2
        assert FACT in model.prompts[-1]
        await session.close()
        assert await memory.flush()
        assert (await memory.log(session_id))["lastSeq"] == 2 * TURNS + 2


async def test_items_come_back_as_they_were_and_can_be_taken_back(house: House) -> None:
    items: list[Any] = [
        {"role": "user", "content": "你好 🦜"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "Zm9v"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weigh", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "3 kg"}]},
        {"type": "computer_call", "id": "cu_1", "call_id": "c2", "action": {"type": "wait"}, "status": "completed"},
        {"type": "computer_call_output", "call_id": "c2", "output": {"type": "computer_screenshot"}},
        {"role": "user", "content": "No, wait."},
    ]
    async with house.async_client("items") as memory:
        session = OffbookSession("openai-agents:2", memory, context_window=100_000)
        await session.add_items(items)
        assert await session.get_items() == items
        assert await session.get_items(limit=2) == items[-2:]
        assert await session.get_items(limit=0) == []
        assert await session.pop_item() == items[-1]
        assert await session.get_items() == items[:-1]
        assert await memory.flush()
        again = OffbookSession("openai-agents:2", memory, context_window=100_000)
        left = await again.get_items()  # reasoning is its own model's only, and names that came of it go with it
        assert left == [items[0], {k: v for k, v in items[2].items() if k != "id"}, items[3], *left[3:]]
        assert [item["type"] for item in left[3:]] == ["computer_call", "computer_call_output"]
        await again.clear_session()
        assert await again.get_items() == []
        assert await again.pop_item() is None
        await again.add_items(items[:1])
        assert await again.get_items() == items[:1]
        assert await memory.flush()
        assert "你好" in str((await memory.log("openai-agents:2", newest=True, limit=1))["messages"])


async def test_what_is_forgotten_elsewhere_leaves_a_session_in_use(house: House) -> None:
    async with house.async_client("forgotten") as memory:
        session = OffbookSession("openai-agents:3", memory, context_window=100_000, deadline_seconds=20.0)

        async def given(text: str) -> str:
            items: list[Any] = [*await session.get_items(), {"role": "user", "content": text}]
            await session.add_items(items[-1:])
            data = ModelInputData(input=items, instructions=None)
            return str((await session.with_memory(CallModelData(data, cast(Any, None), None))).input)

        await session.add_items([{"role": "assistant", "content": f"Box {number} is dry."} for number in range(5)])
        assert "heron" in await given("The code of the shed is heron.")
        assert await memory.flush()
        await memory.forget(matching="heron", reason="by request")
        shown = await given("Which box is dry?")
        assert "heron" not in shown
        assert "[forgotten]" not in shown
        assert all(f"Box {number} is dry." in shown for number in range(5))
        assert shown.count("Which box is dry?") == 1
        assert session.stats.swaps == 1
        await given("And now?")
        assert (session.stats.swaps, session.stats.fallbacks) == (1, {})
        await session.close()


# ── LangGraph ──


class ScriptedChat(BaseChatModel):
    prompts: list[str] = Field(default_factory=list)
    number: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **more: Any) -> ChatResult:
        self.prompts.append("\n".join(str(one.content) for one in messages))
        calls = [call["id"] for one in messages if isinstance(one, AIMessage) for call in one.tool_calls]
        assert calls == [one.tool_call_id for one in messages if one.type == "tool"]
        assert messages[0].content == "Be brief."
        if messages[-1].type == "tool":
            answer = AIMessage(f"Parcel {self.number} is on its way.")
            self.number += 1
        else:
            calls = [{"name": "measure", "args": {}, "id": one} for one in calls_of(self.number)]
            answer = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=answer)])


def measure() -> str:
    """Weighs it."""
    return "as it was told"


def hooked(model: ScriptedChat, memory: Client, saver: InMemorySaver) -> tuple[Any, HotSwapHook]:
    hook = hot_swap_hook(memory, context_window=WINDOW, deadline_seconds=PATIENCE_SECONDS)
    hooks: dict[str, Any] = {"pre_model_hook": hook, "post_model_hook": hook.record}
    return create_react_agent(model, [measure], prompt="Be brief.", checkpointer=saver, **hooks), hook


def with_middleware(model: ScriptedChat, memory: Client, saver: InMemorySaver) -> tuple[Any, HotSwapMiddleware]:
    swap = HotSwapMiddleware(memory, context_window=WINDOW, deadline_seconds=PATIENCE_SECONDS)
    agent = create_agent(model, [measure], system_prompt="Be brief.", checkpointer=saver, middleware=[swap])
    return agent, swap


@pytest.mark.parametrize("made", [hooked, with_middleware])
async def test_an_agent_of_langgraph_goes_on_for_ever(house: House, made: Any) -> None:
    model, saver = ScriptedChat(), InMemorySaver()
    session_id = f"langgraph:{made.__name__}"
    run: Any = {"configurable": {"thread_id": session_id}}
    swaps = 0
    for numbers in (range(ANEW_AFTER), range(ANEW_AFTER, TURNS)):
        with house.client("langgraph") as memory:
            agent, swap = made(model, memory, saver)
            for number in numbers:
                said = {"messages": [HumanMessage(told(number))]}
                state = agent.invoke(said, run) if number % 2 else await agent.ainvoke(said, run)
                # Both go the same way: one of them is enough to be killed.
                if number == KILLED_AFTER and made is with_middleware:
                    house.kill()
                if number == BACK_AFTER and made is with_middleware:
                    house.start()
            swaps += swap.session(run).stats.swaps
            assert memory.flush()
    check(house, session_id, model.prompts, swaps)
    assert len(state["messages"]) == sum(
        3 + len(calls_of(number)) for number in range(TURNS)
    )  # the host's own history is whole


async def test_items_of_a_langgraph_store_are_memory(house: House) -> None:
    ada, bob = ("memories", "ada"), ("memories", "bob")
    long = {"text": "你好 🦜" * 30_000, "n": [1, 2.5, None, {"deep": True}]}
    with (
        house.client("store") as memory,
        Client(
            house.daemon.socket_endpoint, agent_id="store", home=house.home / "client", client="store-2"
        ) as elsewhere,
    ):
        store, other = OffbookStore(memory), OffbookStore(elsewhere)
        store.put(ada, "food", {"text": "Ada likes pizza with mushrooms best of all."})
        store.put(ada, "food", {"text": "Ada likes risotto with mushrooms best of all."})
        await store.aput(ada, "long/../x", long)
        store.put(bob, "boat", {"text": "Bob has a boat that is called Zephyr."})
        for each in (store, other, OffbookStore(memory)):
            found = each.get(ada, "food")
            assert found is not None
            assert found.value == {"text": "Ada likes risotto with mushrooms best of all."}
            assert (await each.aget(ada, "long/../x")).value == long  # type: ignore[union-attr]
            assert each.get(ada, "none") is None
            assert sorted(each.list_namespaces()) == [ada, bob]
            assert {item.key for item in each.search(("memories",))} == {"food", "long/../x", "boat"}
            assert [item.key for item in each.search(ada, filter={"text": found.value["text"]})] == ["food"]
        memory.reindex()
        best = wait_for(lambda: other.search(("memories",), query="What is the boat called?"))
        assert best[0].key == "boat"
        assert best[0].score is not None
        assert "boat" not in {item.key for item in other.search(ada, query="What is the boat called?")}
        store.delete(bob, "boat")
        assert other.get(bob, "boat") is None
        assert OffbookStore(memory).search(bob) == []
        assert "Zephyr" not in str(memory.log("langgraph-store/memories/bob/boat"))
        store.put(bob, "boat", {"text": "Bob sold it."})
        assert memory.flush()
        assert other.get(bob, "boat").value == {"text": "Bob sold it."}  # type: ignore[union-attr]


def test_an_item_is_found_beside_much_that_was_said(house: House) -> None:
    with house.client("crowded") as memory:
        store = OffbookStore(memory)
        store.put(("memories", "bob"), "boat", {"text": "Bob sold his boat."})
        store.put(("memories", "bob"), "cart", {"text": "Bob has a cart."})
        for number in range(130):
            memory.record("chat", ("user", f"The boat of pier {number}: which boat is boat number {number * 7}?"))
        assert memory.flush()

        def found_in() -> set[str]:
            return {entry.session_id for entry in memory.recall("chat", "Which boat?", limit=100).entries}

        wait_for(lambda: found_in() == {"chat"})  # the item is not among them, once all of them are indexed
        assert [item.key for item in store.search(("memories",), query="Which boat?")] == ["boat"]


def wait_for(asked: Any, seconds: float = 200.0) -> Any:
    until = time.monotonic() + seconds
    while not (found := asked()) and time.monotonic() < until:
        time.sleep(0.1)
    assert found
    return found


# ── Pydantic AI ──


class ScriptedFunction:
    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.number = 0

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> PydanticResponse:
        self.prompts.append("\n".join(shown(messages)))
        assert "You are brief." in self.prompts[-1] or info.instructions
        parts = [part for message in messages for part in message.parts]
        calls = [part.tool_call_id for part in parts if part.part_kind == "tool-call"]
        assert calls == [part.tool_call_id for part in parts if part.part_kind == "tool-return"]
        if messages[-1].parts[-1].part_kind == "tool-return":
            self.number += 1
            return PydanticResponse(parts=[TextPart(f"Parcel {self.number - 1} is on its way.")])
        return PydanticResponse(parts=[ToolCallPart("measure", {}, one) for one in calls_of(self.number)])


def shown(messages: list[ModelMessage]) -> list[str]:
    parts = [part for message in messages for part in message.parts]
    contents = [getattr(part, "content", "") for part in parts]
    return [one if isinstance(one, str) else "\n".join(map(str, one)) for one in contents]


@pytest.mark.parametrize("is_processor", [False, True])
async def test_an_agent_of_pydantic_ai_goes_on_for_ever(house: House, is_processor: bool) -> None:
    model = ScriptedFunction()
    session_id = f"pydantic-ai:{is_processor}"
    swaps = 0
    kept = b"[]"
    for numbers in (range(ANEW_AFTER), range(ANEW_AFTER, TURNS)):
        with house.client("pydantic-ai") as memory:
            swap = HotSwap(memory, context_window=WINDOW, deadline_seconds=PATIENCE_SECONDS)
            capability: Any = ProcessHistory(swap) if is_processor else swap
            agent = PydanticAgent(
                FunctionModel(model), system_prompt="You are brief.", tools=[measure], capabilities=[capability]
            )
            history = ModelMessagesTypeAdapter.validate_json(kept)
            for number in numbers:
                result = await agent.run(told(number), conversation_id=session_id, message_history=history)
                history = result.all_messages()
                if number == KILLED_AFTER and not is_processor:
                    house.kill()
                if number == BACK_AFTER and not is_processor:
                    house.start()
            kept = ModelMessagesTypeAdapter.dump_json(history)
            if is_processor:  # it does not see the last answer before the next request
                swap._answered(session_id, history[-1])
            swaps += swap.session(session_id).stats.swaps
            assert memory.flush()
    check(house, session_id, model.prompts, swaps)
    if not is_processor:
        prompts = [part.content for one in history for part in one.parts if isinstance(part, UserPromptPart)]
        assert prompts == [told(number) for number in range(TURNS)]  # the host's own history is whole


# ── a host that keeps only words, and makes its messages anew for each turn ──

Asking = Callable[[str, list[tuple[str, str]], str], tuple[str, str]]
"""The answer, and what the model was given for it."""


def words_of(number: int) -> str:
    return "Go on." if 4 <= number < 8 or number == 10 else told(number)


def graph_of_words(made: Any, memory: Client, first: int) -> Asking:
    model = ScriptedChat(number=first)
    agent, _ = made(model, memory, None)

    def asked(session_id: str, rows: list[tuple[str, str]], text: str) -> tuple[str, str]:
        run: Any = {"configurable": {"thread_id": session_id}}
        answer = agent.invoke({"messages": [*rows, ("user", text)]}, run)["messages"][-1].content
        assert text in model.prompts[-1]
        return str(answer), model.prompts[-1]

    return asked


def pydantic_of_words(is_processor: bool, memory: Client, first: int) -> Asking:
    model = ScriptedFunction()
    swap = HotSwap(memory, context_window=WINDOW, deadline_seconds=PATIENCE_SECONDS)
    capability: Any = ProcessHistory(swap) if is_processor else swap
    model.number = first
    agent = PydanticAgent(
        FunctionModel(model), instructions="You are brief.", tools=[measure], capabilities=[capability]
    )

    def asked(session_id: str, rows: list[tuple[str, str]], text: str) -> tuple[str, str]:
        history: list[ModelMessage] = [
            ModelRequest([UserPromptPart(words)]) if role == "user" else PydanticResponse([TextPart(words)])
            for role, words in rows
        ]
        output = agent.run_sync(text, conversation_id=session_id, message_history=history).output
        assert text in model.prompts[-1]
        return output, model.prompts[-1]

    return asked


def said_in_turn(number: int, words: str, answer: str) -> list[tuple[str, str]]:
    calls = calls_of(number)
    return [
        ("user", words),
        *(("assistant", call_id) for call_id in calls),
        *(("tool", call_id) for call_id in calls),
        ("assistant", answer),
    ]


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("langgraph-hook", partial(graph_of_words, hooked)),
        ("langgraph-middleware", partial(graph_of_words, with_middleware)),
        ("pydantic-ai-capability", partial(pydantic_of_words, False)),
        ("pydantic-ai-processor", partial(pydantic_of_words, True)),
    ],
)
def test_a_history_that_is_made_anew_is_recorded_once(house: House, name: str, made: Any) -> None:
    rows: list[tuple[str, str]] = []
    expected: list[tuple[str, str]] = []
    for numbers in (range(7), range(7, 12)):
        with house.client(name) as memory:
            asked = made(memory, numbers[0])
            for number in numbers:
                words = words_of(number)
                answer, _ = asked("words", rows, words)
                rows += [("user", words), ("assistant", answer)]
                expected += said_in_turn(number, words, answer)
            assert memory.flush()
    if name.endswith("processor"):
        expected.pop()  # it does not see the last answer before the next request
    with house.client(name) as reader:
        lines = reader.log("words", limit=1_000)["messages"]
    assert [said for line in lines for said in said_by(line)] == expected


@pytest.mark.parametrize("turns", ["ABBBA", "ABABAB"])
@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("langgraph-workers", partial(graph_of_words, hooked)),
        ("pydantic-ai-workers", partial(pydantic_of_words, False)),
    ],
)
def test_workers_that_share_a_conversation_know_what_the_others_said(
    house: House, name: str, made: Any, turns: str
) -> None:
    name += turns  # an agent of its own: nothing else comes to its mind
    rows: list[tuple[str, str]] = []
    expected: list[tuple[str, str]] = []
    with ExitStack() as clients:
        memories = {worker: clients.enter_context(house.client(name, worker)) for worker in "AB"}
        numbers = {"A": 0, "B": 100}
        workers = {worker: made(memories[worker], numbers[worker]) for worker in "AB"}
        for turn, worker in enumerate(turns):
            words = f"Question {turn}?"
            answer, prompt = workers[worker]("words", rows, words)
            said = [text for _, text in [*rows, ("user", words)]]
            assert [line for line in prompt.splitlines() if line in said] == said, prompt
            rows += [("user", words), ("assistant", answer)]
            expected += said_in_turn(numbers[worker], words, answer)
            numbers[worker] += 1
            assert memories[worker].flush()
        lines = memories["A"].log("words", limit=1_000)["messages"]
    assert [said for line in lines for said in said_by(line)] == expected


# ── the page ──


@pytest.mark.parametrize(
    "step", list(steps((REPOSITORY / "docs/how-to/python-frameworks.md").read_text(encoding="utf-8")))
)
def test_the_examples_of_the_page_work_as_written(
    house: House, step: Step, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OFFBOOK_HOME", str(house.home / "home"))
    exec(compile(step.source, f"line {step.line}", "exec"), {"__name__": "__main__"})
    assert step.printed is not None
    printed = capsys.readouterr().out
    assert pattern(step.printed).fullmatch(printed), printed
