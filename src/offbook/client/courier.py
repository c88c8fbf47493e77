"""Takes what waits in an outbox to the provider: in order, in batches, each record once."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from offbook.client.outbox import Outbox
from offbook.client.segment import Queued
from offbook.client.transport import AnswerLost, Transport, value_of
from offbook.model.errors import PROBLEM_TYPE_PREFIX, ProviderError, ProviderRefused
from offbook.model.types import Receipt

BATCH_RECORDS = 200
BATCH_BYTES = 4 * 1024 * 1024
DELIVERY_TIMEOUT_SECONDS = 30.0
LOSSES_OF_A_LARGE_RECORD = 5
HELD_BYTES = 4 * 1024 * 1024
"""So much may lie before what other lanes send while one is held: nothing behind it leaves the disk."""

FORBIDDEN = 403
OF_THE_MESSAGE = frozenset({400, 409, 413, 415, 422})
PROBLEMS_OF_THE_MESSAGE = frozenset(
    PROBLEM_TYPE_PREFIX + slug for slug in ("invalid-input", "wrong-shape", "too-large")
)

logger = logging.getLogger("offbook.client")


class Envelope(msgspec.Struct, rename="camel", omit_defaults=True):
    """A record of the outbox: one message and where it belongs."""

    session_id: str
    message: msgspec.Raw
    agent_id: str | None = None


class Delivered(msgspec.Struct, rename="camel", omit_defaults=True):
    """The body of one `onMessage`."""

    session_id: str
    messages: list[msgspec.Raw]
    agent_id: str | None = None


class Batch(NamedTuple):
    """Neighbours of one lane that belong to one session."""

    session_id: str
    agent_id: str | None
    records: list[Queued]
    messages: list[msgspec.Raw]

    def body(self) -> bytes:
        return msgspec.json.encode(
            Delivered(session_id=self.session_id, agent_id=self.agent_id, messages=self.messages)
        )

    def singles(self) -> list[Batch]:
        return [
            Batch(self.session_id, self.agent_id, [record], [message])
            for record, message in zip(self.records, self.messages, strict=True)
        ]

    def takes(self, envelope: Envelope, record: Queued) -> bool:
        """A gap in the lane ends a batch: a claim names every ordinal from its first to its last."""
        newest = self.records[-1]
        return (self.session_id, self.agent_id, newest.lane) == (
            envelope.session_id,
            envelope.agent_id,
            record.lane,
        ) and record.lane_ordinal == newest.lane_ordinal + 1


class Refused(NamedTuple):
    """A lane that may not be written to."""

    lane: str
    refusal: ProviderRefused


_envelope = msgspec.json.Decoder(Envelope)


def batches(records: Iterable[Queued]) -> list[Batch]:
    made: list[Batch] = []
    for record in records:
        envelope = _opened(record)
        if not (made and made[-1].takes(envelope, record)):
            made.append(Batch(envelope.session_id, envelope.agent_id, [], []))
        made[-1].records.append(record)
        made[-1].messages.append(envelope.message)
    return made


def _opened(record: Queued) -> Envelope:
    try:
        return _envelope.decode(record.record)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Not of our making. A session without a name is refused, which puts the record aside with a reason.
        return Envelope(session_id="", message=msgspec.Raw(record.record))


def concerns_messages(refusal: ProviderRefused) -> bool:
    """Whether other messages might pass where these did not. If not, all of them wait.

    Wrong token, wrong provider, a bug over there: the same messages pass once somebody put that right.
    """
    if refusal.retryable:
        return False
    return refusal.document.get("status") in OF_THE_MESSAGE or refusal.document.get("type") in PROBLEMS_OF_THE_MESSAGE


def concerns_lane(refusal: ProviderRefused) -> bool:
    """Whether other lanes might pass: a token is often for some agents only."""
    return refusal.document.get("status") == FORBIDDEN and not refusal.retryable


class Courier:
    """Delivers one outbox. Raises ProviderError where the rest has to wait, OSError where the disk does not do."""

    def __init__(self, outbox: Outbox, transport: Transport) -> None:
        self._outbox = outbox
        self._transport = transport
        self._losses = (0, 0)
        self._taken = 0
        self._most_beside_held = BATCH_RECORDS

    async def deliver_some(self, limit_records: int = BATCH_RECORDS) -> None:
        """A batch or more. A lane that may not be written to is held, all of it, so that its order stays; its refusal
        is raised once nothing else is left to bring."""
        held: dict[str, ProviderRefused] = {}
        room_bytes: int | None = None
        most = min(limit_records, BATCH_RECORDS)
        while records := self._outbox.peek(self._most_beside_held if held else most, BATCH_BYTES, held):
            too_much_bytes = self._outbox.passed_bytes - HELD_BYTES
            taken_before = self._taken
            refused = await (self._bring_beside_held(records) if held else self._bring(records))
            if held and too_much_bytes > 0 and self._taken > taken_before:
                # Only now, for it may be everybody who is refused, as by a proxy on the way, and then all can wait.
                room_bytes = self._outbox.waiting_bytes - too_much_bytes
                held.clear()
            elif refused is None:
                if not held:
                    return
            elif room_bytes is not None and not held and self._outbox.waiting_bytes > room_bytes:
                self._make_room(refused.refusal.detail, room_bytes)
            else:
                held[refused.lane] = refused.refusal
        if held:
            raise next(iter(held.values()))

    async def _bring(self, records: list[Queued]) -> Refused | None:
        """Deliver these, or those before the first of a lane that may not be written to."""
        for batch in batches(records):
            try:
                await self._deliver(batch)
            except ProviderRefused as refusal:
                if not concerns_lane(refusal) or self._outbox.lane_count <= 1:
                    raise
                return Refused(batch.records[0].lane, refusal)
        return None

    async def _bring_beside_held(self, records: list[Queued]) -> Refused | None:
        """What is held makes each attempt fail, so how much others get at a time is counted here: half as much after
        a failure of their own, twice as much after a success."""
        try:
            refused = await self._bring(records)
        except ProviderError:
            self._most_beside_held = max(1, len(records) // 2)
            raise
        if refused is None:
            self._most_beside_held = min(BATCH_RECORDS, 2 * self._most_beside_held)
        return refused

    def _make_room(self, reason: str, room_bytes: int) -> None:
        """Others pass, and too much lies there for a lane that is held: its oldest records make way, to where they can
        be sent from again."""
        refused = self._outbox.peek(BATCH_RECORDS, BATCH_BYTES)
        for record in refused:
            if record.lane != refused[0].lane or self._outbox.waiting_bytes <= room_bytes:
                break
            self._reject(record, f"it waited until others found no room: {reason}")

    async def deliver_all(self) -> None:
        while self._outbox.waiting:
            await self.deliver_some()

    async def _deliver(self, batch: Batch) -> None:
        newest = batch.records[-1]
        try:
            await self._send(batch)
        except ProviderRefused as refusal:
            if not concerns_messages(refusal):
                raise
            if len(batch.records) == 1:
                return self._reject(newest, refusal.detail)
            for single in batch.singles():
                await self._deliver(single)
            return None
        except AnswerLost as error:
            if not self._is_lost_for_good(newest):
                raise
            return self._reject(newest, f"sent {LOSSES_OF_A_LARGE_RECORD} times: {error.detail}")
        self._taken += len(batch.records)
        return self._outbox.advance(newest.ordinal)

    async def _send(self, batch: Batch) -> None:
        first, newest = batch.records[0], batch.records[-1]
        # The provider counts per client and agent. It may resolve "no agent" to one that is also sent by
        # name, so what is sent without a name is counted as another client's.
        client = self._outbox.client_id if newest.lane else f"{self._outbox.client_id}~default"
        claim = (
            f"offbook-capture: client={client}; first={first.lane_ordinal}; last={newest.lane_ordinal}; "
            f"sent={self._outbox.asked_in(newest.lane)}\r\n"
        )
        answer = await self._transport.post(
            "/v1/onMessage", batch.body(), headers=claim, timeout_seconds=DELIVERY_TIMEOUT_SECONDS
        )
        value_of(answer, Receipt)

    def _is_lost_for_good(self, record: Queued) -> bool:
        """A server may hang up on a body over its limit without a word; nothing behind it would ever arrive."""
        if len(record.record) <= BATCH_BYTES:
            return False
        ordinal, losses = self._losses
        self._losses = (record.ordinal, losses + 1 if ordinal == record.ordinal else 1)
        return self._losses[1] >= LOSSES_OF_A_LARGE_RECORD

    def _reject(self, record: Queued, reason: str) -> None:
        path = self._outbox.reject(record, reason)
        if path is None:
            logger.error("the provider refused a message for good, and no folder can keep it: %s", reason)
        else:
            logger.warning("the provider refused a message for good; it is kept in %s: %s", path, reason)
        self._outbox.advance(record.ordinal, rejected=1)
