"""A provider that answers what it was told to and remembers what it was asked; and an environment without the SDK."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from offbook.api.mcp.asking import Memory
from offbook.model.errors import OffbookError


class Provider:
    def __init__(self, **answers: Any) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Any] = answers

    async def ask(self, verb: str, body: dict[str, Any]) -> Any:
        self.asked.append((verb, body))
        answer = self.answers.get(verb, {})
        if isinstance(answer, OffbookError):
            raise answer
        return answer(body) if callable(answer) else answer

    def memory(self, agent_id: str | None = None, session_id: str = "here") -> Memory:
        return Memory(self.ask, agent_id, session_id)


def without_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were not installed, and nothing that uses it loaded yet."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "mcp"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("server", "streamable"):
        monkeypatch.delitem(sys.modules, f"offbook.api.mcp.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
