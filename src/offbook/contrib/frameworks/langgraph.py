"""LangGraph: a hook before the model that compacts by hot swap, and a store (`langgraph_store`).

    memory = Client(agent_id="main")
    hook = hot_swap_hook(memory, context_window=200_000)
    graph.add_node("remember", hook)        # before the node that gives the model `llm_input_messages`
    graph.add_node("record", hook.record)   # after it
    agent = graph.compile(store=OffbookStore(memory), checkpointer=…)
    agent.invoke({"messages": [("user", "Where were we?")]}, {"configurable": {"thread_id": "telegram:42"}})

The hook records what is new in the state's `messages` and never changes them. `create_react_agent` takes the two as
`pre_model_hook` and `post_model_hook`; for LangChain's `create_agent` there is a middleware that does the same
(`offbook.contrib.frameworks.langchain`). Where the provider is away the model gets the messages as they are, and what
was said waits in the outbox.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from offbook.client.blocking import Client
from offbook.client.blocking_hot_swap import BlockingHotSwapSession
from offbook.contrib.frameworks.history_matcher import Sessions, missing

try:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

    from offbook.contrib.frameworks.langchain_turns import Turns
    from offbook.contrib.frameworks.langgraph_store import OffbookStore
except ImportError as error:
    raise missing("LangGraph", "langgraph", error) from error

__all__ = ["HotSwapHook", "OffbookStore", "hot_swap_hook"]


def hot_swap_hook(memory: Client, *, context_window: int, session_id: str | None = None, **options: Any) -> HotSwapHook:
    """For a node before the model, or `pre_model_hook`. The session is the run's `thread_id` where none is named;
    `options` are those of `HotSwapSession`."""
    return HotSwapHook(Sessions(memory, {**options, "context_window": context_window}), session_id)


class HotSwapHook:
    """Called with the graph's state. For any thread; two runs of one thread at a time are LangGraph's to refuse."""

    def __init__(self, sessions: Sessions, session_id: str | None) -> None:
        self._turns = Turns(sessions, session_id)

    def __call__(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        """The messages for the model: the instructions, what stands for the past, the newest word for word, with memory
        and recall in their places."""
        messages = _messages_in(state)
        return {"llm_input_messages": self._turns.given(self.session(config), messages, messages)}

    def record(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        """For a node after the model, or `post_model_hook`: what it has just said is recorded at once, not only before
        the next turn."""
        self._turns.answered(self.session(config), _messages_in(state))
        return {}

    def session(self, config: RunnableConfig) -> BlockingHotSwapSession:
        """Of a run: its `stats` and `events` tell of its swaps."""
        return self._turns.session(config)


def _messages_in(state: Any) -> Sequence[BaseMessage]:
    messages = state["messages"] if isinstance(state, Mapping) else getattr(state, "messages", state)
    return list(messages)
