"""The seams. A promise lives in a docstring here and in a contract test that runs on every backend."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Protocol

from offbook.types import (
    AuditDraft,
    AuditEvent,
    AuditHead,
    Capture,
    CaptureClaim,
    Counts,
    Entry,
    Fault,
    LoggedMessage,
    Mark,
    Receipt,
    Scope,
    Session,
    SessionGaps,
    Value,
)


class ExaminedMessage(Value, frozen=True):
    """A message as its row holds it. `chars_through`: of the session, up to and with this message."""

    logged: LoggedMessage
    chars_through: int


class Store(Protocol):
    """The log and what belongs to it. Every method names its owner; `agents` alone does not.

    A method that writes returns only when the write is durable, and writes everything it was given,
    with its audit event, or nothing. All its errors are `StoreError`s.
    """

    @property
    def kind(self) -> str:
        """What this is: `sqlite`, `postgres`."""

    # ── the log ──

    async def append(
        self,
        scope: Scope,
        entries: Sequence[Entry],
        event: AuditDraft,
        *,
        gaps: SessionGaps,
        claim: CaptureClaim | None = None,
        mark: Mark | None = None,
        is_context: bool = False,
    ) -> Receipt:
        """Add entries at the end of the session, in order, contiguously, once.

        `is_context` says that the entries are a host's whole context rather than news: those without an id that
        the end of the log holds already are left out (`alignment`), however many ask at once.

        An entry whose message id the session already holds is a duplicate: counted, not stored; with
        another fingerprint it is also a conflict, and reported. Sequence numbers of a session are 1, 2, 3, …
        without gaps. A silence before the first new entry is marked by `gaps`.
        """

    async def messages(self, scope: Scope, *, after_seq: int = 0, limit: int = 100) -> list[LoggedMessage]:
        """The session's messages after `after_seq`, oldest first."""

    async def messages_before(self, scope: Scope, *, before_seq: int, limit: int = 100) -> list[LoggedMessage]:
        """The session's messages before `before_seq`, newest first."""

    # ── sessions ──

    async def mark(self, scope: Scope, mark: Mark, event: AuditDraft) -> None:
        """Record that something happened to the session after its newest message."""

    async def session(self, scope: Scope) -> Session | None: ...

    async def sessions(self, agent_id: str, *, limit: int = 20) -> list[Session]:
        """The agent's sessions, the one last written to first."""

    async def marks(self, scope: Scope, *, limit: int = 100) -> list[Mark]:
        """The newest marks of the session, oldest first."""

    # ── what is known of an agent ──

    async def agents(self) -> list[str]:
        """Every agent that has a row. For the operator's tools."""

    async def counts(self, agent_id: str) -> Counts:
        """Exact, and does not grow with history."""

    async def captures(self, agent_id: str) -> list[Capture]: ...

    # ── audit ──

    async def record(self, agent_id: str, event: AuditDraft) -> AuditEvent:
        """Append one event to the agent's chain."""

    async def audit_head(self, agent_id: str) -> AuditHead:
        """The end of the agent's chain."""

    async def noted_audit_head(self, agent_id: str) -> AuditHead:
        """A head noted apart from the chain, seconds old at the most: a chain that no longer reaches it was cut."""

    async def audit_events(
        self, agent_id: str, *, session_id: str | None = None, after_seq: int = 0, limit: int = 100
    ) -> list[AuditEvent]:
        """Events after `after_seq`, oldest first."""

    async def newest_audit_events(
        self, agent_id: str, *, session_id: str | None = None, limit: int = 100
    ) -> list[AuditEvent]:
        """The last `limit` events, oldest first."""

    # ── for who verifies ──

    async def noted_counts(self, agent_id: str) -> tuple[AuditHead, Counts]:
        """The noted head and the counts noted with it, of one moment."""

    async def examined_messages(
        self, scope: Scope, *, after_seq: int = 0, limit: int = 100
    ) -> list[ExaminedMessage | Fault]:
        """As `messages`, but what cannot be read is a fault in its place, with its `seq`."""

    async def examined_audit_events(
        self, agent_id: str, *, after_seq: int = 0, limit: int = 100
    ) -> list[AuditEvent | Fault]:
        """As `audit_events`, but what cannot be read is a fault in its place, with its `seq`."""

    # ── care ──

    async def ping(self) -> None:
        """Answers when the store can be read."""

    async def installation_key(self) -> bytes:
        """32 random bytes, made with the store: they sign what we inject, so that it is known when it comes back."""

    def faults(self) -> AsyncIterator[Fault]:
        """What the store's own integrity check finds. Grows with history; never on a request path."""

    async def backup(self, destination: Path) -> None:
        """Write a consistent copy of everything to a new file while messages arrive."""

    async def close(self) -> None:
        """Finish what is queued, then let go. Safe to call twice."""


class Blobs(Protocol):
    """Large strings of messages, outside the log. Content-addressed, one room per agent."""

    async def put(self, agent_id: str, data: bytes) -> str:
        """Keep `data` durably; returns its SHA-256. The same data twice is kept once."""

    async def get(self, agent_id: str, sha256: str) -> bytes:
        """What was put. Raises StoreCorrupt where it is missing or does not match its hash."""
