"""What every verb of a client is made of: a body with its owner, a request, an answer of a kind."""

from __future__ import annotations

from typing import Any, TypeVar
from urllib.parse import quote

from offbook.client.recorder import encoded
from offbook.client.transport import Answer, Transport, content_of, value_of

T = TypeVar("T")

PATIENCE_SECONDS = 600.0
"""For a verb that looks through the whole history, more than once, or waits for a model: the answer may be long in
coming."""


class Asking:
    """Asks one provider, for one agent where no other is named."""

    def __init__(self, transport: Transport, *, agent_id: str | None, timeout_seconds: float) -> None:
        self.agent_id = agent_id
        self._transport = transport
        self._timeout_seconds = timeout_seconds

    async def call(self, verb: str, body: dict[str, Any] | None = None) -> Any:
        """Any verb, with the fields of the contract as they are on the wire."""
        return value_of(await self._post(verb, body or {}), object)

    def _of(self, session_id: str | None, agent_id: str | None, **fields: Any) -> dict[str, Any]:
        owner = self.agent_id if agent_id is None else agent_id
        named = {"sessionId": session_id, "agentId": owner, **fields}
        return {name: value for name, value in named.items() if value is not None}

    async def _post(self, verb: str, body: dict[str, Any], *, extra_seconds: float = 0.0) -> Answer:
        if body.get("depth") == "deep":  # the provider's own deadline ends it: `rerank.deadline`
            extra_seconds += PATIENCE_SECONDS
        limit = self._timeout_seconds + extra_seconds
        return await self._transport.post(f"/v1/{quote(verb)}", encoded(body), timeout_seconds=limit)

    async def _ask(self, verb: str, body: dict[str, Any], kind: type[T], *, extra_seconds: float = 0.0) -> T:
        return value_of(await self._post(verb, body, extra_seconds=extra_seconds), kind)

    async def _ask_maybe(self, verb: str, body: dict[str, Any], kind: type[T]) -> T | None:
        answer = await self._post(verb, body)
        return None if content_of(answer).strip() == b"null" else value_of(answer, kind)
