from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from zlib import crc32

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.search.index import rows as rows_module
from offbook.search.index.rows import (
    LONGEST_EPISODE,
    MOST_SPEAKERS,
    MOST_UNSORTED,
    NO_ROW,
    NO_SPEAKER,
    ROLES,
    ROW,
    SYSTEM,
    TOOL,
    IndexedMessage,
    Rows,
)
from tests.unit.search.index.sayings import said

SILENCE = timedelta(hours=2)


def open_rows(folder: Path, rows: int = 0, words: int = 0, speakers: Sequence[str] = ()) -> Rows:
    return Rows(folder, rows=rows, words=words, speakers=speakers, silence=SILENCE)


def reopened(folder: Path, live: Rows) -> Rows:
    return open_rows(folder, live.count, live.word_count, live.speakers)


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    opened = open_rows(tmp_path)
    yield opened
    opened.close()


def everyone(rows: Rows) -> np.ndarray:
    return np.arange(rows.count)


def episodes(rows: Rows) -> list[int]:
    return rows.view()["episode"].tolist()


# ── neighbours and episodes ──


def test_interleaved_sessions_have_their_own_neighbours_and_episodes(rows: Rows) -> None:
    rows.append([said(1, session=1), said(2, session=2), said(3, session=1)])
    rows.append([said(4, session=2), said(5, session=1)])
    assert rows.view()["previous"].tolist() == [NO_ROW, NO_ROW, 0, 1, 2]
    assert rows.next_of(everyone(rows), 5).tolist() == [2, 3, 4, NO_ROW, NO_ROW]
    assert rows.next_of(everyone(rows), 4).tolist() == [2, 3, NO_ROW, NO_ROW, NO_ROW], "what came later is not seen"
    assert episodes(rows) == [0, 1, 0, 1, 0]
    assert sorted(rows.episode_rows(np.array([0]), 5).tolist()) == [0, 2, 4]
    assert rows.session_rows(2, 5).tolist() == [1, 3]


def test_what_the_host_tells_the_agent_stands_by_itself(rows: Rows) -> None:
    rows.append([said(1), said(2, role="system"), said(3, role="assistant")])
    assert rows.view()["previous"].tolist() == [NO_ROW, NO_ROW, 0]
    assert rows.next_of(everyone(rows), 3).tolist() == [2, NO_ROW, NO_ROW]
    assert episodes(rows) == [0, 1, 0]
    assert rows.view()["position"].tolist() == [0, 1, 1], "it opens nothing"
    assert (rows.has_said(SYSTEM), rows.has_said(TOOL)) == (True, False)


def test_further_words_are_counted_after_the_others(rows: Rows) -> None:
    rows.append([msgspec.structs.replace(said(1, "cat"), further=["dog"]), said(2, "fish")])
    assert rows.words().tolist() == [crc32(word) for word in (b"cat", b"dog", b"fish")]
    assert rows.view()["words"].tolist() == [2, 1]


def test_two_hours_of_silence_end_an_episode(rows: Rows) -> None:
    rows.append([said(1), said(2, minutes=119.9), said(3, minutes=239.9), said(4, minutes=240)])
    assert episodes(rows) == [0, 0, 1, 1]
    assert rows.view()["previous"].tolist() == [NO_ROW, 0, 1, 2], "yet they are neighbours"


def test_a_message_of_an_earlier_time_goes_on_with_its_episode(rows: Rows) -> None:
    rows.append([said(1, minutes=600), said(2, minutes=0)])
    assert episodes(rows) == [0, 0]


def test_an_old_history_that_comes_late_is_not_the_newest(rows: Rows, tmp_path: Path) -> None:
    assert rows.newest is None
    rows.append([said(1, minutes=600)])
    newest = rows.newest
    rows.append([said(place, minutes=-place) for place in range(2, 202)])
    assert rows.newest == newest == rows.view()["ts"].max()
    assert reopened(tmp_path, rows).newest == newest


def test_an_episode_has_at_most_so_many_messages(rows: Rows) -> None:
    rows.append([said(place) for place in range(1, 2 * LONGEST_EPISODE + 2)])
    assert np.bincount(episodes(rows)).tolist() == [LONGEST_EPISODE, LONGEST_EPISODE, 1]
    assert len(rows.episode_rows(np.array([0]), rows.count)) == LONGEST_EPISODE
    assert len(rows.episode_rows(np.array([0, 1]), 70)) == 70


