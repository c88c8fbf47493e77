"""What a query says about time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Literal, NamedTuple

from offbook.model.types import Value
from offbook.search.times.periods import DOES_NOT_EXIST, Asking, InYear, Period
from offbook.search.times.words import CLOSERS


class TimeRange(Value, frozen=True):
    """A stretch of time in UTC: from `start`, up to and without `end`. None is open."""

    start: datetime | None
    end: datetime | None
    phrase: str
    """The words of the query it came from, as written; or as they are read in English."""
    is_exact: bool = True
    """False where the words are vague ("recently", "around May") or were read out of another language: a reason to
    prefer, none to leave out."""


class EventBound(Value, frozen=True):
    """Before or after something that happened, at a time the query does not say: "before the move"."""

    relation: Literal["before", "after"]
    event: str
    phrase: str
    """As of a range."""


class QueryTimes(Value, frozen=True):
    """Everything a query says about time, in the order it is said."""

    ranges: tuple[TimeRange, ...] = ()
    bounds: tuple[EventBound, ...] = ()


# ── What a language's reader hands on: a date and where in the text it stands ──

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
LONGEST_WORD_BEHIND_CHARS = 24
_SAME_LENGTH = {ord("’"): "'", ord("‘"): "'", ord("\t"): " ", ord("\u00a0"): " ", ord("\u3000"): " "}


class Text(NamedTuple):
    """A query as written, and letter for letter in lower case."""

    written: str
    plain: str

    @classmethod
    def of(cls, written: str) -> Text:
        plain = "".join(low if len(low := letter.lower()) == 1 else letter for letter in written)
        return cls(written, plain.translate(_SAME_LENGTH))

    def word_after(self, at: int) -> str:
        ahead = self.plain[at : at + LONGEST_WORD_BEHIND_CHARS]
        word = ahead.lstrip(" ")
        return word[: len(word) - len(word.lstrip(_LETTERS))] if ahead.startswith(" ") else ""

    def word_before(self, at: int) -> str:
        behind = self.behind(at, LONGEST_WORD_BEHIND_CHARS)
        word = behind.rstrip(" ")
        return word[len(word.rstrip(_LETTERS)) :] if behind.endswith(" ") else ""

    def behind(self, at: int, chars: int) -> str:
        """What stands before: never all of it, so that looking back from every date stays linear."""
        return self.plain[max(0, at - chars) : at]

    def is_title(self, at: int) -> bool:
        """Whether a word has a capital of its own: "May", not "MAY"."""
        return self.written[at].isupper() and self.written[at + 1 : at + 2].islower()

    def is_closed(self, at: int) -> bool:
        """Whether a phrase that ends here is not the beginning of a longer name."""
        rest = self.plain[at : at + LONGEST_WORD_BEHIND_CHARS].lstrip(" ")
        if not rest or not (rest[0].isalnum() or rest[0] in "'-_/"):
            return True
        return self.word_after(at) in CLOSERS


class Date(NamedTuple):
    """A period that stands in the text from `first` to `last`."""

    period: Period
    is_exact: bool = True
    cues: frozenset[str] | None = None
    """Without one of these words before it, it is no date. None: it needs none."""
    in_year: InYear | None = None
    """For a date without a year: which it would be in another."""
    is_name: bool = False
    is_possessive: bool = False
    first: int = 0
    last: int = 0


Reader = Callable[["re.Match[str]", Asking, Text], Date | None]
Rule = tuple["re.Pattern[str]", Reader]


def find(rules: Iterable[Rule], asking: Asking, text: Text) -> list[Date]:
    """Every date, in the order of the text. An earlier rule takes its words from the later ones."""
    is_taken = bytearray(len(text.plain))
    dates: list[Date] = []
    for pattern, reader in rules:
        for found in pattern.finditer(text.plain):
            first, last = found.span()
            if any(is_taken[first:last]):
                continue
            try:
                date = reader(found, asking, text)
            except DOES_NOT_EXIST:
                continue
            if date is not None:
                is_taken[first:last] = b"\x01" * (last - first)
                dates.append(date._replace(first=first, last=last))
    return sorted(dates, key=lambda date: date.first)
