"""Where a session is cut into stretches that become summaries. Pure; the same log is cut the same way, whenever.

A stretch holds at least `chunkTokens` and ends where an exchange ends: before the next thing the user says, with
every call answered. An exchange of its own that goes on and on (an agent at work with its tools) is cut between two
pairs of call and result once the stretch is twice as long. Nothing is cut inside a pair, unless its result is so late
that one could wait for ever.
"""

from __future__ import annotations

from typing import NamedTuple

from offbook.content import tool_calls, tool_results
from offbook.types import Message

LONGEST_WAIT_MESSAGES = 50
"""A call that is not answered by then is taken not to be: it no longer keeps a cut away."""
LONGEST_WAIT_CHUNKS = 4
"""Nor does any in a stretch that is that many times as long as it should be."""
MOST_MESSAGES = 2_000
"""Of one stretch, however little they say: heartbeats are messages too."""


class Stretch(NamedTuple):
    """Messages of one session that belong together. `tokens` leaves out noise."""

    first_seq: int
    last_seq: int
    tokens: int


class Cutter:
    """Takes a session's messages in their order and says where each stretch ends."""

    def __init__(self, chunk_tokens: int, *, after_seq: int = 0) -> None:
        self._chunk_tokens = chunk_tokens
        self._first_seq = after_seq + 1
        self._last_seq = after_seq
        self._tokens = 0
        self._calls: dict[str, int] = {}
        """Calls without an answer so far, and where they were made."""

    @property
    def rest(self) -> Stretch | None:
        """What has come since the last cut."""
        if self._last_seq < self._first_seq:
            return None
        return Stretch(self._first_seq, self._last_seq, self._tokens)

    def take(self, seq: int, message: Message, tokens: int) -> Stretch | None:
        """One more message; returns the stretch that ends right before it, where one does."""
        finished = self.rest if self._ends_before(message) else None
        if finished is not None:
            self._first_seq, self._tokens = seq, 0
        self._last_seq = seq
        self._tokens += tokens
        for call_id in tool_results(message):
            self._calls.pop(call_id, None)
        answered_here = set(tool_results(message))
        for call_id in tool_calls(message):
            if call_id not in answered_here:
                self._calls[call_id] = seq
        return finished

    def end(self) -> Stretch | None:
        """The session is over here, for now: the rest is a stretch of its own."""
        finished = self.rest
        self._first_seq, self._tokens = self._last_seq + 1, 0
        self._calls.clear()
        return finished

    def _ends_before(self, message: Message) -> bool:
        count = self._last_seq - self._first_seq + 1
        if (self._tokens < self._chunk_tokens and count < MOST_MESSAGES) or self.is_waiting() or tool_results(message):
            return False
        is_new_exchange = message.role == "user"
        return is_new_exchange or self._tokens >= 2 * self._chunk_tokens or count >= MOST_MESSAGES

    def is_waiting(self) -> bool:
        """Whether a call has no answer so far, and one may still come."""
        if self._tokens >= LONGEST_WAIT_CHUNKS * self._chunk_tokens:
            return False
        for call_id, seq in list(self._calls.items()):
            if self._last_seq - seq >= LONGEST_WAIT_MESSAGES:
                del self._calls[call_id]
        return bool(self._calls)
