"""Which summarizer an entry of `summarizer.order` asks for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from offbook.model.errors import ModelUnavailable
from offbook.model.settings import Settings, sections
from offbook.model.types import Value
from offbook.models.endpoint import checked_key
from offbook.models.protocols import Summarizer
from offbook.models.summarizers.host import HostSummarizer
from offbook.models.summarizers.remote import Anthropic, OpenAIChat, prices_of

EXTRACTIVE = "extractive"
KINDS = ("host", "local", "openai", "anthropic", EXTRACTIVE)


def is_small_local(spec: str) -> bool:
    """Whether the small model that Offbook knows is meant, not a file of one's own."""
    kind, _, path = spec.partition(":")
    return kind == "local" and not path.strip()


def open_summarizer(
    spec: str,
    settings: Settings,
    agent_id: str,
    *,
    models: Path,
    host: HostSummarizer,
    environ: Mapping[str, str] = os.environ,
) -> Summarizer | None:
    """Ready to write; nothing is sent before the first prompt. None is `extractive`, which is no model.

    `models` is the folder of local ones. ModelUnavailable says what is missing and what to do.
    """
    kind, _, model = spec.partition(":")
    wanted = model.strip() or settings.for_agent(agent_id).model
    if spec == EXTRACTIVE:
        return None
    if spec == "host":
        return host
    if kind == "local":
        return _local(model.strip(), settings, models)
    if kind == "openai":
        return _openai(_named(wanted, kind), settings, environ)
    if kind == "anthropic":
        return _anthropic(_named(wanted, kind), settings, environ)
    raise ModelUnavailable(
        f"summarizer.order names {spec!r}: write {', '.join(KINDS[:-1])} or {KINDS[-1]}, each but host and "
        "extractive with a model after a colon if it needs one (openai:gpt-4o-mini, local:/path/to/model.gguf)"
    )


def _named(model: str | None, kind: str) -> str:
    if not model:
        raise ModelUnavailable(
            f"{kind} needs the name of a model: write {kind}:NAME in summarizer.order, or set the setting model"
        )
    return model


def _openai(model: str, settings: Settings, environ: Mapping[str, str]) -> Summarizer:
    given = settings.summarizer
    key = environ.get(given.api_key_variable, "").strip() or None  # a server of one's own needs none
    return OpenAIChat(given.endpoint, model, key=key, key_variable=given.api_key_variable, **_asking(given))


def _anthropic(model: str, settings: Settings, environ: Mapping[str, str]) -> Summarizer:
    given = settings.summarizer
    key, variable = environ.get(given.anthropic_key_variable, "").strip(), given.anthropic_key_variable
    if not key:
        variable = checked_key(None, variable, Anthropic.key_setting)
        raise ModelUnavailable(f"anthropic needs a key: put it into the variable {variable} and start again")
    return Anthropic(given.anthropic_endpoint, model, key=key, key_variable=variable, **_asking(given))


def _asking(given: sections.Summarizer) -> dict[str, Any]:
    return {
        "context_tokens": given.context_tokens,
        "prices": prices_of(given),
        "attempts": given.attempts,
        "timeout_seconds": given.timeout.total_seconds(),
    }


def open_local(settings: Settings, models: Path) -> Summarizer:
    """The first of those that `summarizer.order` has here; the small one, where it has none."""
    specs = [spec for spec in settings.summarizer.order if spec.partition(":")[0] == "local"]
    return _local(specs[0].partition(":")[2].strip() if specs else "", settings, models)


def _local(path: str, settings: Settings, models: Path) -> Summarizer:
    from offbook.models.summarizers import llama
    from offbook.models.summarizers.llama import Llama

    given = settings.summarizer
    weights = Path(path).expanduser() if path else llama.ensure(models)
    if not weights.is_file():
        raise ModelUnavailable(f"there is no file {weights}: write local:/path/to/model.gguf in summarizer.order")
    return Llama(weights, threads=given.threads, timeout_seconds=given.timeout.total_seconds())


# ── How a model gets on ──
# What went wrong with it lately, and how long it is left alone after that.


FAILURES_THAT_OPEN = 3
FIRST_PAUSE_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 3_600.0


class Breaker(Value, frozen=True):
    """Keeps from asking again and again who cannot answer. After a pause one is let through to try."""

    failures: int = 0
    pause_seconds: float = 0.0
    opened_at: float = 0.0

    def seconds_left(self, at: float) -> float:
        return max(0.0, self.opened_at + self.pause_seconds - at)

    def after_failure(self, at: float) -> Breaker:
        failures = self.failures + 1
        if failures < FAILURES_THAT_OPEN:
            return Breaker(failures=failures)
        pause = min(2 * self.pause_seconds or FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        return Breaker(failures=failures, pause_seconds=pause, opened_at=at)


class ModelHealth:
    """Of a model, as one agent finds it, or all."""

    def __init__(self) -> None:
        self.breaker = Breaker()
        self.trouble: str | None = None

    def format(self, at: float) -> str | None:
        seconds = self.breaker.seconds_left(at)
        return f"{self.trouble} (asked again in {seconds:.0f} seconds)" if self.trouble and seconds else self.trouble

    def clear(self) -> None:
        self.breaker, self.trouble = Breaker(), None
