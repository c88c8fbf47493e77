"""What working state is made of: the records, what they are found by, and how many there may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from offbook.model.summary import StateKind, StateRecord
from offbook.model.types import Message, Value
from offbook.search.stems import stem
from offbook.search.substance import sentences_of
from offbook.search.words import STOP_WORDS, terms

MAX_TEXT_CHARS = 300
MAX_WORDS = 24
"""Of one record, to find it by."""
MAX_EARLIER_GOALS = 3
MAX_LOOPS = 12
MAX_ACTIONS = 20
MAX_MINOR_ACTIONS = 8
"""Of those 20. An agent that edits files all day still knows which mail it sent."""
MAX_HANDLES = 12
MAX_PENDING_CALLS = 32
MAX_WORDS_READ_CHARS = 1000

_SAYS_LITTLE_TEXT = (
    "go take look check start get back work now right away let know soon later today tomorrow please make do use try "
    "thing next first quick quickly moment minute want need like good new time ahead begin just also here ask"
)
SAYS_LITTLE = STOP_WORDS | frozenset(stem(word) for word in _SAYS_LITTLE_TEXT.split())
"""Words that many messages share: two that have only these in common are about different things."""

Sort = Literal[
    "open", "answered", "done", "asked", "asking", "promise", "telling", "approval", "guard", "called", "said", ""
]


class Turn(NamedTuple):
    """A message in its place."""

    seq: int
    at: datetime
    message: Message
    is_noise: bool


class Kept(Value, frozen=True):
    """A record and what it is known by."""

    record: StateRecord
    words: list[str] = msgspec.field(default_factory=list)
    """Stems; of a handle its ids."""
    sort: Sort = ""
    """Of a goal what became of it, of a loop whose turn it is, of an action how it is known."""
    is_minor: bool = False
    """It goes first where there is no room: a change of a goal, a promise for at once, a file written."""


class PendingCall(Value, frozen=True):
    """A call whose result has not come, and what it would mean."""

    id: str
    name: str
    seq: int
    action: str = ""
    is_minor: bool = False
    starts: str = ""
    """What would be running then."""
    is_background: bool = False
    """It runs on without being asked to: what it started is known by its result."""
    handles: list[str] = msgspec.field(default_factory=list)
    """Ids that are known before the result."""
    stops: list[str] = msgspec.field(default_factory=list)
    names: list[str] = msgspec.field(default_factory=list)
    """Short strings of its arguments: which handle it asks about."""
    words: list[str] = msgspec.field(default_factory=list)


def words_of(text: str) -> list[str]:
    """The distinct telling words of a text, as stems."""
    found = dict.fromkeys(terms(text[:MAX_WORDS_READ_CHARS]))
    return [word for word in found if word not in SAYS_LITTLE][:MAX_WORDS]


def cut(text: str, max_chars: int = MAX_TEXT_CHARS) -> str:
    """One line of whole sentences, else of whole clauses, else of whole words."""
    line = " ".join(text.split())
    if len(line) <= max_chars:
        return line
    kept = ""
    for sentence in sentences_of(line):
        longer = f"{kept} {sentence}" if kept else sentence
        if len(longer) > max_chars:
            break
        kept = longer
    if len(kept) * 3 >= max_chars:
        return kept
    head = line[: max_chars - 1]
    end = max(head.rfind(mark) for mark in (", ", "; ", ": ", "，", "；", "、"))
    if end * 2 < max_chars:
        end = head.rfind(" ") if " " in head[max_chars // 2 :] else len(head)
    return head[:end].rstrip() + "…"


def record(kind: StateKind, text: str, turn: Turn, first_seq: int | None = None) -> StateRecord:
    return StateRecord(
        kind=kind, text=cut(text), first_seq=turn.seq if first_seq is None else first_seq, last_seq=turn.seq, at=turn.at
    )


def refreshed(one: Kept, turn: Turn) -> Kept:
    """Said or done once more."""
    again = msgspec.structs.replace(one.record, last_seq=max(one.record.last_seq, turn.seq), at=turn.at)
    return msgspec.structs.replace(one, record=again)


def shared(one: Iterable[str], other: Iterable[str]) -> int:
    return len(set(one).intersection(other))


def is_about(words: Sequence[str], other: Iterable[str]) -> bool:
    """Whether half of the words, or two of them, are among the others."""
    count = shared(words, other)
    return count >= 2 or 0 < len(words) <= 2 * count


def newest(kept: list[Kept], most: int) -> list[Kept]:
    """At most so many; the oldest go, as the list is in order of time."""
    return kept[-most:] if len(kept) > most else kept


def without_minor(kept: list[Kept], most: int, most_minor: int) -> list[Kept]:
    """At most so many; of the minor ones the oldest go first, as long as there are more of them than that."""
    left = list(kept)
    while len(left) > most:
        minor = [at for at, one in enumerate(left) if one.is_minor]
        del left[minor[0] if len(minor) > most_minor else 0]
    return left
