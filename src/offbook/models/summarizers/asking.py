"""What all summarizers behind an address have in common: a question, put again in the form that the server takes."""

from __future__ import annotations

from typing import Any

import msgspec

from offbook.errors import ModelUnavailable
from offbook.models.endpoint import Endpoint
from offbook.models.remote import Refused, Remote, refusal
from offbook.models.summarizers.answers import FIRST_PAUSE_SECONDS, TEMPERATURE, Prices, fingerprint_of
from offbook.protocols import Prompt
from offbook.summaries import Usage


class RemoteSummarizer:
    """All of a `Summarizer` but `write`, and how its question is put (`_question`)."""

    def __init__(
        self,
        name: str,
        protocol: str,
        endpoint: Endpoint,
        model: str,
        *,
        endpoint_setting: str,
        key_variable: str,
        context_tokens: int = 128_000,
        prices: Prices | None = None,
        attempts: int = 3,
        first_pause_seconds: float = FIRST_PAUSE_SECONDS,
    ) -> None:
        self._remote = Remote(
            endpoint,
            called="the summarizer",
            model=model,
            settings=(endpoint_setting, "model"),
            key_variable=key_variable,
        )
        self.name = f"{name}:{model}"
        self.fingerprint = fingerprint_of(protocol, self._remote.url, model)
        self.context_tokens = context_tokens
        self._model = model
        self._prices = prices or Prices()
        self._attempts = attempts
        self._first_pause_seconds = first_pause_seconds
        self._takes_temperature = True

    def dollars_for(self, usage: Usage) -> float:
        return self._prices.dollars(usage)

    def close(self) -> None:
        """Breaks off a running call."""
        self._remote.close()

    def _question(self, prompt: Prompt) -> dict[str, Any]:
        raise NotImplementedError

    def _ask(self, prompt: Prompt) -> bytes:
        while True:
            question = self._question(prompt)
            if self._takes_temperature:
                question["temperature"] = TEMPERATURE
            try:
                return self._remote.ask(
                    msgspec.json.encode(question),
                    attempts=self._attempts,
                    first_pause_seconds=self._first_pause_seconds,
                ).body
            except ModelUnavailable as error:
                refused = refusal(error)
                if refused is None or refused.status != 400 or not self._adapted_to(refused):
                    raise

    def _adapted_to(self, refused: Refused) -> bool:
        """Whether the question will be another one now. Newer models take no temperature."""
        if not (refused.names("temperature") and self._takes_temperature):
            return False
        self._takes_temperature = False
        return True
