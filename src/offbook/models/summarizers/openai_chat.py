"""Any endpoint that speaks OpenAI's chat completions: Ollama, llama.cpp, vLLM, LM Studio, a company's own, OpenAI."""

from __future__ import annotations

from typing import Any

import msgspec

from offbook.errors import ModelUnavailable
from offbook.models.endpoint import Endpoint, bearer
from offbook.models.remote import Remote, checked_key, refusal
from offbook.models.summarizers.answers import (
    FIRST_PAUSE_SECONDS,
    TEMPERATURE,
    Prices,
    fingerprint_of,
    text_of,
    tidied,
    usage_of,
    with_cached,
)
from offbook.protocols import Prompt, Written
from offbook.summaries import Usage

PATH = "/chat/completions"
ENDPOINT_SETTING = "summarizer.endpoint"
KEY_SETTING = "summarizer.apiKeyVariable"


class Said(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None


class Choice(msgspec.Struct, frozen=True):
    message: Said
    finish_reason: str | None = None


class Completion(msgspec.Struct, frozen=True):
    choices: list[Choice]
    usage: Any = None
    """Some servers tell none, some tell it otherwise."""


class OpenAIChat:
    """A `Summarizer`."""

    def __init__(
        self,
        endpoint: str,
        model: str,
        *,
        key: str | None = None,
        key_variable: str = "OPENAI_API_KEY",
        context_tokens: int = 128_000,
        prices: Prices | None = None,
        attempts: int = 3,
        timeout_seconds: float = 120.0,
        first_pause_seconds: float = FIRST_PAUSE_SECONDS,
    ) -> None:
        shown_variable = checked_key(key, key_variable, KEY_SETTING)
        self._remote = Remote(
            Endpoint(
                endpoint,
                PATH,
                key=key,
                timeout_seconds=timeout_seconds,
                headers=bearer(key),
                setting=ENDPOINT_SETTING,
                key_setting=KEY_SETTING,
                kept_connections=0,
            ),
            called="the summarizer",
            model=model,
            settings=(ENDPOINT_SETTING, "model"),
            key_variable=shown_variable,
        )
        self.name = f"openai:{model}"
        self.fingerprint = fingerprint_of("openai-chat", self._remote.url, model)
        self.context_tokens = context_tokens
        self._model = model
        self._prices = prices or Prices()
        self._attempts = attempts
        self._first_pause_seconds = first_pause_seconds
        self._length_field = "max_tokens"
        self._takes_temperature = True

    def dollars_for(self, usage: Usage) -> float:
        return self._prices.dollars(usage)

    def write(self, prompt: Prompt) -> Written:
        body = self._ask(prompt)
        try:
            completion = msgspec.json.decode(body, type=Completion)
            choice = completion.choices[0]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, IndexError) as error:
            raise self._remote.wrong(f"what is not an answer of {PATH} ({error})", "chat completions") from None
        text = tidied(choice.message.content or "", is_cut=choice.finish_reason == "length")
        usage = with_cached(
            usage_of(completion.usage, ("prompt_tokens", "completion_tokens"), prompt, text),
            _cached(completion.usage),
        )
        return Written(text=text, usage=msgspec.structs.replace(usage, dollars=self._prices.dollars(usage)))

    def close(self) -> None:
        """Breaks off a running call."""
        self._remote.close()

    def _ask(self, prompt: Prompt) -> bytes:
        """Newer models of OpenAI take the length under another name and no temperature; others know only these."""
        while True:
            body: dict[str, Any] = {
                "model": self._model,
                "messages": [{"role": message.role, "content": text_of(message)} for message in prompt.messages],
                "stream": False,
                self._length_field: prompt.max_output_tokens,
            }
            if self._takes_temperature:
                body["temperature"] = TEMPERATURE
            try:
                return self._remote.ask(
                    msgspec.json.encode(body),
                    attempts=self._attempts,
                    first_pause_seconds=self._first_pause_seconds,
                ).body
            except ModelUnavailable as error:
                if not self._adapted_to(error):
                    raise

    def _adapted_to(self, error: ModelUnavailable) -> bool:
        refused = refusal(error)
        if refused is None or refused.status != 400:
            return False
        if refused.names("max_completion_tokens") and self._length_field == "max_tokens":
            self._length_field = "max_completion_tokens"
            return True
        if refused.names("temperature") and self._takes_temperature:
            self._takes_temperature = False
            return True
        return False


def _cached(usage: Any) -> Any:
    """OpenAI's field, or DeepSeek's."""
    if not isinstance(usage, dict):
        return 0
    details = usage.get("prompt_tokens_details")
    return details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
