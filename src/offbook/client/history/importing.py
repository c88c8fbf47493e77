"""Conversations told to a provider, in order, each message once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from offbook.client.clients import Client
from offbook.client.history.conversations import (
    AgentReport,
    Conversation,
    Damage,
    Damaged,
    ImportReport,
    Late,
    Ready,
    batches,
)
from offbook.model.errors import ProviderRefused
from offbook.model.types import Receipt

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
