"""What all summarizers behind an address have in common: a question, put again in the form that the server takes."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

import msgspec

from offbook.model.errors import ModelUnavailable
from offbook.model.sentences import ends
from offbook.model.settings.sections import Summarizer
from offbook.model.summary import Usage
from offbook.model.types import Message, Value
from offbook.models.endpoint import Endpoint
from offbook.models.openai_embeddings import readable
from offbook.models.protocols import Prompt
from offbook.models.remote import Refused, Remote, refusal
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
