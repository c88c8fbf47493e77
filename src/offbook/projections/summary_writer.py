"""Who writes a summary: the models of `summarizer.order` in turn, each as long as it works, fits and may still cost.

The same stretch is never paid for twice: an answer is kept before it is judged, and held here while the store cannot
take it. What fails the checks is written by the next in line, and where none is left, by the extractive summarizer,
which always can.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import msgspec
import structlog

from offbook.context.span_answer import read_answer
from offbook.context.summary_checks import faults
from offbook.context.summary_prompts import MOST_MEMORY_TOKENS, OUTPUT_SHARE, prompt_tokens, tokens_for_statements
from offbook.log.store import Store
from offbook.model.errors import ModelUnavailable
from offbook.model.settings import Settings
from offbook.model.status import DailySpending
from offbook.model.summary import Completion, Usage
from offbook.model.types import now
from offbook.models.endpoint import is_of_what_was_sent
from offbook.models.protocols import Prompt, Summarizer, Written
from offbook.models.summarizers.available import EXTRACTIVE, ModelHealth, open_summarizer
from offbook.models.summarizers.host import HostSummarizer
from offbook.models.summarizers.remote import prices_of
from offbook.projections.paid_answers import PaidAnswers, Unfit

ESTIMATE_MARGIN = 1.15
"""Tokens are estimated, for small models up to a seventh too low; a prompt that is too long is sent for nothing."""
LEAST_OUTPUT_SHARE = 0.5
"""Of its target, what must be left for an answer: below that a model cannot say what it should."""
PRICED = frozenset({"openai", "anthropic"})
"""The prices of the settings are theirs."""
WITH_MODEL = PRICED
"""They have the model that the setting `model` names, unless one is given after a colon."""

log = structlog.get_logger("offbook.writing")

PromptMaker = Callable[[int], Prompt]
"""From the longest prompt in tokens to a prompt: a model that reads less is shown fewer memories."""


class Opening(Protocol):
    def __call__(
        self, spec: str, settings: Settings, agent_id: str, *, models: Path, host: HostSummarizer
    ) -> Summarizer | None: ...


class SummarizerEntry:
    """One that may be asked: an entry of the order with its model, for one agent if it is the host's. Whether it can
    be reached is the same for all agents; what it makes of a conversation is the business of that agent alone."""

    def __init__(self) -> None:
        self.summarizer: Summarizer | None = None
        self.shared = ModelHealth()
        self.own: dict[str, ModelHealth] = {}
        self.lock = asyncio.Lock()
        self.left_behind: asyncio.Future[Written] | None = None
        """A call that was broken off. It cannot be stopped; what it gives is dropped."""

    def of(self, agent_id: str) -> ModelHealth:
        return self.own.setdefault(agent_id, ModelHealth())


class BrokenOff(ModelUnavailable):
    """What was being written is about to be forgotten: nobody waits for it."""


class NotTaken(Exception):
    """Why its answer, new and paid for, is no memory."""


class Writer:
    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        models: Path,
        host: HostSummarizer,
        clock: Callable[[], datetime] = now,
        monotonic: Callable[[], float] = time.monotonic,
        opening: Opening = open_summarizer,
    ) -> None:
        self._settings = settings
        self._models = models
        self._host = host
        self._monotonic = monotonic
        self._opening = opening
        self._lines: dict[tuple[str, str], SummarizerEntry] = {}
        self._answers = PaidAnswers(store, clock)
        self._is_closed = False
        self._giving_way: Counter[str] = Counter()
        self._calls: dict[str, set[asyncio.Future[None]]] = {}
        """By agent, what breaks off a call that is under way."""

    @contextmanager
    def giving_way(self, agent_id: str) -> Iterator[None]:
        """Meanwhile no model writes for the agent. A call that is under way is broken off, and what waits for the
        host or for the store is let go of: only what it cost is kept."""
        self._giving_way[agent_id] += 1
        for stop in self._calls.get(agent_id, ()):
            if not stop.done():
                stop.set_result(None)
        self._host.withdraw(agent_id)
        self._answers.let_go(agent_id)
        try:
            yield
        finally:
            self._giving_way[agent_id] -= 1

    async def write(
        self,
        agent_id: str,
        prompt: PromptMaker,
        *,
        source_chars: int,
        identifiers: Sequence[str],
        first: int | None = None,
    ) -> tuple[Written, str, str] | None:
        """What was written, by whom, and the fingerprint of what it was written of. None: nobody could. `first`: of
        those in line only so many are asked."""
        for spec in self._settings.summarizer.order[:first]:
            if spec == EXTRACTIVE or self._is_closed:
                return None
            line = self._line(spec, agent_id)
            own = line.of(agent_id)
            async with line.lock:
                if any(each.breaker.seconds_left(self._monotonic()) for each in (line.shared, own)):
                    continue
                try:
                    found = await self._written(line, spec, agent_id, prompt, source_chars, identifiers)
                except BrokenOff:
                    raise
                except Unfit as why:
                    own.trouble = str(why)
                except NotTaken as why:
                    self._note_failure(own, spec, agent_id, str(why))
                except ModelUnavailable as error:
                    whose = own if is_of_what_was_sent(error) else line.shared
                    self._note_failure(whose, spec, agent_id, error.detail)
                else:
                    own.clear()
                    return found
        return None

    def troubles(self, agent_id: str | None = None) -> dict[str, str]:
        """Of those in the order that do not write now, why: for this agent, or for any. Quotes no conversation."""
        found = {}
        for (spec, whose), line in self._lines.items():
            if agent_id is not None and self._line_key(spec, agent_id) != (spec, whose):
                continue
            own = [each for name, each in line.own.items() if agent_id in (None, name)]
            for health in (*own, line.shared):
                if trouble := health.format(self._monotonic()):
                    found[spec] = trouble
        return found

    def has_models(self, agent_id: str) -> bool:
        """Whether anybody but the extractive summarizer may write for the agent."""
        return self.names(agent_id)[0] != EXTRACTIVE

    def names(self, agent_id: str) -> list[str]:
        """Who is tried, in order."""
        model = self._settings.for_agent(agent_id).model
        names = []
        for spec in self._settings.summarizer.order:
            if spec == EXTRACTIVE:
                break
            names.append(f"{spec}:{model}" if model and spec in WITH_MODEL else spec)
        return [*names, EXTRACTIVE]

    async def spending(self, agent_id: str) -> DailySpending | None:
        """Of the first in line today, of all agents; None where that is no model."""
        first = self.names(agent_id)[0]
        if first == EXTRACTIVE:
            return None
        spent, caps = await self._answers.spent_today(first), self._settings.summarizer
        return DailySpending(
            tokens=spent.input_tokens + spent.output_tokens,
            dollars=spent.dollars,
            max_tokens=caps.max_tokens_per_day,
            max_dollars=caps.max_dollars_per_day,
        )

    def expected(self, agent_id: str, summaries: int) -> Usage:
        """About what so many summaries will use, by the first in line: its prompts and answers of full length, the
        memories before the stretch read from the provider's cache."""
        if not self.has_models(agent_id):
            return Usage()
        settings = self._settings.for_agent(agent_id)
        usage = expected_usage(settings, summaries)
        if self.names(agent_id)[0].partition(":")[0] not in PRICED:
            return usage
        return msgspec.structs.replace(usage, dollars=prices_of(settings.summarizer).dollars(usage))

    async def close(self) -> None:
        """Breaks off whoever writes just now."""
        self._is_closed = True
        self._host.close()
        for line in self._lines.values():
            if line.summarizer is not None:
                await asyncio.to_thread(line.summarizer.close)

    # ── one of them ──

    async def _written(
        self,
        line: SummarizerEntry,
        spec: str,
        agent_id: str,
        make: PromptMaker,
        source_chars: int,
        identifiers: Sequence[str],
    ) -> tuple[Written, str, str]:
        summarizer = await self._opened(line, spec, agent_id)
        prompt, target_tokens = self._fitting_prompt(summarizer, agent_id, make)
        fingerprint = fingerprint_of(summarizer, prompt)
        known = await self._answers.find(agent_id, fingerprint)
        is_new = known is None
        if known is None:
            known = await self._paid_for(line, agent_id, summarizer, prompt, fingerprint)
            line.shared.clear()
        summary = read_answer(known.text).summary if prompt.statements_tokens else known.text
        wrong = faults(summary, source_chars=source_chars, identifiers=identifiers, max_tokens=target_tokens)
        if wrong:
            detail = f"what {summarizer.name} wrote was not taken: {'; '.join(wrong)}"
            raise NotTaken(detail) if is_new else Unfit(detail)
        return Written(text=known.text, usage=known.usage), summarizer.name, fingerprint

    async def _opened(self, line: SummarizerEntry, spec: str, agent_id: str) -> Summarizer:
        if spec == "host" and not self._host.is_present(agent_id):
            raise Unfit(f"no host asks for work of agent {agent_id!r}")
        if line.summarizer is None:
            opened = await asyncio.to_thread(
                self._opening, spec, self._settings, agent_id, models=self._models, host=self._host
            )
            if opened is None:
                raise Unfit(f"{spec} is no model")
            line.summarizer = opened
            if self._is_closed:
                await asyncio.to_thread(opened.close)
        return line.summarizer

    def _fitting_prompt(self, summarizer: Summarizer, agent_id: str, make: PromptMaker) -> tuple[Prompt, int]:
        """As long as the model reads, with as much room for its answer as there is; and what length it asks for."""
        reserved = self._settings.for_agent(agent_id).summary_target_tokens * OUTPUT_SHARE
        prompt = make(int(summarizer.context_tokens / ESTIMATE_MARGIN - min(reserved, summarizer.context_tokens / 4)))
        target_tokens = round((prompt.max_output_tokens - prompt.statements_tokens) / OUTPUT_SHARE)
        read_tokens = prompt_tokens(prompt)
        room = int(summarizer.context_tokens - read_tokens * ESTIMATE_MARGIN)
        if room < target_tokens * LEAST_OUTPUT_SHARE + prompt.statements_tokens * LEAST_OUTPUT_SHARE:
            raise Unfit(
                f"{summarizer.name} reads {summarizer.context_tokens:,} tokens, too few for a prompt of about "
                f"{read_tokens:,}: set chunkTokens lower, or use a model that reads more"
            )
        return msgspec.structs.replace(prompt, max_output_tokens=min(prompt.max_output_tokens, room)), target_tokens

    async def _paid_for(
        self, line: SummarizerEntry, agent_id: str, summarizer: Summarizer, prompt: Prompt, fingerprint: str
    ) -> Completion:
        await self._answers.require_means(summarizer, prompt, self._settings)
        written = await self._called(line, agent_id, summarizer, prompt, fingerprint)
        completion = Completion(
            fingerprint=fingerprint, summarizer=summarizer.name, text=written.text, usage=written.usage
        )
        log.info(
            "written",
            action="writing.write",
            agent=agent_id,
            summarizer=summarizer.name,
            input_tokens=written.usage.input_tokens,
            cached_tokens=written.usage.cached_tokens,
            output_tokens=written.usage.output_tokens,
            dollars=round(written.usage.dollars, 6),
        )
        await self._answers.keep(agent_id, completion)
        return completion

    async def _called(
        self, line: SummarizerEntry, agent_id: str, summarizer: Summarizer, prompt: Prompt, fingerprint: str
    ) -> Written:
        if line.left_behind is not None and not line.left_behind.done():
            raise Unfit("it is still busy with what was broken off for a forget")
        if self._giving_way[agent_id]:
            raise BrokenOff(f"something of agent {agent_id!r} is being forgotten", retryable=True)
        running = asyncio.ensure_future(asyncio.to_thread(summarizer.write, prompt))
        stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        calls = self._calls.setdefault(agent_id, set())
        calls.add(stop)
        try:
            await asyncio.wait((running, stop), return_when=asyncio.FIRST_COMPLETED)
        finally:
            calls.discard(stop)
        if not stop.done():
            return running.result()

        def account(call: asyncio.Future[Written]) -> None:
            if not call.cancelled() and call.exception() is None:
                spent = Completion(
                    fingerprint=fingerprint, summarizer=summarizer.name, text="", usage=call.result().usage
                )
                self._answers.keep_cost(agent_id, spent)

        line.left_behind = running
        running.add_done_callback(account)
        raise BrokenOff(f"something of agent {agent_id!r} is being forgotten", retryable=True)

    # ── what is known of them ──

    def _line(self, spec: str, agent_id: str) -> SummarizerEntry:
        return self._lines.setdefault(self._line_key(spec, agent_id), SummarizerEntry())

    def _line_key(self, spec: str, agent_id: str) -> tuple[str, str]:
        """Agents share a model, its pauses and its turn; but one agent's host says nothing of another's."""
        return spec, agent_id if spec == "host" else self._settings.for_agent(agent_id).model or ""

    def _note_failure(self, health: ModelHealth, spec: str, agent_id: str, detail: str) -> None:
        health.breaker = health.breaker.after_failure(self._monotonic())
        health.trouble = detail
        log.warning(
            "not written",
            action="writing.fail",
            agent=agent_id,
            summarizer=spec,
            detail=detail,
            failures=health.breaker.failures,
            pause_seconds=health.breaker.pause_seconds,
        )


