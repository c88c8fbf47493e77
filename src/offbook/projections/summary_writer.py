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
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
import structlog

from offbook.context.summary_checks import faults
from offbook.context.summary_prompts import MOST_MEMORY_TOKENS, OUTPUT_SHARE, prompt_tokens
from offbook.log.store import Store
from offbook.model.errors import ModelUnavailable, StoreBusy, StoreError, StoreFull, StoreReadOnly
from offbook.model.settings import Settings
from offbook.model.summary import Completion, Usage
from offbook.model.types import Value, now
from offbook.models.protocols import Prompt, Summarizer, Written
from offbook.models.remote import is_of_what_was_sent
from offbook.models.summarizers.available import EXTRACTIVE, open_summarizer
from offbook.models.summarizers.host import HostSummarizer
from offbook.models.summarizers.prompt import prices_of

FAILURES_THAT_OPEN = 3
FIRST_PAUSE_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 3_600.0
ESTIMATE_MARGIN = 1.15
"""Tokens are estimated, for small models up to a seventh too low; a prompt that is too long is sent for nothing."""
LEAST_OUTPUT_SHARE = 0.5
"""Of its target, what must be left for an answer: below that a model cannot say what it should."""
MOST_UNSTORED = 64
"""Answers that the store did not take. With so many, nobody is asked for another."""
FAULTS_OF_THE_FILE = (StoreBusy, StoreFull, StoreReadOnly)
"""No other answer can be stored then either."""

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


class Standing:
    """How somebody gets on with a model."""

    def __init__(self) -> None:
        self.breaker = Breaker()
        self.trouble: str | None = None

    def told(self, at: float) -> str | None:
        seconds = self.breaker.seconds_left(at)
        return f"{self.trouble} (asked again in {seconds:.0f} seconds)" if self.trouble and seconds else self.trouble

    def clear(self) -> None:
        self.breaker, self.trouble = Breaker(), None


class Line:
    """One that may be asked: an entry of the order with its model, for one agent if it is the host's. Whether it can
    be reached is the same for all agents; what it makes of a conversation is the business of that agent alone."""

    def __init__(self) -> None:
        self.summarizer: Summarizer | None = None
        self.shared = Standing()
        self.own: dict[str, Standing] = {}
        self.lock = asyncio.Lock()
        self.left_behind: asyncio.Future[Written] | None = None
        """A call that was broken off. It cannot be stopped; what it gives is dropped."""

    def of(self, agent_id: str) -> Standing:
        return self.own.setdefault(agent_id, Standing())


class Unstored(NamedTuple):
    """An answer that was paid for and could not be stored yet."""

    agent_id: str
    completion: Completion
    at: datetime


