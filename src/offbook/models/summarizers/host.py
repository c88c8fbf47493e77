"""The host's own model: the host asks for work, has its model answer, and posts what it said.

So the provider needs neither a key nor an address, and the agent's memories are written by the agent's own model.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from hashlib import sha256
from typing import TypeVar

import msgspec

from offbook.model.errors import ModelUnavailable
from offbook.model.summary import Job, Usage
from offbook.models.protocols import Prompt, Written
from offbook.models.summarizers.remote import tidied, usage_of

PRESENT_SECONDS = 60.0
"""A host that has not asked for that long is taken to be away."""
LEASE_SECONDS = 120.0
"""After which work that was handed out is offered again: whoever took it may be gone. At most half of the time that
there is for an answer, or nobody would wait for it any more."""
MOST_REMEMBERED = 64
"""Answers and names of work that nobody waits for any more."""

T = TypeVar("T")
Key = tuple[str, str]
"""An agent and a job: no agent's work is ever another's."""


class Offer(msgspec.Struct):
    job: Job
    leased_until: float = 0.0
    failed: str | None = None
    is_withdrawn: bool = False


class HostSummarizer:
    """A `Summarizer`. Thread-safe; `write` and `claim` with a wait block."""

    name = "host"
    fingerprint = "host:1"

    def __init__(
        self,
        *,
        context_tokens: int = 128_000,
        timeout_seconds: float = 120.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.context_tokens = context_tokens
        self._timeout_seconds = timeout_seconds
        self._lease_seconds = min(LEASE_SECONDS, timeout_seconds / 2)
        self._clock = clock
        self._offers: dict[Key, Offer] = {}
        self._answers: dict[Key, tuple[str, Usage | None]] = {}
        self._past: dict[Key, bool] = {}
        """Work that was given up (False) or whose answer was taken (True)."""
        self._asked_at: dict[str, float] = {}
        self._waiting: dict[str, int] = {}
        self._is_closed = False
        self._changed = threading.Condition()

    def dollars_for(self, usage: Usage) -> float:
        return usage.dollars

    def is_present(self, agent_id: str) -> bool:
        """Whether a host of this agent has asked for work lately."""
        with self._changed:
            return self._is_present(agent_id)

    def write(self, prompt: Prompt) -> Written:
        """Blocks until the answer is posted. An answer that came too late last time is taken at once."""
        job = _job(prompt, self._lease_seconds)
        key = (job.agent_id, job.id)
        with self._changed:
            if key not in self._answers:
                self._require_host(job.agent_id)
                self._past.pop(key, None)
                self._offers[key] = Offer(job)
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._is_settled(key), self._timeout_seconds)
            offer = self._offers.pop(key, None)
            answer = self._answers.pop(key, None)
            if offer is None or not offer.is_withdrawn:
                _note(self._past, key, answer is not None)
        if answer is None:
            raise self._nothing_came(offer)
        text = tidied(answer[0], is_cut=False)
        return Written(text=text, usage=answer[1] or usage_of(None, ("", ""), prompt, text))

    # ── the host's side ──

    def claim(self, agent_id: str, wait_seconds: float = 0.0) -> Job | None:
        """The agent's oldest work that nobody is at, for the time of its lease. Waits for some if asked to."""
        deadline = self._clock() + wait_seconds
        with self._changed:
            self._asked_at[agent_id] = self._clock()
            self._waiting[agent_id] = self._waiting.get(agent_id, 0) + 1
            try:
                while (offer := self._free(agent_id)) is None and not self._is_closed:
                    left = deadline - self._clock()
                    if left <= 0 or not self._changed.wait(left):
                        break
            finally:
                self._waiting[agent_id] -= 1
                self._asked_at[agent_id] = self._clock()
            if offer is None:
                return None
            offer.leased_until = self._clock() + self._lease_seconds
            return offer.job

    def complete(self, agent_id: str, job_id: str, text: str, usage: Usage | None = None) -> bool:
        """Posts an answer. False where there is no such work; the same answer twice is taken once."""
        key = (agent_id, job_id)
        with self._changed:
            self._asked_at[agent_id] = self._clock()
            if key in self._answers or self._past.get(key):
                return True
            offer = self._offers.get(key)
            if (offer is None and key not in self._past) or (offer is not None and offer.is_withdrawn):
                return False
            _note(self._answers, key, (text, usage))
            self._changed.notify_all()
            return True

    def fail(self, agent_id: str, job_id: str, why: str) -> bool:
        """The host's model could not. False where there is no such work."""
        key = (agent_id, job_id)
        with self._changed:
            self._asked_at[agent_id] = self._clock()
            offer = self._offers.get(key)
            if offer is None:
                return False
            offer.failed = why or "it did not say why"
            self._changed.notify_all()
            return True

    def withdraw(self, agent_id: str) -> None:
        """Nobody is given the agent's work any more, and no answer to it is kept: what it is of is being forgotten."""
        with self._changed:
            for (owner, _), offer in self._offers.items():
                if owner == agent_id:
                    offer.failed, offer.is_withdrawn = "it was withdrawn", True
            for kept in (self._answers, self._past):
                for key in [key for key in kept if key[0] == agent_id]:
                    del kept[key]
            self._changed.notify_all()

    def close(self) -> None:
        """Whoever waits is told at once that nothing comes."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    # ── with the lock held ──

    def _is_present(self, agent_id: str) -> bool:
        asked_at = self._asked_at.get(agent_id)
        if self._waiting.get(agent_id):
            return True
        return asked_at is not None and self._clock() - asked_at <= PRESENT_SECONDS

    def _require_host(self, agent_id: str) -> None:
        if self._is_closed:
            raise ModelUnavailable("the queue of work for the host is closed")
        if not self._is_present(agent_id):
            raise ModelUnavailable(
                f"no host has asked for work of agent {agent_id!r} in the last {PRESENT_SECONDS:g} seconds: start one "
                "that does, or take host out of summarizer.order",
                retryable=True,
            )

    def _is_settled(self, key: Key) -> bool:
        offer = self._offers.get(key)
        return self._is_closed or key in self._answers or (offer is not None and offer.failed is not None)

    def _free(self, agent_id: str) -> Offer | None:
        now = self._clock()
        return next(
            (
                offer
                for (owner, _), offer in self._offers.items()
                if owner == agent_id and offer.leased_until <= now and offer.failed is None
            ),
            None,
        )

    def _nothing_came(self, offer: Offer | None) -> ModelUnavailable:
        if offer is not None and offer.failed is not None:
            return ModelUnavailable(f"the host's model could not write ({offer.failed})", retryable=True)
        if self._is_closed:
            return ModelUnavailable("the queue of work for the host is closed")
        return ModelUnavailable(
            f"the host posted no answer in {self._timeout_seconds:g} seconds: give it more in summarizer.timeout",
            retryable=True,
        )


def _job(prompt: Prompt, lease_seconds: float) -> Job:
    digest = sha256(msgspec.json.encode([prompt.version, prompt.source or prompt.messages])).hexdigest()
    return Job(
        id=digest[:24],
        agent_id=prompt.agent_id,
        messages=prompt.messages,
        stable=prompt.stable,
        max_output_tokens=prompt.max_output_tokens,
        lease_seconds=lease_seconds,
    )


def _note(kept: dict[Key, T], key: Key, value: T) -> None:
    """The newest, and not without end."""
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > MOST_REMEMBERED:
        del kept[next(iter(kept))]
