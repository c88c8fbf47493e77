"""Anthropic's Messages. The end of the memories is marked, so that the next call reads them from the prompt cache."""

from __future__ import annotations

from typing import Any

import msgspec

from offbook.model.summary import Usage
from offbook.models.endpoint import Endpoint
from offbook.models.protocols import Prompt, Written
from offbook.models.remote import checked_key
from offbook.models.summarizers.prompt import RemoteSummarizer, text_of, tidied, usage_of, with_cached

PATH = "/v1/messages"
VERSION = "2023-06-01"
CACHE_WRITE_SURCHARGE = 0.25
"""What is written to its cache for five minutes costs that much more than what is only read."""
ENDPOINT_SETTING = "summarizer.anthropicEndpoint"
KEY_SETTING = "summarizer.anthropicKeyVariable"


class Part(msgspec.Struct, frozen=True):
    type: str
    text: str = ""


class Reply(msgspec.Struct, frozen=True):
    content: list[Part]
    stop_reason: str | None = None
    usage: Any = None


class Anthropic(RemoteSummarizer):
    """A `Summarizer`."""

    def __init__(
        self,
        endpoint: str,
        model: str,
        *,
        key: str,
        key_variable: str = "ANTHROPIC_API_KEY",
        timeout_seconds: float = 120.0,
        **asking: Any,
    ) -> None:
        """`asking`: as `RemoteSummarizer` takes it."""
        shown_variable = checked_key(key, key_variable, KEY_SETTING)
        address = Endpoint(
            endpoint.rstrip("/").removesuffix("/v1"),
            PATH,
            key=key,
            timeout_seconds=timeout_seconds,
            headers={"x-api-key": key, "anthropic-version": VERSION},
            setting=ENDPOINT_SETTING,
            key_setting=KEY_SETTING,
            kept_connections=0,
        )
        super().__init__(
            "anthropic",
            "anthropic",
            address,
            model,
            endpoint_setting=ENDPOINT_SETTING,
            key_variable=shown_variable,
            **asking,
        )

    def write(self, prompt: Prompt) -> Written:
        try:
            reply = msgspec.json.decode(self._ask(prompt), type=Reply)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._remote.wrong(f"what is not an answer of {PATH} ({error})", "messages") from None
        said = "".join(part.text for part in reply.content if part.type == "text")
        text = tidied(said, is_cut=reply.stop_reason == "max_tokens")
        usage, dollars = self._used(reply.usage, prompt, text)
        return Written(text=text, usage=msgspec.structs.replace(usage, dollars=dollars))

    def _question(self, prompt: Prompt) -> dict[str, Any]:
        return {"model": self._model, "max_tokens": prompt.max_output_tokens, "messages": _messages(prompt)}

    def _used(self, reported: Any, prompt: Prompt, text: str) -> tuple[Usage, float]:
        """It counts what was read anew, what was written to the cache and what was read from it apart."""
        counts = reported if isinstance(reported, dict) else {}
        created, cached = (
            count if isinstance(count := counts.get(name), int) and count > 0 else 0
            for name in ("cache_creation_input_tokens", "cache_read_input_tokens")
        )
        usage = usage_of(reported, ("input_tokens", "output_tokens"), prompt, text)
        if created or cached:
            usage = msgspec.structs.replace(usage, input_tokens=usage.input_tokens + created + cached)
        usage = with_cached(usage, cached)
        surcharge = Usage(input_tokens=round(created * CACHE_WRITE_SURCHARGE))
        return usage, self._prices.dollars(usage) + self._prices.dollars(surcharge)


def _messages(prompt: Prompt) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"role": message.role, "content": [{"type": "text", "text": text_of(message)}]} for message in prompt.messages
    ]
    if prompt.stable:
        messages[prompt.stable - 1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return messages
