"""The seam: whoever serves MCP gives a way to ask a verb, and for whom."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from offbook.model.errors import NotFound

Ask = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""A wire verb and its JSON body to its JSON answer; raises OffbookError."""

DEFAULT_SESSION = "mcp"
"""Who asks, and what is recorded into, where a client names no session: the protocol has none that lasts."""
CONTEXT_CHARS = 24_000
"""Of a conversation, where nobody says how much: in a resource and in a prompt."""
INSTALL_HINT = "MCP needs an extra that is not installed, or too old here: run `pip install 'offbook[mcp]'`"
SDK = frozenset({"mcp", "mcp_types"})


@dataclass(frozen=True)
class Memory:
    """A provider to ask, for one agent and session where a client names no other."""

    ask: Ask
    agent_id: str | None
    session_id: str

    def owned(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body with the agent that is meant; none is left to the provider, which knows its default."""
        return body if self.agent_id is None or "agentId" in body else {"agentId": self.agent_id, **body}

    def within(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body of a verb that asks from within a session."""
        return self.owned(body if "sessionId" in body else {"sessionId": self.session_id, **body})


def load(module: str) -> None:
    """Import a module of this package that uses the SDK, or say how to get that."""
    try:
        import_module(f"offbook.api.mcp.{module}")
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in SDK:
            raise
        raise NotFound(INSTALL_HINT) from None
