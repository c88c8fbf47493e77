"""LangChain: a middleware for `create_agent` that compacts by hot swap and records what is said.

    memory = Client(agent_id="main")
    swap = HotSwapMiddleware(memory, context_window=200_000)
    agent = create_agent(model, tools, middleware=[swap], checkpointer=…)
    agent.invoke({"messages": [("user", "Where were we?")]}, {"configurable": {"thread_id": "telegram:42"}})

It changes only what the model is given: the state, and so each checkpoint, stays whole. Put it first: what other
middleware adds to a request then stays as that has made it. Where the provider is away the model gets the messages as
they are, and what was said waits in the outbox. A store for the agent is in `offbook.contrib.frameworks.langgraph`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from offbook.client.blocking import Client
from offbook.client.blocking_hot_swap import BlockingHotSwapSession
from offbook.contrib.frameworks.history_matcher import Sessions, missing

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain_core.messages import convert_to_messages
    from langgraph.config import get_config
    from langgraph.runtime import Runtime

    from offbook.contrib.frameworks.langchain_turns import Turns
except ImportError as error:
    raise missing("LangChain", "langchain", error) from error


class HotSwapMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """The session is the run's `thread_id` where none is named; `options` are those of `HotSwapSession`. For any
    thread, with `invoke` and `ainvoke`. An agent inside another's tool has that one's `thread_id`: give its middleware
    a `session_id`, or do without."""

    def __init__(self, memory: Client, *, context_window: int, session_id: str | None = None, **options: Any) -> None:
        super().__init__()
        self._turns = Turns(Sessions(memory, {**options, "context_window": context_window}), session_id)

    def session(self, config: Mapping[str, Any]) -> BlockingHotSwapSession:
        """Of a run: its `stats` and `events` tell of its swaps."""
        return self._turns.session(config)

    # ── what LangChain calls ──

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(self._given(request, get_config()))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        return await handler(await asyncio.to_thread(self._given, request, get_config()))

    def after_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """LangChain runs it on a thread of its own where the agent is asynchronous."""
        self._turns.answered(self.session(get_config()), state["messages"])

    def _given(self, request: ModelRequest[Any], config: Mapping[str, Any]) -> ModelRequest[Any]:
        # Other middleware may have put in messages for this request only, and as dictionaries.
        shown = convert_to_messages(request.messages)
        given: list[Any] = list(self._turns.given(self.session(config), request.state["messages"], shown))
        return request.override(messages=given)
