"""A session's messages in the shapes that the APIs of models take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from offbook.client.slot import Slot
from offbook.types import Message


class SessionShapes(ABC):
    _slot: Slot

    @abstractmethod
    async def messages(self) -> list[Message]: ...

    async def openai_messages(self) -> list[dict[str, Any]]:
        """`messages()`, as the `messages` of a request to OpenAI's API."""
        await self.messages()
        return self.as_openai()

    async def anthropic_request(self) -> dict[str, Any]:
        """`messages()`, as the `system` and the `messages` of a request to Anthropic's."""
        await self.messages()
        return self.as_anthropic()

    def as_openai(self) -> list[dict[str, Any]]:
        """Slot A as the last `messages()` left it, and what was added since. Nothing is swapped here."""
        from offbook.compression.provider_shapes import to_openai

        return to_openai(self._slot.messages)

    def as_anthropic(self) -> dict[str, Any]:
        """As `as_openai`, for Anthropic's API."""
        from offbook.compression.provider_shapes import to_anthropic

        return to_anthropic(self._slot.messages)