def expected_usage(settings: Settings, summaries: int) -> Usage:
    """About what so many summaries in a row use: prompts and answers of full length, and the memories before, of which
    there are more each time, read from the provider's cache."""
    memories = min(MOST_MEMORY_TOKENS, summaries * settings.summary_target_tokens // 2)
    return _usage(settings, summaries, memories)


def lasting_usage(settings: Settings) -> Usage:
    """The most that one summary uses once there are memories enough."""
    return _usage(settings, 1, MOST_MEMORY_TOKENS)


def _usage(settings: Settings, summaries: int, memories: int) -> Usage:
    cached, fresh = memories * summaries, settings.chunk_tokens * summaries
    target_tokens = settings.summary_target_tokens
    written = (target_tokens + tokens_for_statements(target_tokens) // 2) * summaries
    return Usage(input_tokens=cached + fresh, cached_tokens=cached, output_tokens=written)


def fingerprint_of(summarizer: Summarizer, prompt: Prompt) -> str:
    """Of what is summarised, for whom, by whom and in which words it is asked for. Not of the memories shown with it:
    after a stop they may be others, and the same stretch would be paid for again."""
    assert prompt.source, "every prompt would have the same answer"
    parts = [summarizer.fingerprint, prompt.version, prompt.source, prompt.agent_id]
    return sha256(msgspec.json.encode(parts)).hexdigest()
