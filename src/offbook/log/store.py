"""The seams. A promise lives in a docstring here and in a contract test that runs on every backend.

`Store` is what everybody asks for; its parts are here (log, recall) and in `derived_store`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime
from pathlib import Path
from typing import Literal, Protocol

from offbook.log.derived_store import ErasureRows, LessonRows, RecordRows, SummaryRows, TurnRows
from offbook.log.owners import Owners
from offbook.model.memory_entry import (
    Arrivals,
    Hold,
    HoldCounts,
    PlacedMessage,
    StoredVector,
    Supersession,
    VectorRow,
)
from offbook.model.overview import Day
from offbook.model.status import Capture, CaptureClaim, Counts
from offbook.model.types import (
    AuditDraft,
    AuditEvent,
    AuditHead,
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

ANY_SEQ = 2**62
"""Above every message's."""
PARENT_NOTE = "parentSessionId"
"""The note of a session that `Session.parent_session_id` is read from."""


class ExaminedMessage(Value, frozen=True):
    """A message as its row holds it. `chars_through`: of the session, up to and with this message."""

    logged: LoggedMessage
    chars_through: int


ChangeKind = Literal[
    "log",
    "marks",
    "summaries",
    "texts",
    "notes",
    "pins",
    "lessons",
    "learnt",
    "links",
    "ends",
    "imports",
    "erased",
    "asked",
]
"""What changes: the log, and what is beside it. `texts`: of summaries that were there already. `learnt`: lessons that
nobody judged. `asked`: somebody wants to see what there is now, whatever was shown before."""


class Versions:
    """How often what is kept of each agent has changed, by kind. Whatever is kept in memory of it is kept with the
    version of what it was made from: nobody has to be told to let go of it."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, ChangeKind]] = Counter()

    def changed(self, agent_id: str, *kinds: ChangeKind) -> None:
        self._counts.update((agent_id, kind) for kind in kinds)

    def of(self, agent_id: str, *kinds: ChangeKind) -> tuple[int, ...]:
        return tuple(self._counts[agent_id, kind] for kind in kinds)

    def is_erased_since(self, agent_id: str, erased: tuple[int, ...]) -> bool:
        """Whether what was read when `erased` was the version of that kind may hold what is gone now, or is just going:
        an erasure counts once when it begins and once when it is done."""
        (count,) = now = self.of(agent_id, "erased")
        return now != erased or count % 2 == 1


class LogRows(Protocol):
    """The log, its sessions and its audit chain."""

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

    async def missing(self, scope: Scope, ids: Sequence[str]) -> list[str]:
        """Which of these message ids the session does not hold, each once, in the order given. Does not grow with
        history. A session that is not there: all of them, and it is not made."""

    async def places_of(self, scope: Scope, ids: Sequence[str]) -> list[int]:
        """Where in the log the session's messages of these ids lie, in order; those it does not hold are left out."""

    # ── sessions ──

    async def mark(self, scope: Scope, mark: Mark, event: AuditDraft, *, parent_session_id: str | None = None) -> None:
        """Record that something happened to the session after its newest message.

        `parent_session_id` is noted with it (`PARENT_NOTE`). The event of a start says which one is noted, whether it
        came with this start or before.
        """

    async def session(self, scope: Scope) -> Session | None: ...

    async def session_and_newest(self, scope: Scope, *, limit: int) -> tuple[Session | None, list[LoggedMessage]]:
        """A session and its newest messages, newest first, in one read."""

    async def sessions(self, agent_id: str, *, limit: int = 20, matching: str = "") -> list[Session]:
        """The agent's sessions, the one last written to first; those whose id contains `matching`, regardless of
        the case of ASCII letters."""

    async def marks(self, scope: Scope, *, limit: int = 100) -> list[Mark]:
        """The newest marks of the session, oldest first."""

    # ── what is known of an agent ──

    async def agents(self) -> list[str]:
        """Every agent that has a row. For the operator's tools."""

    async def counts(self, agent_id: str) -> Counts:
        """Exact, and does not grow with history."""

    async def captures(self, agent_id: str) -> list[Capture]: ...

    async def activity(self, agent_id: str, *, since: date) -> list[Day]:
        """What the agent's log and its models did on each day (UTC, by when it was said) from `since` on, the oldest
        first. Days without anything are left out. Grows with history."""

    # ── audit ──

    async def record(self, agent_id: str, event: AuditDraft) -> AuditEvent | None:
        """Append one event to the agent's chain. Nothing else changes with it, so a full disk does not refuse it: None
        where there is no room, and then it is written, and says so, once there is."""

    async def audit_head(self, agent_id: str) -> AuditHead:
        """The end of the agent's chain."""

    async def noted_audit_head(self, agent_id: str) -> AuditHead:
        """A head noted apart from the chain, seconds old at the most: a chain that no longer reaches it was cut."""

    async def audit_events(
        self, agent_id: str, *, session_id: str | None = None, after_seq: int = 0, limit: int = 100
    ) -> list[AuditEvent]:
        """Events after `after_seq`, oldest first."""

    async def newest_audit_events(
        self,
        agent_id: str,
        *,
        session_id: str | None = None,
        limit: int = 100,
        before_seq: int | None = None,
        verbs: Sequence[str] | None = None,
        until: datetime | None = None,
    ) -> list[AuditEvent]:
        """The last `limit` events, oldest first: before that one, of these verbs, at that time or before. Those of a
        session are found by verb without looking at its others; those of an agent are not."""

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


