"""Answers of models that were paid for: kept before they are judged, held while the store cannot take them, and counted
against the caps of the day."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from offbook.context.summary_prompts import prompt_tokens
from offbook.log.store import Store
from offbook.model.errors import StoreBusy, StoreError, StoreFull, StoreReadOnly
from offbook.model.settings import Settings
from offbook.model.summary import Completion, Usage
from offbook.models.protocols import Prompt, Summarizer

MOST_UNSTORED = 64
"""Answers that the store did not take. With so many, nobody is asked for another."""
FAULTS_OF_THE_FILE = (StoreBusy, StoreFull, StoreReadOnly)
"""No other answer can be stored then either."""


class Unfit(Exception):
    """Why this one does not write this time, though nothing is wrong with it."""


class Unstored(NamedTuple):
    """An answer that was paid for and could not be stored yet."""

    agent_id: str
    completion: Completion
    at: datetime


class PaidAnswers:
    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock
        self._unstored: dict[str, Unstored] = {}

    async def find(self, agent_id: str, fingerprint: str) -> Completion | None:
        """What was answered before, once what is held was stored."""
        await self._store_held(fingerprint)
        return await self._store.completion(agent_id, fingerprint)

    async def keep(self, agent_id: str, completion: Completion) -> None:
        at = self._clock()
        try:
            await self._store.add_completion(agent_id, completion, at)
        except StoreError:
            self._unstored[completion.fingerprint] = Unstored(agent_id, completion, at)
            raise

    def keep_cost(self, agent_id: str, completion: Completion, at: datetime | None = None) -> None:
        """What an answer cost, without the answer, under a name of its own: the caps of the day know of it."""
        name = f"let-go:{completion.fingerprint}"
        spent = msgspec.structs.replace(completion, fingerprint=name, text="")
        self._unstored[name] = Unstored(agent_id, spent, at or self._clock())

    def let_go(self, agent_id: str) -> None:
        """Of what is held of the agent's, keep only what it cost."""
        for fingerprint, held in list(self._unstored.items()):
            if held.agent_id == agent_id and held.completion.text:
                del self._unstored[fingerprint]
                self.keep_cost(agent_id, held.completion, held.at)

    async def _store_held(self, wanted: str) -> None:
        """Before anybody is asked again. An answer that fails by itself keeps nobody waiting but who wants it."""
        for fingerprint, (agent_id, completion, at) in list(self._unstored.items()):
            try:
                await self._store.add_completion(agent_id, completion, at)
            except FAULTS_OF_THE_FILE:
                raise
            except StoreError:
                if fingerprint == wanted or len(self._unstored) >= MOST_UNSTORED:
                    raise
            else:
                self._unstored.pop(fingerprint, None)

    async def spent_today(self, summarizer: str) -> Usage:
        """By all agents, with what is not stored yet."""
        today = self._clock().astimezone(UTC).date()
        spent = [each.usage for each in await self._store.spending(today) if each.summarizer == summarizer]
        spent += [
            completion.usage
            for _, completion, at in self._unstored.values()
            if completion.summarizer == summarizer and at.astimezone(UTC).date() == today
        ]
        return Usage(
            input_tokens=sum(usage.input_tokens for usage in spent),
            cached_tokens=sum(usage.cached_tokens for usage in spent),
            output_tokens=sum(usage.output_tokens for usage in spent),
            dollars=sum(usage.dollars for usage in spent),
        )

    async def require_means(self, summarizer: Summarizer, prompt: Prompt, settings: Settings) -> None:
        """The caps of the day, with what this call may add. What a host's model costs is known only afterwards: it ends
        with the call that went beyond."""
        may_use = Usage(input_tokens=prompt_tokens(prompt), output_tokens=prompt.max_output_tokens)
        dollars = summarizer.dollars_for(may_use)
        await self.require(summarizer.name, msgspec.structs.replace(may_use, dollars=dollars), settings)

    async def require(self, name: str, may_use: Usage, settings: Settings) -> None:
        """Unfit where the caps of the day leave no room for that much by the model of this name."""
        caps = settings.summarizer
        spent = await self.spent_today(name)
        used = spent.input_tokens + spent.output_tokens
        if used + may_use.input_tokens + may_use.output_tokens > caps.max_tokens_per_day:
            raise Unfit(
                f"{name} has used {used:,} of its {caps.max_tokens_per_day:,} tokens today: it goes on "
                "tomorrow (UTC), or with a higher summarizer.maxTokensPerDay"
            )
        if spent.dollars + may_use.dollars > caps.max_dollars_per_day:
            raise Unfit(
                f"{name} has cost ${spent.dollars:.2f} of its ${caps.max_dollars_per_day:.2f} today: it "
                "goes on tomorrow (UTC), or with a higher summarizer.maxDollarsPerDay"
            )
