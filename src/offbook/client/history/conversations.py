"""What every format is read into: conversations, each with its messages in order, ready to be sent; and the report of
what became of them, in numbers and names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from offbook.client.blocking import Client
from offbook.model.errors import ProviderRefused
from offbook.model.types import Receipt

MESSAGES_AT_A_TIME = 500
BYTES_AT_A_TIME = 4 * 1024 * 1024
"""A quarter of what a provider takes in one request by default."""
NAMED_AT_MOST = 1_000
"""Problems that are told one by one; all are counted."""
UNKNOWN_TIME = "neither ISO 8601 nor a number since 1970; what was said is taken, as of the time beside it or of now"


class Damage(NamedTuple):
    """What could not be read. `is_whole`: not one entry but a file, or all that follows in it."""

    where: str
    reason: str
    is_whole: bool = False


class Ready(NamedTuple):
    """A message as `onMessage` takes it. Its `id` is that of its origin, so that it is stored once however often it is
    told."""

    wire: dict[str, Any]
    at: datetime | None
    size_bytes: int
    where: str
    pinned: bool = False


Damaged = Callable[[Damage], None]


class Conversation(NamedTuple):
    """One session of one agent. `messages` reads it anew each time, a message at a time, and tells of damage."""

    agent_id: str
    key: str
    size_bytes: int
    messages: Callable[[Damaged], Iterator[Ready]]


def batches(found: Iterator[Ready]) -> Iterator[list[Ready]]:
    batch: list[Ready] = []
    size = 0
    for ready in found:
        if batch and (len(batch) >= MESSAGES_AT_A_TIME or size + ready.size_bytes > BYTES_AT_A_TIME):
            yield batch
            batch, size = [], 0
        batch.append(ready)
        size += ready.size_bytes
    if batch:
        yield batch


def by_time(begun: Iterable[tuple[datetime | None, Conversation]]) -> list[Conversation]:
    """In the order in which they began; those of which that is not known first."""
    return [each for _, each in sorted(begun, key=lambda pair: pair[0].timestamp() if pair[0] else 0.0)]


# ── the report ──


class AgentReport(msgspec.Struct, kw_only=True, rename="camel"):
    agent_id: str
    sessions: int = 0
    messages: int = 0
    already_there: int = 0
    new: int = 0
    """Stored; in a dry run: to be stored."""
    unknown: int = 0
    """In a dry run without a provider that can say: there already or new."""
    before_since: int = 0
    forgotten: int = 0
    """Transcripts left out because the host was told to forget them."""
    incognito: int = 0
    """Transcripts left out because their sessions are incognito."""
    skipped: int = 0
    conflicts: int = 0


class Late(msgspec.Struct, kw_only=True, rename="camel"):
    """A session that held newer messages when these came."""

    agent_id: str
    session_id: str
    messages: int


class Problem(msgspec.Struct, kw_only=True, rename="camel"):
    where: str
    reason: str


class LeftOut(msgspec.Struct, kw_only=True, rename="camel"):
    """What the source holds and Offbook does not take, and why."""

    what: str
    why: str
    count: int = 1


class ImportReport(msgspec.Struct, kw_only=True, rename="camel"):
    state: str
    is_dry_run: bool = msgspec.field(name="dryRun")
    agents: list[AgentReport] = []
    came_after_newer: list[Late] = []
    problems: list[Problem] = []
    left_out: list[LeftOut] = []
    unreadable: int = 0
    """Files and databases that could not be read, or not to their end."""
    changed_while_read: list[str] = []
    seconds: float = 0.0

    def problem(self, where: str, reason: str, *, is_first: bool = False) -> None:
        """`is_first`: before all others."""
        if len(self.problems) < NAMED_AT_MOST or is_first:
            self.problems.insert(0 if is_first else len(self.problems), Problem(where=where, reason=reason))

    def cannot_read(self, where: str, reason: str) -> None:
        """A file or a database, all of it or its end."""
        self.unreadable += 1
        self.problem(where, reason)

    def leave(self, what: str, why: str, count: int = 1) -> None:
        """Counted by kind: a file may hold a million of them."""
        for known in self.left_out:
            if (known.what, known.why) == (what, why):
                known.count += count
                return
        self.left_out.append(LeftOut(what=what, why=why, count=count))

    def note_time(self, given: Any, understood: datetime | None) -> None:
        self.unknown_times(int(is_unknown_time(given, understood)))

    def unknown_times(self, count: int) -> None:
        if count:
            self.leave("times that are not understood", UNKNOWN_TIME, count)

    def agent(self, agent_id: str) -> AgentReport:
        for known in self.agents:
            if known.agent_id == agent_id:
                return known
        self.agents.append(AgentReport(agent_id=agent_id))
        return self.agents[-1]

    def total(self, name: str) -> int:
        return sum(getattr(agent, name) for agent in self.agents)


def is_unknown_time(given: Any, understood: datetime | None) -> bool:
    """A time that is missing is told by nobody, one that is lost should be."""
    return understood is None and given is not None and given != ""


# ── Conversations told to a provider, in order, each message once ──


REFUSED_FOR_GOOD = frozenset({400, 413, 422})
"""The message is at fault, whichever provider is asked."""
UNKNOWN_VERB = 404
TRIES = 6
FIRST_PAUSE_SECONDS = 0.25
ODD = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError)
"""What a reader trips over that did not think of a value: it costs the rest of one conversation, not the import."""


@dataclass
class HistoryImport:
    """`client` None: nobody is asked, as in a dry run without a provider."""

    client: Client | None
    report: ImportReport
    since: datetime | None = None
    advance: Callable[[int], None] = lambda size_bytes: None
    _knows_missing: bool = field(default=True, init=False)

    def conversation(self, conversation: Conversation, agent: AgentReport) -> None:
        count, left = agent.messages, conversation.size_bytes

        def damaged(damage: Damage) -> None:
            agent.skipped += not damage.is_whole
            self.report.unreadable += damage.is_whole
            self.report.problem(damage.where, damage.reason)

        session_import = _SessionImport(conversation)
        for batch in batches(_read(conversation, damaged)):
            wanted = [ready for ready in batch if not self._is_before(ready)]
            agent.messages += len(batch)
            agent.before_since += len(batch) - len(wanted)
            if wanted:
                self._batch(session_import, wanted, agent)
            step = min(left, sum(ready.size_bytes for ready in batch))
            self.advance(step)
            left -= step
        self.advance(left)
        agent.sessions += agent.messages > count
        if session_import.late:
            late = Late(agent_id=conversation.agent_id, session_id=conversation.key, messages=session_import.late)
            self.report.came_after_newer.append(late)

    def _is_before(self, ready: Ready) -> bool:
        return self.since is not None and (ready.at is None or ready.at < self.since)

    def _batch(self, session_import: _SessionImport, batch: list[Ready], agent: AgentReport) -> None:
        missing = self._missing(session_import.conversation, batch)
        if missing is not None:
            agent.already_there += len(batch) - len(missing)
            batch = missing
        if not batch:
            return
        if self.client is None or (missing is None and self.report.is_dry_run):
            agent.unknown += len(batch)
            return
        older = session_import.older_than_newest(self.client, batch)
        accepted = len(batch) if self.report.is_dry_run else self._send(session_import.conversation, batch, agent)
        if not self.report.is_dry_run:
            self._pin(session_import.conversation, [ready.wire["id"] for ready in batch if ready.pinned])
        agent.new += accepted
        session_import.late += min(accepted, older)

    def _missing(self, conversation: Conversation, batch: Sequence[Ready]) -> list[Ready] | None:
        """Those that the provider does not have. None: it cannot say, and counts duplicates when they come."""
        if self.client is None or not self._knows_missing:
            return None
        ids = [ready.wire["id"] for ready in batch]
        try:
            missing = set(
                self._patiently(lambda client: client.missing(conversation.key, ids, agent_id=conversation.agent_id))
            )
        except ProviderRefused as error:
            if _status(error) == UNKNOWN_VERB:
                self._knows_missing = False
            elif _status(error) not in REFUSED_FOR_GOOD:
                raise
            return None  # an id is at fault: the message is refused, and named, when it is sent
        return [ready for ready in batch if ready.wire["id"] in missing]

    def _send(self, conversation: Conversation, batch: Sequence[Ready], agent: AgentReport) -> int:
        """How many were new. Where one is at fault the others are stored."""
        wires = [ready.wire for ready in batch]
        try:
            receipt: Receipt = self._patiently(
                lambda client: client.on_message(conversation.key, *wires, agent_id=conversation.agent_id)
            )
        except ProviderRefused as error:
            if _status(error) not in REFUSED_FOR_GOOD:
                raise
            if len(batch) > 1:
                half = len(batch) // 2
                return self._send(conversation, batch[:half], agent) + self._send(conversation, batch[half:], agent)
            agent.skipped += 1
            self.report.problem(batch[0].where, f"the provider refuses it: {error.document.get('detail', '')}")
            return 0
        agent.already_there += receipt.duplicates
        agent.conflicts += len(receipt.conflicts)
        for conflict in receipt.conflicts:
            where = next((ready.where for ready in batch if ready.wire["id"] == conflict.id), conversation.key)
            self.report.problem(where, f"{conflict.id} is stored with other content (#{conflict.seq}), which stays")
        return receipt.accepted

    def _pin(self, conversation: Conversation, ids: list[str]) -> None:
        """Only what has just come: what was there may have been unpinned since."""
        if not ids:
            return
        try:
            self._patiently(
                lambda client: client.pin(session_id=conversation.key, message_ids=ids, agent_id=conversation.agent_id)
            )
        except ProviderRefused as error:
            if _status(error) not in REFUSED_FOR_GOOD | {UNKNOWN_VERB}:
                raise
            self.report.leave(
                "pins", "the provider cannot pin by message: pin what matters with `offbook pin`", len(ids)
            )

    def _patiently(self, ask: Callable[[Client], Any]) -> Any:
        """A provider that is overloaded says so and is asked again."""
        assert self.client is not None
        for attempt in range(TRIES):
            try:
                return ask(self.client)
            except ProviderRefused as error:
                if not error.document.get("retryable") or attempt == TRIES - 1:
                    raise
                time.sleep(FIRST_PAUSE_SECONDS * 2**attempt)
        raise AssertionError("the last try returns or raises")


def _read(conversation: Conversation, damaged: Damaged) -> Iterator[Ready]:
    try:
        yield from conversation.messages(damaged)
    except ODD as error:
        told = f"cannot be read to its end, for something in it is none of its format: {error!r}"
        damaged(Damage(conversation.key, told, is_whole=True))


@dataclass
class _SessionImport:
    """A session on its way, and how its messages stand to what the provider had of it before."""

    conversation: Conversation
    late: int = 0
    _newest: datetime | None = None
    _is_asked: bool = False

    def older_than_newest(self, client: Client, batch: Sequence[Ready]) -> int:
        if not self._is_asked:
            self._is_asked, self._newest = True, _newest(client, self.conversation)
        newest = self._newest
        return sum(newest is not None and ready.at is not None and ready.at < newest for ready in batch)


def _status(error: ProviderRefused) -> Any:
    return error.document.get("status")


def _newest(client: Client, conversation: Conversation) -> datetime | None:
    page = client.log(conversation.key, limit=1, newest=True, agent_id=conversation.agent_id)
    times = [line["message"].get("ts") for line in page["messages"]]
    return datetime.fromisoformat(times[0]) if times and times[0] else None
