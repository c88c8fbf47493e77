"""What is known of each message that can be recalled: its place, who said it and when, its words, its neighbours.

A row a message, in the order of arrival; noise has none. The words are kept as numbers, in order, so that how
often a message says a word is counted without reading its text.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from offbook.log.audit_chain import micros
from offbook.model.types import Role, Value
from offbook.search.addressing import LEAST_TIMES, is_certain
from offbook.search.index.events import Event, Events
from offbook.search.index.records import Growing, Records, damage_told

ROW: Final = np.dtype(
    [
        ("place", "<i8"),
        ("ts", "<i8"),
        ("arrived", "<i8"),
        ("words_at", "<i8"),
        ("words", "<u4"),
        ("chars", "<u4"),
        ("session", "<u4"),
        ("episode", "<u4"),
        ("previous", "<i4"),
        ("speaker", "<u4"),
        ("position", "<u2"),
        ("role", "u1"),
        ("flags", "u1"),
        ("numbers", "<u4"),  # of the words with digits: tells two readings of a meter apart
    ]
)
WORD: Final = np.dtype("<u4")
ROLES: Final[tuple[Role, ...]] = ("user", "assistant", "system", "tool")
USER, ASSISTANT, SYSTEM, TOOL = range(4)

QUESTION, DENIAL, MEMORY_QUESTION, BOILERPLATE = 1, 2, 4, 8
"""Bits of `flags`."""


NO_ROW = -1
NO_SPEAKER = 0
LONGEST_EPISODE = 64
"""Messages. A session may go on for years; what belongs together is what was said in one go."""
MOST_SPEAKERS = 500
SORTED_AGAIN, MOST_UNSORTED = 1.1, 1_000
"""Places are put in order again when a tenth more have come, and so many besides."""


class IndexedMessage(Value, frozen=True):
    """A message as it is indexed."""

    place: int
    session: int
    ts: datetime
    arrived: datetime
    role: Role
    speaker: str
    text: str
    terms: list[str]
    flags: int
    further: list[str] = msgspec.field(default_factory=list)
    """Words of the rest of a long message that are not among its terms, each once."""
    calls: list[str] = msgspec.field(default_factory=list)
    """Names by which somebody is addressed in it."""
    label: str = ""
    """The name it begins with ("Ada: …"): its speaker, if others begin so too."""
    events: list[Event] = msgspec.field(default_factory=list)
    """The times it tells of."""


def word_numbers(terms: Iterable[str]) -> NDArray[np.uint32]:
    return np.fromiter((zlib.crc32(term.encode()) for term in terms), WORD)


def _digits(terms: Iterable[str]) -> int:
    """One number for all words that hold a digit."""
    return zlib.crc32(
        " ".join(sorted({term for term in terms if not term.isalpha() and any(map(str.isdigit, term))})).encode()
    )


class _Newer(NamedTuple):
    """The places of the rows that have come since all were put in order, themselves in order."""

    start: int
    end: int
    in_order: NDArray[np.int64]
    rows: NDArray[np.int64]


class Rows:
    """All rows of an agent and what follows from them. One thread appends; any may read."""

    def __init__(
        self,
        folder: Path,
        *,
        rows: int,
        words: int,
        speakers: Sequence[str],
        silence: timedelta,
        events: int = 0,
        called: Mapping[str, Sequence[int]] | None = None,
        labels: Mapping[str, int] | None = None,
    ) -> None:
        self._rows = Records(folder / "rows", ROW, rows)
        try:
            self._words = Records(folder / "words", WORD, words)
        except (OSError, ValueError):
            self._rows.close()
            raise
        try:
            self.events = Events(folder, events)
        except (OSError, ValueError):
            self._rows.close()
            self._words.close()
            raise
        self.speakers = list(speakers)
        self.called = {name: list(times) for name, times in (called or {}).items()}
        """How often each name was used to address the other side, by the user and by the assistant."""
        self.labels = dict(labels or {})
        """How many messages begin with each name."""
        self._speaker_numbers = {name.casefold(): number for number, name in enumerate(self.speakers, 1)}
        self._silence = int(silence.total_seconds() * 1_000_000)
        view = self._rows.view()
        self.newest: int | None = int(view["ts"].max()) if len(view) else None
        """When the newest was said, in microseconds: what came last may be an old history."""
        self._next = Growing(np.full(rows, NO_ROW, np.int32))
        self._note_next(view, 0)
        self._episode_first = Growing(_firsts(view["episode"]))
        not_system = np.flatnonzero(view["role"] != SYSTEM)
        self._session_last = {
            session: int(not_system[at]) for session, at in _lasts(view["session"][not_system]).items()
        }
        # One value, since another thread may be reading: the places in order, and the row of each.
        self._by_place: tuple[NDArray[np.int64], NDArray[np.int64]] = (np.empty(0, np.int64), np.empty(0, np.int64))
        self._newer = _Newer(0, 0, *self._by_place)
        self._chars = np.zeros(len(ROLES))
        self._said = np.zeros(len(ROLES))
        self._count_lengths(view)
        self._names = self._known_names()

    # ── reading ──

    @property
    def count(self) -> int:
        return self._rows.count

    @property
    def word_count(self) -> int:
        return self._words.count

    def view(self) -> NDArray[Any]:
        return self._rows.view()

    def words(self) -> NDArray[np.uint32]:
        return self._words.view()

    @damage_told(IndexError)
    def next_of(self, rows: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """The message after each in its session, as long as it is among the first `count`."""
        following = self._next.view()[rows].astype(np.int64)
        following[following >= count] = NO_ROW
        return following

    @damage_told(IndexError)
    def episode_rows(self, episodes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """The rows of these episodes."""
        view = self._rows.view()
        rows = self._episode_first.view()[episodes]
        rows = rows[rows < count]
        found = [rows]
        for _ in range(LONGEST_EPISODE):
            following = self.next_of(rows, count)
            goes_on = following != NO_ROW
            rows, following = rows[goes_on], following[goes_on]
            rows = following[view["episode"][following] == view["episode"][rows]]
            if not len(rows):
                break
            found.append(rows)
        return np.concatenate(found)

    @damage_told(IndexError)
    def session_rows(self, session: int, count: int) -> NDArray[np.int64]:
        return np.flatnonzero(self._rows.view()["session"][:count] == session)

    @damage_told(IndexError)
    def find(self, places: Sequence[int]) -> NDArray[np.int64]:
        """The row of each place; NO_ROW where there is none."""
        view = self._rows.view()
        if len(view) > SORTED_AGAIN * len(self._by_place[1]) + MOST_UNSORTED:
            order = np.argsort(view["place"], kind="stable")
            self._by_place = view["place"][order], order
        in_order, rows = self._by_place
        wanted = np.asarray(places, np.int64)
        found = np.full(len(wanted), NO_ROW, np.int64)
        _look_up(wanted, found, in_order, rows)
        if len(view) > len(rows) and (found == NO_ROW).any():
            newer = self._newer
            if (newer.start, newer.end) != (len(rows), len(view)):
                tail = view["place"][len(rows) :]
                order = np.argsort(tail, kind="stable")
                newer = self._newer = _Newer(len(rows), len(view), tail[order], order + len(rows))
            _look_up(wanted, found, newer.in_order, newer.rows)
        return found

    def speaker_number(self, name: str) -> int:
        return self._speaker_numbers.get(name.casefold(), NO_SPEAKER)

    def names(self) -> list[str]:
        """Of all who are known by one: those who speak, and those who are spoken to."""
        return list(self._names)

    def role_called(self, name: str) -> int | None:
        """The side that goes by this name: the other one uses it."""
        times = self.called.get(name)
        if times is None:
            return None
        user, assistant = times[USER], times[ASSISTANT]
        if is_certain(user, user + assistant):
            return ASSISTANT
        return USER if is_certain(assistant, user + assistant) else None

    def mean_chars(self, role: int) -> float | None:
        """Geometric mean of what this role says at a time; None where it has said nothing."""
        return float(np.exp(self._chars[role] / self._said[role])) if self._said[role] else None

    def has_said(self, role: int) -> bool:
        return bool(self._said[role])

    # ── appending ──

    @damage_told(IndexError)
    def append(self, said: Sequence[IndexedMessage]) -> None:
        """ValueError where it was closed: what broke off half-way has left its numbers here, and not its rows."""
        self._rows.check_open()
        rows = np.zeros(len(said), ROW)
        words = [word_numbers(chain(one.terms, one.further)) for one in said]
        words_at = self._words.count
        for index, (one, numbers) in enumerate(zip(said, words, strict=True)):
            row = rows[index]
            row["place"], row["session"] = one.place, one.session
            row["ts"], row["arrived"] = micros(one.ts), micros(one.arrived)
            row["words_at"], row["words"] = words_at, len(numbers)
            row["chars"], row["flags"] = min(len(one.text), 2**32 - 1), one.flags
            row["role"], row["speaker"] = (
                ROLES.index(one.role),
                self._number_speaker(one.speaker or self._confirmed(one.label)),
            )
            row["numbers"] = _digits(one.terms)
            words_at += len(numbers)
            self._link(rows, index)
            self._note_names(one)
        self._words.append(np.concatenate(words) if words else np.empty(0, WORD))
        first = self._rows.count
        self.events.append(first, [one.events for one in said])
        # Who reads meanwhile may ask for the next of each row that it sees.
        self._next.append(np.full(len(rows), NO_ROW, np.int32))
        self._rows.append(rows)
        if len(rows):
            newest = int(rows["ts"].max())
            self.newest = newest if self.newest is None else max(newest, self.newest)
        self._note_next(rows, first)
        self._count_lengths(rows)
        self._names = self._known_names()

    def _known_names(self) -> tuple[str, ...]:
        """A value of its own, since another thread may be reading."""
        return (*self.speakers, *(name for name in self.called if self.role_called(name) is not None))

    def sync(self) -> None:
        self._rows.sync()
        self._words.sync()
        self.events.sync()

    def close(self) -> None:
        self._rows.close()
        self._words.close()
        self.events.close()

    def _link(self, rows: NDArray[Any], index: int) -> None:
        """To the message before it in its session, and into its episode or a new one. What the host tells the agent
        stands by itself: it is said beside nothing, and opens nothing."""
        first_new = self._rows.count
        row = rows[index]
        if row["role"] == SYSTEM:
            row["previous"], row["position"] = NO_ROW, 1
            self._begin_episode(row, first_new + index)
            return
        before = self._session_last.get(int(row["session"]), NO_ROW)
        row["previous"] = before
        self._session_last[int(row["session"])] = first_new + index
        if before != NO_ROW:
            earlier = rows[before - first_new] if before >= first_new else self._rows.view()[before]
            is_silent = int(row["ts"]) - int(earlier["ts"]) >= self._silence
            if not is_silent and int(earlier["position"]) + 1 < LONGEST_EPISODE:
                row["episode"], row["position"] = earlier["episode"], earlier["position"] + 1
                return
        self._begin_episode(row, first_new + index)

    def _begin_episode(self, row: Any, number: int) -> None:
        row["episode"] = self._episode_first.count
        self._episode_first.append(np.array([number]))

    def _note_next(self, rows: NDArray[Any], first: int) -> None:
        follows = np.flatnonzero(rows["previous"] != NO_ROW)
        self._next.view()[rows["previous"][follows]] = follows + first

    def _confirmed(self, label: str) -> str:
        """A label is a speaker's name from the fourth message on that begins with it."""
        if not label:
            return ""
        if label in self.labels or len(self.labels) < MOST_SPEAKERS:
            self.labels[label] = self.labels.get(label, 0) + 1
        return label if self.labels.get(label, 0) >= LEAST_TIMES else ""

    def _note_names(self, one: IndexedMessage) -> None:
        if one.role not in ("user", "assistant") or one.speaker or one.label:
            return
        for name in one.calls:
            if name in self.called or len(self.called) < MOST_SPEAKERS:
                self.called.setdefault(name, [0, 0])[ROLES.index(one.role)] += 1

    def _number_speaker(self, name: str) -> int:
        if not name:
            return NO_SPEAKER
        number = self.speaker_number(name)
        if number == NO_SPEAKER and len(self.speakers) < MOST_SPEAKERS:
            self.speakers.append(name)
            number = self._speaker_numbers[name.casefold()] = len(self.speakers)
        return number

    def _count_lengths(self, rows: NDArray[Any]) -> None:
        lengths = np.log1p(rows["chars"].astype(np.float64))
        self._chars += np.bincount(rows["role"], lengths, minlength=len(ROLES))[: len(ROLES)]
        self._said += np.bincount(rows["role"], minlength=len(ROLES))[: len(ROLES)]


def _look_up(
    wanted: NDArray[np.int64], found: NDArray[np.int64], in_order: NDArray[np.int64], rows: NDArray[np.int64]
) -> None:
    if len(in_order):
        at = np.minimum(np.searchsorted(in_order, wanted), len(in_order) - 1)
        is_there = in_order[at] == wanted
        found[is_there] = rows[at[is_there]]


def _lasts(sessions: NDArray[Any]) -> dict[int, int]:
    """The last row of each session."""
    numbers, from_end = np.unique(sessions[::-1], return_index=True)
    return dict(zip(numbers.tolist(), (len(sessions) - 1 - from_end).tolist(), strict=True))


def _firsts(episodes: NDArray[Any]) -> NDArray[np.int64]:
    """The first row of each episode; episodes are numbered in the order they begin."""
    if not len(episodes):
        return np.empty(0, np.int64)
    return np.unique(episodes, return_index=True)[1].astype(np.int64)
