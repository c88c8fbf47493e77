"""The methods of `HotSwapSession`, for callers that block.

Made by `make docs`. Change what it is made from, not this file.
"""

from __future__ import annotations

from typing import Any

from offbook.client.hot_swap import HotSwapSession
from offbook.client.loop_thread import OnLoop
from offbook.client.recorder import MessageLike
from offbook.client.swap_question import SwapStats
from offbook.model.types import Message


class SessionMethods(OnLoop):
    _session: HotSwapSession

    def messages(self) -> list[Message]:
        return self._run(self._session.messages())

    def openai_messages(self) -> list[dict[str, Any]]:
        return self._run(self._session.openai_messages())

    def anthropic_request(self) -> dict[str, Any]:
        return self._run(self._session.anthropic_request())

    def as_openai(self) -> list[dict[str, Any]]:
        return self._session.as_openai()

    def as_anthropic(self) -> dict[str, Any]:
        return self._session.as_anthropic()

    def start(self, timeout_seconds: float = 2.0) -> list[Message]:
        return self._run(self._session.start(timeout_seconds))

    def add(self, message: MessageLike) -> Message:
        return self._session.add(message)

    def knows(self, message_id: str) -> bool:
        return self._session.knows(message_id)

    def recorded(self, most: int) -> list[Message]:
        return self._run(self._session.recorded(most))

    def turn_messages(self, prompt: str | None = None) -> list[Message]:
        return self._run(self._session.turn_messages(prompt))

    def let_go(self, forgets: int | None) -> bool:
        return self._run(self._session.let_go(forgets))

    def report_usage(self, prompt_tokens: int | None) -> None:
        self._session.report_usage(prompt_tokens)

    @property
    def used_tokens(self) -> int:
        return self._session.used_tokens

    @property
    def stats(self) -> SwapStats:
        return self._session.stats

    def close(self) -> None:
        self._run(self._session.close())