class Unfit(Exception):
    """Why this one does not write this time, though nothing is wrong with it."""


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
        self._store = store
        self._settings = settings
        self._models = models
        self._host = host
        self._clock = clock
        self._monotonic = monotonic
        self._opening = opening
        self._lines: dict[tuple[str, str], Line] = {}
        self._unstored: dict[str, Unstored] = {}
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
        for fingerprint, unstored in list(self._unstored.items()):
            if unstored.agent_id == agent_id and unstored.completion.text:
                del self._unstored[fingerprint]
                self._account(unstored)
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
            for standing in (*own, line.shared):
                if told := standing.told(self._monotonic()):
                    found[spec] = told
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

    def expected(self, agent_id: str, summaries: int) -> Usage:
        """About what so many summaries will use, by the first in line: its prompts and answers of full length, the
        memories before the stretch read from the provider's cache."""
        if not self.has_models(agent_id):
            return Usage()
        settings = self._settings.for_agent(agent_id)
        memories = min(MOST_MEMORY_TOKENS, summaries * settings.summary_target_tokens // 2)
        cached, fresh = memories * summaries, settings.chunk_tokens * summaries
        written = settings.summary_target_tokens * summaries
        usage = Usage(input_tokens=cached + fresh, cached_tokens=cached, output_tokens=written)
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
        line: Line,
        spec: str,
        agent_id: str,
        make: PromptMaker,
        source_chars: int,
        identifiers: Sequence[str],
    ) -> tuple[Written, str, str]:
        summarizer = await self._opened(line, spec, agent_id)
        prompt, target_tokens = self._fitting_prompt(summarizer, agent_id, make)
        fingerprint = fingerprint_of(summarizer, prompt)
        await self._store_unstored(fingerprint)
        known = await self._store.completion(agent_id, fingerprint)
        is_new = known is None
        if known is None:
            known = await self._paid_for(line, agent_id, summarizer, prompt, fingerprint)
            line.shared.clear()
        wrong = faults(known.text, source_chars=source_chars, identifiers=identifiers, max_tokens=target_tokens)
        if wrong:
            detail = f"what {summarizer.name} wrote was not taken: {'; '.join(wrong)}"
            raise NotTaken(detail) if is_new else Unfit(detail)
        return Written(text=known.text, usage=known.usage), summarizer.name, fingerprint

    async def _opened(self, line: Line, spec: str, agent_id: str) -> Summarizer:
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
        target_tokens = round(prompt.max_output_tokens / OUTPUT_SHARE)
        read_tokens = prompt_tokens(prompt)
        room = int(summarizer.context_tokens - read_tokens * ESTIMATE_MARGIN)
        if room < target_tokens * LEAST_OUTPUT_SHARE:
            raise Unfit(
                f"{summarizer.name} reads {summarizer.context_tokens:,} tokens, too few for a prompt of about "
                f"{read_tokens:,}: set chunkTokens lower, or use a model that reads more"
            )
        return msgspec.structs.replace(prompt, max_output_tokens=min(prompt.max_output_tokens, room)), target_tokens

    async def _paid_for(
        self, line: Line, agent_id: str, summarizer: Summarizer, prompt: Prompt, fingerprint: str
    ) -> Completion:
        await self._require_means(summarizer, prompt)
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
        at = self._clock()
        try:
            await self._store.add_completion(agent_id, completion, at)
        except StoreError:
            self._unstored[fingerprint] = Unstored(agent_id, completion, at)
            raise
        return completion

    async def _called(
        self, line: Line, agent_id: str, summarizer: Summarizer, prompt: Prompt, fingerprint: str
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
                self._account(Unstored(agent_id, spent, self._clock()))

        line.left_behind = running
        running.add_done_callback(account)
        raise BrokenOff(f"something of agent {agent_id!r} is being forgotten", retryable=True)

    def _account(self, unstored: Unstored) -> None:
        """What an answer cost, without the answer, under a name of its own: the caps of the day know of it."""
        name = f"let-go:{unstored.completion.fingerprint}"
        spent = msgspec.structs.replace(unstored.completion, fingerprint=name, text="")
        self._unstored[name] = unstored._replace(completion=spent)

    async def _store_unstored(self, wanted: str) -> None:
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

    async def _require_means(self, summarizer: Summarizer, prompt: Prompt) -> None:
        """The caps of the day, over all agents, with what is not stored yet and what this call may add."""
        caps = self._settings.summarizer
        may_use = Usage(input_tokens=prompt_tokens(prompt), output_tokens=prompt.max_output_tokens)
        today = self._clock().astimezone(UTC).date()
        spent = [each.usage for each in await self._store.spending(today) if each.summarizer == summarizer.name]
        spent += [
            completion.usage
            for _, completion, at in self._unstored.values()
            if completion.summarizer == summarizer.name and at.astimezone(UTC).date() == today
        ]
        used = sum((usage.input_tokens + usage.output_tokens for usage in spent), 0)
        if used + may_use.input_tokens + may_use.output_tokens > caps.max_tokens_per_day:
            raise Unfit(
                f"{summarizer.name} has used {used:,} of its {caps.max_tokens_per_day:,} tokens today: it goes on "
                "tomorrow (UTC), or with a higher summarizer.maxTokensPerDay"
            )
        dollars, price = sum(usage.dollars for usage in spent), summarizer.dollars_for(may_use)
        if price and dollars + price > caps.max_dollars_per_day:
            raise Unfit(
                f"{summarizer.name} has cost ${dollars:.2f} of its ${caps.max_dollars_per_day:.2f} today: it goes on "
                "tomorrow (UTC), or with a higher summarizer.maxDollarsPerDay"
            )

    # ── what is known of them ──

    def _line(self, spec: str, agent_id: str) -> Line:
        return self._lines.setdefault(self._line_key(spec, agent_id), Line())

    def _line_key(self, spec: str, agent_id: str) -> tuple[str, str]:
        """Agents share a model, its pauses and its turn; but one agent's host says nothing of another's."""
        return spec, agent_id if spec == "host" else self._settings.for_agent(agent_id).model or ""

    def _note_failure(self, standing: Standing, spec: str, agent_id: str, detail: str) -> None:
        standing.breaker = standing.breaker.after_failure(self._monotonic())
        standing.trouble = detail
        log.warning(
            "not written",
            action="writing.fail",
            agent=agent_id,
            summarizer=spec,
            detail=detail,
            failures=standing.breaker.failures,
            pause_seconds=standing.breaker.pause_seconds,
        )


def fingerprint_of(summarizer: Summarizer, prompt: Prompt) -> str:
    """Of what is summarised, for whom, by whom and in which words it is asked for. Not of the memories shown with it:
    after a stop they may be others, and the same stretch would be paid for again."""
    assert prompt.source, "every prompt would have the same answer"
    parts = [summarizer.fingerprint, prompt.version, prompt.source, prompt.agent_id]
    return sha256(msgspec.json.encode(parts)).hexdigest()
