"""How far an agent's wiki is: which messages lie in which page, and what is still to be written.

Derived: without it, or with that of another store, the wiki is made anew. A message comes into the last page of its day
in the order of arrival, one by one: so its page never changes, and the same log gives the same pages however often the
work was broken off. Only a day of several pages of which something was forgotten may be cut elsewhere, when it is made
anew: what is forgotten takes no room.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from offbook.model.memory_entry import PlacedMessage
from offbook.model.private_files import make_folders, write_private
from offbook.model.receipt import ForgottenSpan
from offbook.model.types import Value
from offbook.projections.wiki.day_page import (
    MOST_BYTES_OF_A_PAGE,
    MOST_MESSAGES_OF_A_PAGE,
    anchor,
    day_of,
    log_file,
    page_bytes,
    said_at,
)
from offbook.projections.wiki.lesson_page import Written
from offbook.statements.subjects import SubjectNotes, take
from offbook.statements.turns import Turn

FORMAT = 2
"""Of the pages, too: where they are written otherwise, they are all written again."""


class PageSpan(msgspec.Struct, array_like=True):
    """Messages of a session that lie in one page."""

    session: int
    first_seq: int
    last_seq: int


class Part(msgspec.Struct, rename="camel"):
    """A page of a day."""

    messages: int = 0
    bytes: int = 0
    stretches: list[PageSpan] = msgspec.field(default_factory=list)
    """By session, each in order."""


class KnownSession(msgspec.Struct, array_like=True):
    session_id: str
    before_first: int
    """The place of a message less its number: places of a session grow as its numbers do."""
    last_said: str = ""
    """When the last of its messages was said; empty in what was noted before this was."""


class Cold(msgspec.Struct, rename="camel"):
    """How far the messages were looked at that have gone cold."""

    after_event: int = 0
    ahead: int = 0
    """So many messages after that event, too."""
    waits_for: datetime | None = None
    """When the first one arrived that has not."""
    waits_for_place: int = 0
    """Where that one lies."""
    passed_over: list[int] = msgspec.field(default_factory=list)
    """Places of those that were pinned, or recalled lately."""
    pages: int = 0


class Where(Value, frozen=True):
    """The page that holds a message, and its heading there."""

    day: str
    file: str
    anchor: str


class WikiState(msgspec.Struct, rename="camel"):
    agent_id: str
    format: int = FORMAT
    through_event: int = 0
    through_hash: str = ""
    sessions: dict[int, KnownSession] = msgspec.field(default_factory=dict)
    days: dict[str, list[Part]] = msgspec.field(default_factory=dict)
    unwritten: set[tuple[str, int]] = msgspec.field(default_factory=set)
    """Pages, by day and part, that are not what the log has."""
    cold: Cold = msgspec.field(default_factory=Cold)
    lessons: dict[str, list[Written]] = msgspec.field(default_factory=dict)
    """What was written last of each; two of them while it is being written."""
    knows_lessons: bool = False
    """Whether `lessons` names every page of a lesson that we wrote: all were gone through since it was made."""

    subjects: SubjectNotes = msgspec.field(default_factory=SubjectNotes)
    """What was said of whom and what; only where, not the words."""
    subject_pages: dict[str, str] = msgspec.field(default_factory=dict)
    """The pages of subjects that we wrote, or are about to, and the key of each subject."""
    knows_subjects: bool = False
    """Whether `subject_pages` names every one that we wrote."""

    def take(self, placed: PlacedMessage, turn: Turn | None = None) -> None:
        """Give a message its page. Each message once, as it arrives; `turn` where it is one to be read."""
        logged = placed.logged
        before_first = placed.place - logged.seq
        known = self.sessions.setdefault(placed.session, KnownSession(placed.session_id, before_first))
        known.last_said = said_at(logged).isoformat(timespec="microseconds")
        day = day_of(logged)
        parts, size = self.days.setdefault(day, []), page_bytes(logged)
        if not parts or _is_full(parts[-1], size):
            parts.append(Part())
        part = parts[-1]
        part.messages += 1
        part.bytes += size
        _join(part.stretches, placed.session, logged.seq)
        self.unwritten.add((day, len(parts)))
        if turn is not None:
            had_title = placed.session in self.subjects.titles
            take(self.subjects, placed.place, placed.session, turn)
            if not had_title and placed.session in self.subjects.titles:
                self.unwritten |= self.pages_of(placed.session)

    def title(self, session: int) -> str:
        """Empty where it has none."""
        found = self.subjects.titles.get(session)
        return "" if found is None else found.text

    def pages_of(self, session: int) -> set[tuple[str, int]]:
        parts = [(page, self.days[page[0]][page[1] - 1]) for page in self.pages()]
        return {page for page, part in parts if any(each.session == session for each in part.stretches)}

    def pages(self) -> Iterator[tuple[str, int]]:
        for day, parts in self.days.items():
            for number in range(1, len(parts) + 1):
                yield day, number

    def files(self) -> dict[str, tuple[str, int]]:
        """Every page by its name."""
        return {log_file(self.agent_id, day, number): (day, number) for day, number in self.pages()}

    def holding(self, spans: Sequence[ForgottenSpan]) -> list[tuple[str, int]]:
        """The pages that hold any of these messages."""
        return list(dict.fromkeys((day, number) for day, number, _, _ in self._within(spans)))

    def places_in(self, spans: Sequence[ForgottenSpan]) -> list[int]:
        """Of those of these messages that are in a page."""
        return [
            self.sessions[session].before_first + seq for _, _, session, seqs in self._within(spans) for seq in seqs
        ]

    def _within(self, spans: Sequence[ForgottenSpan]) -> Iterator[tuple[str, int, int, range]]:
        """Day, part, session and numbers of what the pages hold of the spans."""
        numbers = {known.session_id: number for number, known in self.sessions.items()}
        meant: dict[int, list[ForgottenSpan]] = {}
        for span in spans:
            if span.session_id in numbers:
                meant.setdefault(numbers[span.session_id], []).append(span)
        for day, number in self.pages():
            for stretch in self.days[day][number - 1].stretches:
                for span in meant.get(stretch.session, []):
                    first, last = max(span.first_seq, stretch.first_seq), min(span.last_seq, stretch.last_seq)
                    if first <= last:
                        yield day, number, stretch.session, range(first, last + 1)


class Places:
    """Finds the page of a message. Made when it is asked for: the state goes on."""

    def __init__(self, state: WikiState) -> None:
        self._agent_id = state.agent_id
        self._numbers = {known.session_id: number for number, known in state.sessions.items()}
        self._stretches: dict[int, list[tuple[int, int, str, int]]] = {}
        for day, number in state.pages():
            for stretch in state.days[day][number - 1].stretches:
                found = (stretch.first_seq, stretch.last_seq, day, number)
                self._stretches.setdefault(stretch.session, []).append(found)
        for stretches in self._stretches.values():
            stretches.sort()

    def find(self, session_id: str, seq: int) -> Where | None:
        session = self._numbers.get(session_id)
        stretches = self._stretches.get(session, []) if session is not None else []
        at = bisect_right(stretches, seq, key=lambda each: each[0]) - 1
        if session is None or at < 0 or seq > stretches[at][1]:
            return None
        _, _, day, number = stretches[at]
        return Where(day=day, file=log_file(self._agent_id, day, number), anchor=anchor(session, seq))

    def newest(self, session_id: str) -> tuple[int, int] | None:
        """How many messages of a session are in pages, and the last of them."""
        stretches = self._stretches.get(self._numbers.get(session_id, -1))
        if not stretches:
            return None
        return sum(last - first + 1 for first, last, _, _ in stretches), max(last for _, last, _, _ in stretches)


# ── on the disk ───────────────────────────────────────────────────────────────────────────────


def read_state(path: Path, agent_id: str) -> WikiState | None:
    """None where there is none, or none that can be used."""
    try:
        state = msgspec.json.decode(path.read_bytes(), type=WikiState)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return state if state.agent_id == agent_id and state.format == FORMAT else None


def write_state(path: Path, text: str) -> None:
    make_folders(path.parent)
    write_private(path, text, is_durable=False)


# ── stretches ─────────────────────────────────────────────────────────────────────────────────


def _is_full(part: Part, size: int) -> bool:
    return part.messages >= MOST_MESSAGES_OF_A_PAGE or part.bytes + size > MOST_BYTES_OF_A_PAGE


def _join(stretches: list[PageSpan], session: int, seq: int) -> None:
    """The messages of a session arrive in order, so at most its last stretch grows."""
    at = bisect_right(stretches, (session, seq), key=lambda each: (each.session, each.first_seq))
    before = stretches[at - 1] if at else None
    if before is not None and before.session == session and before.last_seq == seq - 1:
        before.last_seq = seq
    else:
        stretches.insert(at, PageSpan(session, seq, seq))
