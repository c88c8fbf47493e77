"""Any endpoint that speaks OpenAI's chat completions: Ollama, llama.cpp, vLLM, LM Studio, a company's own, OpenAI."""

from __future__ import annotations

from typing import Any

import msgspec

from offbook.models.endpoint import Endpoint, bearer
from offbook.models.protocols import Prompt, Written
from offbook.models.remote import Refused, checked_key
from offbook.models.summarizers.prompt import RemoteSummarizer, text_of, tidied, usage_of, with_cached

PATH = "/chat/completions"
ENDPOINT_SETTING = "summarizer.endpoint"
KEY_SETTING = "summarizer.apiKeyVariable"


class ChoiceMessage(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None


class Choice(msgspec.Struct, frozen=True):
    message: ChoiceMessage
    finish_reason: str | None = None


class Completion(msgspec.Struct, frozen=True):
    choices: list[Choice]
    usage: Any = None
    """Some servers tell none, some tell it otherwise."""


class OpenAIChat(RemoteSummarizer):
    """A `Summarizer`."""

    def __init__(
        self,
        endpoint: str,
        model: str,
        *,
        key: str | None = None,
        key_variable: str = "OPENAI_API_KEY",
        timeout_seconds: float = 120.0,
        **asking: Any,
    ) -> None:
        """`asking`: as `RemoteSummarizer` takes it."""
        shown_variable = checked_key(key, key_variable, KEY_SETTING)
        address = Endpoint(
            endpoint,
            PATH,
            key=key,
            timeout_seconds=timeout_seconds,
            headers=bearer(key),
            setting=ENDPOINT_SETTING,
            key_setting=KEY_SETTING,
            kept_connections=0,
        )
        super().__init__(
            "openai",
            "openai-chat",
            address,
            model,
            endpoint_setting=ENDPOINT_SETTING,
            key_variable=shown_variable,
            **asking,
        )
        self._length_field = "max_tokens"

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

    def _question(self, prompt: Prompt) -> dict[str, Any]:
        return {
            "model": self._model,
            "messages": [{"role": message.role, "content": text_of(message)} for message in prompt.messages],
            "stream": False,
            self._length_field: prompt.max_output_tokens,
        }

    def _adapted_to(self, refused: Refused) -> bool:
        """Newer models of OpenAI take the length under another name; others know only this one."""
        if refused.names("max_completion_tokens") and self._length_field == "max_tokens":
            self._length_field = "max_completion_tokens"
            return True
        return super()._adapted_to(refused)


def _cached(usage: Any) -> Any:
    """OpenAI's field, or DeepSeek's."""
    if not isinstance(usage, dict):
        return 0
    details = usage.get("prompt_tokens_details")
    return details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
