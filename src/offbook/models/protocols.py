"""The seams of the models: what an embedder, a summarizer and a reranker promise."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from offbook.model.summary import Usage
from offbook.model.types import (
    Message,
    Value,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Embedder(Protocol):
    """Turns texts into vectors of unit length. Blocking: called in threads, from several at once.

    Whatever the text, it gets a vector: empty, of any length, with characters that are none. Its errors are
    `ModelUnavailable`.
    """

    @property
    def name(self) -> str:
        """As in the setting `embedding.model`."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same text could get another vector."""
        ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of length 1 for each text, in their order."""
        ...

    def close(self) -> None: ...


class Prompt(Value, frozen=True):
    """What a model is asked: the conversation that makes it the agent, ending in the Context Manager's wish."""

    agent_id: str
    version: str
    messages: list[Message]
    """Roles `user` and `assistant` in turns, plain text; no system prompt."""
    stable: int
    """How many messages at the start are the same in the next call: where a provider's prompt cache is marked."""
    max_output_tokens: int
    """With `statements_tokens`."""
    statements_tokens: int = 0
    """Of these, what is for statements: the rest is for the text whose length was asked for."""
    source: str = ""
    """A digest of what is summarised, and to what length: the memories shown around it are no part of it. Empty where
    the answer is not kept."""


class Written(Value, frozen=True):
    """What a model answered, and what it used."""

    text: str
    usage: Usage


class Summarizer(Protocol):
    """Writes summaries. Blocking: called in threads, one call at a time. Its errors are `ModelUnavailable`."""

    @property
    def name(self) -> str:
        """Its kind and its model: `openai:gpt-4o-mini`."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same prompt could be answered by another model."""
        ...

    @property
    def context_tokens(self) -> int:
        """The longest prompt it reads, with its answer."""
        ...

    def dollars_for(self, usage: Usage) -> float:
        """What that much costs by the prices of the settings; 0 for a model of one's own."""
        ...

    def write(self, prompt: Prompt) -> Written: ...

    def close(self) -> None: ...


class Passage(Value, frozen=True):
    """Something that was found, as a second reader is given it."""

    text: str
    speaker: str
    ts: datetime


class ReadingTask(Value, frozen=True):
    """A question, and what was found for it, in the first order."""

    agent_id: str
    query: str
    asked_at: datetime
    passages: tuple[Passage, ...]


class Reading(Value, frozen=True):
    """Which passages help, best first, as their places in the task, each once; and what that used."""

    order: list[int]
    usage: Usage


class Reranker(Protocol):
    """Reads what was found once more. Blocking: called in threads, from several at once. Its errors are
    `ModelUnavailable`."""

    @property
    def name(self) -> str:
        """Its kind and its model; what it uses is counted under this name."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same task could get another order."""
        ...

    def expected(self, task: ReadingTask) -> Usage:
        """About what it will use, with its price; nothing for a model that runs here."""
        ...

    def read(self, task: ReadingTask) -> Reading: ...

    def close(self) -> None: ...