sayings = st.lists(
    st.tuples(
        st.integers(min_value=1, max_value=4),
        st.sampled_from([0, 1, 90, 120, 121, 500]),
        st.sampled_from(["", "Ada", "ADA", "Grace"]),
        st.sampled_from(ROLES),
        st.sampled_from(["", "one word", "one two three four"]),
    ),
    max_size=150,
)


@given(sayings, st.lists(st.integers(min_value=1, max_value=40), min_size=1, max_size=5), st.data())
def test_opened_again_it_answers_as_before_and_goes_on_as_before(
    made: list[tuple], sizes: list[int], data: st.DataObject
) -> None:
    minutes = 0
    messages: list[IndexedMessage] = []
    for place, (session, pause, speaker, role, text) in enumerate(made, 1):
        minutes += pause
        messages.append(said(place, text, session=session, minutes=minutes, role=role, speaker=speaker))
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        live, twin = open_rows(Path(one)), open_rows(Path(other))
        start = 0
        while start < len(messages):
            size = sizes[start % len(sizes)]
            for each in (live, twin):
                each.append(messages[start : start + size])
            start += size
            if data.draw(st.booleans()):
                twin.close()
                twin = reopened(Path(other), twin)
        assert_same(live, twin)
        check_against_plain_reading(live, messages)
        live.close()
        twin.close()


def assert_same(one: Rows, other: Rows) -> None:
    assert one.view().tobytes() == other.view().tobytes()
    assert one.words().tobytes() == other.words().tobytes()
    assert one.speakers == other.speakers
    everything = everyone(one)
    assert one.next_of(everything, one.count).tolist() == other.next_of(everything, other.count).tolist()
    for episode in set(episodes(one)):
        wanted = one.episode_rows(np.array([episode]), one.count)
        assert other.episode_rows(np.array([episode]), other.count).tolist() == wanted.tolist()
    assert [one.mean_chars(role) for role in range(4)] == pytest.approx([other.mean_chars(role) for role in range(4)])


def check_against_plain_reading(rows: Rows, messages: list[IndexedMessage]) -> None:
    last: dict[int, int] = {}
    for row, message in enumerate(messages):
        is_said = message.role != "system"
        before = last.get(message.session, NO_ROW) if is_said else NO_ROW
        assert rows.view()["previous"][row] == before
        if before != NO_ROW:
            is_silent = message.ts - messages[before].ts >= SILENCE
            goes_on = rows.view()["episode"][row] == rows.view()["episode"][before]
            assert not (is_silent and goes_on)
        if is_said:
            last[message.session] = row
        at, count = rows.view()["words_at"][row], rows.view()["words"][row]
        assert rows.words()[at : at + count].tolist() == [crc32(term.encode()) for term in message.terms]
    for episode in set(episodes(rows)):
        members = np.flatnonzero(np.array(episodes(rows)) == episode).tolist()
        assert sorted(rows.episode_rows(np.array([episode]), rows.count).tolist()) == members
        assert len(members) <= LONGEST_EPISODE


def test_a_million_rows_open_in_a_second(tmp_path: Path) -> None:
    count = 1_000_000
    made = np.zeros(count, ROW)
    made["place"], made["session"] = np.arange(count), np.arange(count) % 5_000
    made["previous"] = np.arange(count) - 5_000
    made["previous"][:5_000] = NO_ROW
    made["episode"] = np.arange(count) // 64
    made.tofile(tmp_path / "rows")
    started = time.process_time()
    rows = open_rows(tmp_path, rows=count)
    assert time.process_time() - started < 2, "a second, with some to spare on a busy machine"
    rows.append([said(count + 1, session=7)])
    assert rows.view()["previous"][-1] == count - 5_000 + 7
    rows.close()


# ── finding by place ──


def test_places_in_any_order_known_or_not(rows: Rows) -> None:
    rows.append([said(place) for place in (50, 10, 30)])
    assert rows.find([30, 99, 10, 50, 30, -1]).tolist() == [2, NO_ROW, 1, 0, 2, NO_ROW]
    assert rows.find([]).tolist() == []


