from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from offbook.log.audit_chain import GENESIS, chain_faults, event_hash, micros, moment, seal
from offbook.model.types import AuditDraft, AuditEvent, AuditHead

NOON = datetime(2026, 11, 15, 12, 0, 0, 123456, tzinfo=UTC)


def chain(length: int) -> list[AuditEvent]:
    events: list[AuditEvent] = []
    head = GENESIS
    for number in range(length):
        draft = AuditDraft(verb="onMessage", actor="test", session_id="chat", details={"accepted": number})
        events.append(seal("main", draft, head, NOON))
        head = AuditHead(seq=events[-1].seq, hash=events[-1].hash)
    return events


def test_the_formula_is_part_of_the_data_format() -> None:
    """This hash must never change: stored chains are verified with it."""
    (event,) = chain(1)
    assert event.hash == "3856206884427dc5a9a992eb40f67290df750400f354676e8e7d50bce47055f1"


def test_times_survive_to_the_microsecond() -> None:
    assert moment(micros(NOON)) == NOON


def test_an_untouched_chain_has_no_faults() -> None:
    assert list(chain_faults(chain(5), GENESIS)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"verb": "status"},
        {"actor": "somebody else"},
        {"session_id": "other"},
        {"details": {"accepted": 99}},
        {"at": moment(0)},
        {"agent_id": "other"},
    ],
)
def test_an_altered_event_is_found_and_located(change: dict[str, object]) -> None:
    events = chain(5)
    events[2] = msgspec.structs.replace(events[2], **change)
    assert [fault.seq for fault in chain_faults(events, GENESIS)] == [3]


def test_an_event_altered_with_its_hash_breaks_the_next_link() -> None:
    events = chain(5)
    altered = msgspec.structs.replace(events[2], actor="somebody else")
    events[2] = msgspec.structs.replace(altered, hash=event_hash(altered))
    assert [fault.seq for fault in chain_faults(events, GENESIS)] == [4]


def test_a_missing_event_is_found_and_located() -> None:
    events = chain(5)
    del events[1:3]
    faults = list(chain_faults(events, GENESIS))
    assert faults[0].seq == 2
    assert "2 to 3 are missing" in faults[0].what
