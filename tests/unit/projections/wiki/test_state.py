"""Which message lies in which page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.model.memory_entry import PlacedMessage
from offbook.model.receipt import ForgottenSpan
from offbook.model.types import Entry, LoggedMessage, Message
from offbook.projections.wiki import state as wiki_state
from offbook.projections.wiki.state import Places, WikiState, read_state, write_state

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
ARRIVALS = st.lists(
    st.tuples(st.integers(min_value=1, max_value=3), st.integers(min_value=0, max_value=2), st.integers(0, 300)),
    max_size=40,
)


@pytest.fixture(autouse=True, scope="module")
def _small_pages() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wiki_state, "MOST_MESSAGES_OF_A_PAGE", 4)
        patch.setattr(wiki_state, "MOST_BYTES_OF_A_PAGE", 1000)
        yield


def arrived(drawn: list[tuple[int, int, int]]) -> list[PlacedMessage]:
    seqs, found = dict[int, int](), list[PlacedMessage]()
    for session, day, size in drawn:
        seq = seqs[session] = seqs.get(session, 0) + 1
        message = Message(role="user", content="x" * size, ts=NOON + timedelta(days=day))
        logged = LoggedMessage(seq=seq, received_at=NOON, entry=Entry(message=message))
        found.append(PlacedMessage(place=session << 32 | seq, session=session, session_id=f"s{session}", logged=logged))
    return found


@given(ARRIVALS)
def test_every_message_is_in_one_page_of_its_day_and_found_there(drawn: list[tuple[int, int, int]]) -> None:
    state, messages = WikiState(agent_id="main"), arrived(drawn)
    for each in messages:
        state.take(each)
    state = msgspec.json.decode(msgspec.json.encode(state), type=WikiState)
    places = Places(state)
    for each in messages:
        seq = each.logged.seq
        where = places.find(each.session_id, seq)
        assert where is not None
        assert each.logged.message.ts is not None
        assert where.day == each.logged.message.ts.date().isoformat()
        assert where.anchor == f"s{each.session}-{seq}"
        span = ForgottenSpan(session_id=each.session_id, first_seq=seq, last_seq=seq)
        assert [state.files()[where.file]] == state.holding([span])
        assert state.places_in([span]) == [each.place]
    assert sum(part.messages for parts in state.days.values() for part in parts) == len(messages)
    assert all(part.messages <= 4 for parts in state.days.values() for part in parts)
    assert all(part.bytes <= 1000 for parts in state.days.values() for part in parts)
    whole = [ForgottenSpan(session_id=f"s{session}", first_seq=1, last_seq=2**62) for session in (1, 2, 3)]
    assert sorted(state.places_in(whole)) == sorted(each.place for each in messages)
    assert state.unwritten == set(state.pages())


@given(ARRIVALS, ARRIVALS)
def test_a_message_never_changes_its_page(
    before: list[tuple[int, int, int]], after: list[tuple[int, int, int]]
) -> None:
    state, messages = WikiState(agent_id="main"), arrived(before + after)
    for each in messages[: len(before)]:
        state.take(each)
    places = Places(state)
    first = [places.find(each.session_id, each.logged.seq) for each in messages[: len(before)]]
    for each in messages[len(before) :]:
        state.take(each)
    places = Places(state)
    assert [places.find(each.session_id, each.logged.seq) for each in messages[: len(before)]] == first


def test_what_is_in_no_page_is_not_found() -> None:
    state = WikiState(agent_id="main")
    state.take(arrived([(1, 0, 1)])[0])
    assert Places(state).find("s1", 2) is None
    assert Places(state).find("s2", 1) is None
    assert Places(state).newest("s2") is None
    assert Places(state).newest("s1") == (1, 1)


def test_a_state_of_another_agent_or_another_format_is_none(tmp_path: Path) -> None:
    path = tmp_path / "new" / "main.json"
    for state, is_read in (
        (WikiState(agent_id="main"), True),
        (WikiState(agent_id="other"), False),
        (WikiState(agent_id="main", format=0), False),
    ):
        write_state(path, msgspec.json.encode(state).decode())
        assert (read_state(path, "main") is not None) is is_read