def test_nothing_is_found_where_nothing_is(rows: Rows) -> None:
    assert rows.find([1, 2]).tolist() == [NO_ROW, NO_ROW]


@given(
    st.lists(st.integers(min_value=1, max_value=10**12), unique=True, max_size=60),
    st.lists(st.integers(min_value=1, max_value=15), min_size=1, max_size=4),
)
def test_places_are_found_before_and_after_they_are_put_in_order(places: list[int], sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(rows_module, "MOST_UNSORTED", 5)
        rows = open_rows(Path(folder))
        start = 0
        while start < len(places):
            size = sizes[start % len(sizes)]
            rows.append([said(place) for place in places[start : start + size]])
            start += size
            taken = places[:start]
            assert rows.find(taken).tolist() == list(range(len(taken)))
            assert rows.find([*places[start:], 0]).tolist() == [NO_ROW] * (len(places[start:]) + 1)
        rows.close()


def test_many_places(rows: Rows) -> None:
    places = [7 * place for place in range(1, 2 * MOST_UNSORTED)]
    rows.append([said(place) for place in places])
    assert rows.find(places[::-1]).tolist() == list(range(len(places)))[::-1]


# ── speakers ──


def test_a_speaker_is_the_same_in_any_case(rows: Rows) -> None:
    rows.append([said(1, speaker="Ada"), said(2, speaker="ADA"), said(3), said(4, speaker="Grace")])
    assert rows.view()["speaker"].tolist() == [1, 1, NO_SPEAKER, 2]
    assert rows.speakers == ["Ada", "Grace"]
    assert (rows.speaker_number("ada"), rows.speaker_number("nobody")) == (1, NO_SPEAKER)


def test_so_many_speakers_have_a_number_and_no_more(rows: Rows) -> None:
    rows.append([said(place, speaker=f"speaker {place}") for place in range(1, MOST_SPEAKERS + 5)])
    assert len(rows.speakers) == MOST_SPEAKERS
    assert rows.view()["speaker"][-1] == NO_SPEAKER


def test_how_long_each_role_speaks(rows: Rows) -> None:
    assert rows.mean_chars(0) is None
    rows.append([said(1, "x" * 9), said(2, "x" * 99), said(3, "y" * 7, role="assistant")])
    assert rows.mean_chars(0) == pytest.approx((10 * 100) ** 0.5)
    assert rows.mean_chars(1) == pytest.approx(8)
    assert rows.mean_chars(3) is None


def test_newer_places_are_put_in_order_once(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    rows.append([said(place) for place in range(900, 0, -1)])
    sorted_so_far: list[int] = []
    as_it_is = np.argsort

    def counted(values: np.ndarray, **kwargs: str) -> np.ndarray:
        sorted_so_far.append(len(values))
        return as_it_is(values, **kwargs)

    monkeypatch.setattr(rows_module.np, "argsort", counted)
    for place in (1, 450, 900, 901):
        assert rows.find([place]).tolist() == [900 - place if place <= 900 else NO_ROW]
    assert sorted_so_far == [900]
    rows.append([said(901)])
    assert rows.find([901, 1, 902]).tolist() == [900, 899, NO_ROW]
    assert sorted_so_far == [900, 901]


def test_names_can_be_read_while_others_come(rows: Rows) -> None:
    """Not from what the writer changes meanwhile."""
    rows.append([said(1, speaker="Ada")])
    before = rows.called

    class Changing(dict[str, list[int]]):
        def __iter__(self) -> Iterator[str]:
            raise RuntimeError("dictionary changed size during iteration")

    rows.called = Changing(before)
    assert rows.names() == ["Ada"]
    rows.called = before
    calls = [msgspec.structs.replace(said(place), calls=["Grace"]) for place in range(2, 40)]
    rows.append(calls)
    assert rows.names() == ["Ada", "Grace"]


def test_what_was_closed_takes_nothing_and_is_left_as_it_was(tmp_path: Path) -> None:
    """It may have broken off half-way, on a full disk."""
    rows = open_rows(tmp_path)
    rows.append([said(1, "hello")])
    rows.close()
    before = dict(rows._session_last)
    with pytest.raises(ValueError, match="closed"):
        rows.append([said(2, "again")])
    assert rows._session_last == before
