"""Summarizers behind an address: OpenAI's chat completions, Anthropic's Messages, and what they have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, ClassVar

import msgspec

from offbook.model.errors import ModelUnavailable
from offbook.model.sentences import ends
from offbook.model.settings.sections import Summarizer
from offbook.model.summary import Usage
from offbook.model.types import Message, Value
from offbook.models.embedder import readable
from offbook.models.endpoint import Endpoint, Refused, Remote, bearer, checked_key, refusal
from offbook.models.protocols import Prompt, Written
from offbook.models.tokens import estimate_tokens

# ── What all of them share: prices, and an answer made ready to be judged ──

TEMPERATURE = 0.2
"""A memory is an account and not a story; and not 0, at which small models fall into loops."""
FIRST_PAUSE_SECONDS = 1.0
_MILLION = 1_000_000
# Models that reason do so aloud, where a server does not take it out.
_THOUGHT_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


class Prices(Value, frozen=True):
    """Dollars for a million tokens."""

    input: float = 0.0
    cached: float = 0.0
    output: float = 0.0

    def dollars(self, usage: Usage) -> float:
        """What is read from the cache costs as much as the rest where no price is set for it: rather too much."""
        cached_price = self.cached or self.input
        anew = usage.input_tokens - usage.cached_tokens
        total = anew * self.input + usage.cached_tokens * cached_price + usage.output_tokens * self.output
        return total / _MILLION


def prices_of(settings: Summarizer) -> Prices:
    return Prices(
        input=settings.dollars_per_million_input,
        cached=settings.dollars_per_million_cached,
        output=settings.dollars_per_million_output,
    )


def fingerprint_of(kind: str, *parts: str) -> str:
    """Another server of the same name may run other weights, so the address is one of the parts."""
    return f"{kind}:{sha256(chr(0).join(parts).encode()).hexdigest()[:16]}"


def text_of(message: Message) -> str:
    """As an endpoint takes it."""
    assert isinstance(message.content, str)
    return readable(message.content).replace("\0", " ")


def tidied(text: str, *, is_cut: bool) -> str:
    """Without thoughts spoken aloud; where the answer was cut at its longest, without the sentence that has no end."""
    text = _THOUGHT_END.split(readable(text))[-1]  # templates open a thought themselves, so it may have no beginning
    if is_cut:
        last = max(ends(text), default=0)
        text = text[:last] if last > len(text) // 2 else text
    return text.replace("\0", " ").strip()


def usage_of(found: Any, names: tuple[str, str], prompt: Prompt, text: str) -> Usage:
    """The tokens read and written that the answer tells under these names; where it tells none, an estimate."""
    reported = found if isinstance(found, dict) else {}
    read, written = (_count(reported.get(name)) for name in names)
    return Usage(
        input_tokens=read or sum(estimate_tokens(text_of(message)) for message in prompt.messages),
        output_tokens=written or estimate_tokens(text),
    )


def with_cached(usage: Usage, cached: Any) -> Usage:
    return msgspec.structs.replace(usage, cached_tokens=min(_count(cached), usage.input_tokens))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40 else 0


class RemoteSummarizer:
    """All of a `Summarizer` but `write`, and how its question is put (`_question`)."""

    kind: ClassVar[str]
    """As `summarizer.order` names it."""
    protocol: ClassVar[str]
    path: ClassVar[str]
    endpoint_setting: ClassVar[str]
    key_setting: ClassVar[str]

    def __init__(
        self,
        endpoint: str,
        model: str,
        *,
        key: str | None = None,
        key_variable: str,
        timeout_seconds: float = 120.0,
        context_tokens: int = 128_000,
        prices: Prices | None = None,
        attempts: int = 3,
        first_pause_seconds: float = FIRST_PAUSE_SECONDS,
    ) -> None:
        shown_variable = checked_key(key, key_variable, self.key_setting)
        address = Endpoint(
            endpoint,
            self.path,
            key=key,
            timeout_seconds=timeout_seconds,
            headers=self._headers(key),
            setting=self.endpoint_setting,
            key_setting=self.key_setting,
            kept_connections=0,
        )
        self._remote = Remote(
            address,
            called="the summarizer",
            model=model,
            settings=(self.endpoint_setting, "model"),
            key_variable=shown_variable,
        )
        self.name = f"{self.kind}:{model}"
        self.fingerprint = fingerprint_of(self.protocol, self._remote.url, model)
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

    def _headers(self, key: str | None) -> Mapping[str, str]:
        raise NotImplementedError

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


# ── OpenAI's chat completions ──


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
    """Any endpoint that speaks them: Ollama, llama.cpp, vLLM, LM Studio, a company's own, OpenAI."""

    kind, protocol, path = "openai", "openai-chat", "/chat/completions"
    endpoint_setting, key_setting = "summarizer.endpoint", "summarizer.apiKeyVariable"

    def __init__(self, endpoint: str, model: str, *, key_variable: str = "OPENAI_API_KEY", **asking: Any) -> None:
        super().__init__(endpoint, model, key_variable=key_variable, **asking)
        self._length_field = "max_tokens"

    def _headers(self, key: str | None) -> Mapping[str, str]:
        return bearer(key)

    def write(self, prompt: Prompt) -> Written:
        body = self._ask(prompt)
        try:
            completion = msgspec.json.decode(body, type=Completion)
            choice = completion.choices[0]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, IndexError) as error:
            raise self._remote.wrong(f"what is not an answer of {self.path} ({error})", "chat completions") from None
        text = tidied(choice.message.content or "", is_cut=choice.finish_reason == "length")
        usage = with_cached(
            usage_of(completion.usage, ("prompt_tokens", "completion_tokens"), prompt, text),
            _cached_tokens(completion.usage),
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


def _cached_tokens(usage: Any) -> Any:
    """OpenAI's field, or DeepSeek's."""
    if not isinstance(usage, dict):
        return 0
    details = usage.get("prompt_tokens_details")
    return details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")


# ── Anthropic's Messages ──

ANTHROPIC_VERSION = "2023-06-01"
CACHE_WRITE_SURCHARGE = 0.25
"""What is written to its cache for five minutes costs that much more than what is only read."""


class Part(msgspec.Struct, frozen=True):
    type: str
    text: str = ""


class Reply(msgspec.Struct, frozen=True):
    content: list[Part]
    stop_reason: str | None = None
    usage: Any = None


class Anthropic(RemoteSummarizer):
    """The end of the memories is marked, so that the next call reads them from the prompt cache."""

    kind, protocol, path = "anthropic", "anthropic", "/v1/messages"
    endpoint_setting, key_setting = "summarizer.anthropicEndpoint", "summarizer.anthropicKeyVariable"

    def __init__(
        self, endpoint: str, model: str, *, key: str, key_variable: str = "ANTHROPIC_API_KEY", **asking: Any
    ) -> None:
        address = endpoint.rstrip("/").removesuffix("/v1")
        super().__init__(address, model, key=key, key_variable=key_variable, **asking)

    def _headers(self, key: str | None) -> Mapping[str, str]:
        return {"x-api-key": key or "", "anthropic-version": ANTHROPIC_VERSION}

    def write(self, prompt: Prompt) -> Written:
        try:
            reply = msgspec.json.decode(self._ask(prompt), type=Reply)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._remote.wrong(f"what is not an answer of {self.path} ({error})", "messages") from None
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
