from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from offbook.log.audit_chain import micros
from offbook.model.types import Message
from offbook.search.index.agent_index import AgentIndex
from offbook.search.index.events import MOST_EVENTS, Events, told_events
from offbook.search.index.text import KnownReadings, said_by
from offbook.search.times import read_times
from tests.unit.search.index.test_said import placed

SUNDAY = datetime(2026, 10, 4, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def day(number: int) -> tuple[int, int]:
    start = datetime(2026, 10, number, tzinfo=UTC)
    return micros(start), micros(start + DAY)


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("Yesterday I met them in Boston.", [day(3)]),
        ("It was fine. The larch came on Friday. It lies in my garage.", [day(2)]),
        ("Wednesday, and back on Thursday.", [(day(1)[0] - (day(1)[1] - day(1)[0]), day(1)[0]), day(1)]),
        ("我昨天见了他们。", [day(3)]),
        ("I like the harbour.", []),
        ("We have known each other since May.", []),
    ],
)
def test_what_a_message_tells_of_is_read_from_when_it_was_said(text: str, events: list[tuple[int, int]]) -> None:
    assert told_events(text, SUNDAY) == events


@pytest.mark.parametrize(
    "sentence",
    [
        "We met last night.", "She left a fortnight ago.", "It opens next month.", "In the spring we sold it.",
        "On the fifth of March it broke.", "Tuesday was fine.", "It was in 2019.", "We ate at Christmas.",
    ],
)  # fmt: skip
def test_no_sentence_with_a_time_is_passed_over(sentence: str) -> None:
    closed = [one for one in read_times(sentence, SUNDAY).ranges if one.start and one.end]
    assert len(told_events(sentence, SUNDAY)) == len(closed)


def test_a_calendar_tells_of_its_first_times_only() -> None:
    text = " ".join(f"On {number} March it rained." for number in range(1, 20))
    assert len(told_events(text, SUNDAY)) == MOST_EVENTS


def test_how_much_of_what_is_told_lies_in_a_time(tmp_path: Path) -> None:
    events = Events(tmp_path, 0)
    week = (day(1)[0], day(7)[1])
    events.append(10, [[day(3)], [], [week, day(20)]])
    rows, shares = events.within(*map(float, day(3)), rows=100)
    assert dict(zip(rows.tolist(), shares.tolist(), strict=True)) == {10: 1.0, 12: pytest.approx(1 / 7)}
    assert events.within(*map(float, day(3)), rows=11)[0].tolist() == [10]
    assert not len(events.within(*map(float, day(9)), rows=100)[0])
    events.close()


def test_they_are_there_again_when_the_index_is_opened_and_known_when_it_is_made_anew(tmp_path: Path) -> None:
    one = said_by(placed(Message(role="user", content="Yesterday I met them in Boston.", ts=SUNDAY)))
    assert one.events == [day(3)]
    index = AgentIndex(tmp_path / "index", silence=timedelta(hours=2))
    index.take([one], 1)
    index.commit("hash")
    index.close()
    again = AgentIndex(tmp_path / "index", silence=timedelta(hours=2))
    assert again.rows.events.within(*map(float, day(3)), rows=1)[0].tolist() == [0]
    known = KnownReadings(again.rows).of([77, 78])
    again.close()
    assert known[1] is None
    assert known[0] is not None
    assert known[0].events == [day(3)]
    assert said_by(placed(Message(role="user", content="Nothing is read.")), known=known[0]).events == [day(3)]