class RecallRows(Protocol):
    """What recall follows and keeps: where messages lie, their vectors, what use makes of them."""

    # ── what recall follows ──

    async def arrivals(self, agent_id: str, *, after_event: int, limit: int = 500) -> Arrivals:
        """The agent's messages in the order they arrived, from the audit events after `after_event`.

        Each message once, if one goes on from `through_event`, whatever arrives meanwhile. `limit` bounds the
        messages, save that one event is always taken whole, and the events looked at (four for each message), so
        there may be none although it is not the end. Does not grow with history. Nothing lies after an
        `after_event` that the chain does not reach.
        """

    async def messages_at(self, agent_id: str, places: Sequence[int]) -> list[PlacedMessage]:
        """The messages at these places, in the order asked. What is unknown or another agent's is left out."""

    async def session_number(self, agent_id: str, session_id: str) -> int | None:
        """The store's number of the session, as in `PlacedMessage.session`."""

    async def places(self, scope: Scope, seqs: Sequence[int]) -> list[int]:
        """Where these messages of a session lie, each once, in the order given; those that are not there are left
        out."""

    # ── vectors: derived, so no audit event ──

    async def add_vectors(self, agent_id: str, model: str, vectors: Sequence[VectorRow]) -> None:
        """Keep the vectors of a model. The same model, place and part again replaces what was there. A vector for
        a place that is not one of the agent's messages is left out."""

    async def vectors(self, agent_id: str, model: str, *, after: int = 0, limit: int = 1000) -> list[StoredVector]:
        """The model's vectors with numbers above `after`, by number.

        Each vector added gets a number above all that the agent and model had, also where it replaces one and
        where some were dropped: whoever goes on after the last number seen misses none.
        """

    async def vector_models(self, agent_id: str) -> dict[str, int]:
        """The models that the agent has vectors of, and how many. Exact, and does not grow with history."""

    async def drop_vectors(self, agent_id: str, model: str) -> int:
        """Remove all vectors of the model; returns how many. Done in pieces, so that other writes get their turn:
        what is added meanwhile stays, and one that broke off is finished by the next."""

    # ── what use makes of a message ──

    async def recalled(self, agent_id: str, places: Sequence[int], event: AuditDraft) -> None:
        """One more retrieval of each of the agent's places, with the event; with no places the event only. On a full
        disk as `record`."""

    async def pin(self, agent_id: str, places: Sequence[int], *, pinned: bool, event: AuditDraft) -> list[int]:
        """Pin the agent's places, or let them go; returns those that changed, in the order asked. The event says
        how many as `changed`."""

    async def holds(self, agent_id: str, places: Sequence[int]) -> dict[int, Hold]:
        """Of these places of the agent, those that were ever retrieved or are pinned."""

    async def pinned(self, agent_id: str, *, limit: int = 100, session_id: str | None = None) -> list[int]:
        """The pinned places, of the agent or of one session, the one pinned last first."""

    async def hold_counts(self, agent_id: str) -> HoldCounts:
        """Exact, and does not grow with history."""

    async def retrieved_since(self, agent_id: str, since: datetime, *, limit: int) -> list[tuple[int, Hold]]:
        """The places last retrieved at `since` or later, the newest first."""

    async def supersede(self, agent_id: str, links: Sequence[Supersession], event: AuditDraft) -> int:
        """Note that messages take the place of others; returns how many links were new.

        A link of the same two places is kept as it was first noted. One that leads to itself, to nothing or to
        another agent is left out. The event is recorded only where something was new.
        """

    async def withdraw_supersessions(self, agent_id: str, note: str, event: AuditDraft) -> int:
        """Take back every link of the agent's with this note, so that what had given way holds again; returns how many
        there were. The event is recorded, with that number as `withdrawn`, only where there was one. An empty note is
        that of all the links nobody asked for: it takes back none. What was unlinked stays so.
        """

    async def unlink(self, agent_id: str, old_place: int, new_place: int | None, event: AuditDraft) -> int:
        """Take back the agent's links from an older message to what came later, or only that to `new_place`: they get
        the kind `TAKEN_BACK`, and stay, so that none is made again. Returns how many there were. The event is recorded,
        with that number as `changed`, only where there was one."""

    async def supersessions(self, agent_id: str, places: Sequence[int]) -> list[Supersession]:
        """The links that touch any of the places, as old or as new, by their places."""

    async def newest_supersessions(self, agent_id: str, *, limit: int = 500) -> list[Supersession]:
        """The agent's links that were noted last, the newest first."""

    # ── small state of an agent ──

    async def agent_note(self, agent_id: str, name: str) -> str | None: ...

    async def set_agent_note(self, agent_id: str, name: str, value: str | None, event: AuditDraft | None) -> None:
        """Keep a value under a name, in the place of the one before; None removes it."""

    async def agents_with_note(self, name: str, value: str) -> list[str]:
        """The agents that have exactly this value under this name, by name. For consent across agents."""


