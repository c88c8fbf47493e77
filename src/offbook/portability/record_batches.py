"""Records of an export on their way to a provider: as many at a time as a request may hold, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from offbook.portability.conversations import BYTES_AT_A_TIME, MESSAGES_AT_A_TIME
from offbook.records import Followed, MarkRecord, MessageRecord, Record


class Batch(NamedTuple):
    records: list[Record]
    follows: Followed | None
    """The message before them, where they go on with its session."""
    size_bytes: int


def batches(
    records: Iterator[Record], *, most_records: int = MESSAGES_AT_A_TIME, most_bytes: int = BYTES_AT_A_TIME
) -> Iterator[Batch]:
    """One record may be larger than a batch is: it goes alone."""
    batch: list[Record] = []
    follows = last = None
    size = 0
    for record in records:
        size_bytes = len(msgspec.json.encode(record))
        if batch and (len(batch) >= most_records or size + size_bytes > most_bytes):
            yield Batch(batch, follows, size)
            batch, size = [], 0
            follows = last if _goes_on(record, last) else None
        batch.append(record)
        size += size_bytes
        if isinstance(record, MessageRecord):
            last = _followed(record)
    if batch:
        yield Batch(batch, follows, size)


def _goes_on(record: Record, last: Followed | None) -> bool:
    if last is None or not isinstance(record, MessageRecord | MarkRecord):
        return False
    return record.session_id == last.session_id


def _followed(record: MessageRecord) -> Followed | None:
    at = record.message.ts
    return None if at is None else Followed(session_id=record.session_id, seq=record.seq, at=at)