class Store(LogRows, RecallRows, SummaryRows, LessonRows, TurnRows, RecordRows, ErasureRows, Protocol):
    """The log and what belongs to it. Every method names its owner, but for `agents`, `agents_with_note`
    and `spending` of all.

    A method that writes returns only when the write is durable, and writes everything it was given,
    with its audit event, or nothing; but for `record` and `recalled` on a full disk. All its errors are `StoreError`s.
    """

    @property
    def kind(self) -> str:
        """What this is: `sqlite`, `postgres`."""

    @property
    def owners(self) -> Owners | None:
        """Of several nodes over one database, which has which agents; None where there is only this one."""

    @property
    def versions(self) -> Versions:
        """Of what this has written since it was opened."""

    # ── care ──

    @property
    def queued_writes(self) -> int:
        """That wait for the writer now."""

    async def schema_version(self) -> int:
        """Of the tables: older than the newest where this only reads, and nobody has written to it since."""

    async def ping(self) -> None:
        """Answers when the store can be read."""

    async def installation_key(self) -> bytes:
        """32 random bytes, made with the store: they sign what we inject, so that it is known when it comes back."""

    def faults(self) -> AsyncIterator[Fault]:
        """What the store's own integrity check finds. Grows with history; never on a request path."""

    def derived_faults(self) -> AsyncIterator[Fault]:
        """Which summaries, contexts and answers of models, of all agents, cannot be read. In pages, so that others get
        their turn; grows with history, and never on a request path."""

    async def backup(self, destination: Path) -> None:
        """Write a consistent copy of everything to a new file while messages arrive."""

    @property
    def out_of_reach(self) -> tuple[str, ...]:
        """Where what was erased may still lie after a purge, in words."""

    @property
    def own_files(self) -> frozenset[str]:
        """Names of the files that are the store's alone. Whoever else opened and closed one of them in this process
        would take its locks away, and leave it to be damaged by another process."""

    async def found_in_files(self, forms: Collection[bytes]) -> dict[str, set[bytes]]:
        """Which of these byte strings are in those files, by name, wherever in them: in free space, too. Grows with
        history; never on a request path."""

    async def close(self) -> None:
        """Finish what is queued, then let go. Safe to call twice."""


class Blobs(Protocol):
    """Large strings of messages, outside the log. Content-addressed, one room per agent."""

    async def put(self, agent_id: str, data: bytes) -> str:
        """Keep `data` durably; returns its SHA-256. The same data twice is kept once."""

    async def get(self, agent_id: str, sha256: str) -> bytes:
        """What was put. Raises StoreCorrupt where it is missing or does not match its hash."""

    def holding(self, agent_id: str, digests: Collection[str]) -> AbstractContextManager[None]:
        """While it lasts, none of these is dropped: for whoever puts them, from before that until a message refers to
        them. Waits for nothing."""

    async def drop(
        self, agent_id: str, digests: Sequence[str], in_use: Callable[[], Awaitable[Collection[str]]]
    ) -> list[str]:
        """Let go of these, but for those that `in_use` names when it is asked, and for those that somebody holds, or
        held since it was asked: they are returned, to be tried again. What is not there is gone already."""


CROSS = "cross-search"
"""The agent's note of its consent: `on` or `off`; without one the setting `crossSearchEnabled` decides."""
