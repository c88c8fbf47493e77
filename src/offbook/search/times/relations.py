"""What stands around a date: "before 2023", "since Monday", "early May", "between May and July"."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from offbook.search.times.periods import (
    DOES_NOT_EXIST,
    Asking,
    Period,
    Third,
    blurred,
    first_after,
    latest_before,
    third_of,
)
from offbook.search.times.values import Date, EventBound, Text, TimeRange
from offbook.search.times.words import (
    CLAUSE_BEGINS,
    EMPTY_EVENTS,
    INVERSIONS,
    PAST_VERBS,
    PRESENT_VERBS,
    SUBJECTS,
    WEAK_ENDS,
)

LOOK_BEHIND_CHARS = 48
"""Longer than every phrase below with a few blanks in it."""

_THIRDS: dict[str, Third] = {
    "early": "early", "early in": "early", "beginning of": "early", "start of": "early",
    "mid": "mid", "mid in": "mid", "middle of": "mid",
    "late": "late", "late in": "late", "end of": "late",
}  # fmt: skip
_MONTH_OF = frozenset(("month", "month of", "year", "year of"))
_CUES = frozenset(
    ("ever since", "since", "before", "prior to", "until", "till", "by", "after", "from", "between", "around", "circa",
     "sometime in", "sometime", "back in", "in", "on", "during", "throughout", "over", "at", "as of", "of", "for",
     "within")
)  # fmt: skip
_LENGTHS_TEXT = "minute hour day night morning evening week month summer winter spring fall autumn year"
_LENGTHS = frozenset(f"{one}{end}" for one in _LENGTHS_TEXT.split() for end in ("", "s"))
_COUNTS = frozenset(("the", "a", "an", "one", "two", "three", "four", "five", "six"))
_SOON = frozenset(("right", "just", "shortly", "soon", "long"))
_AND = frozenset(("and", "and the"))
_TO = frozenset(f"{word}{the}" for word in ("to", "up to", "until", "till", "through") for the in ("", " the"))
_DASHES = frozenset("-–—")
_ALSO = frozenset(("", "and", "or", "and in", "or in"))
_ONWARD = frozenset(("on", "onward", "onwards", "forward"))
_NAMED_AFTER = frozenset({"before", "after", "since", "until", "till", "by", "from", "around"})
_SHARED = frozenset({"in", "on", "during"})
"""What counts for the next date of a list too: "in May and June"."""
_VAGUE = frozenset({"around", "circa", "sometime", "sometime in"})


class FoundPeriod(NamedTuple):
    """A stretch of time in local terms; None is open."""

    first: int
    last: int
    start: datetime | None
    end: datetime | None
    is_exact: bool

    def in_utc(self, asking: Asking, text: Text) -> TimeRange | None:
        """None where it lies beyond the calendar, or where a change of clocks leaves nothing of it."""
        try:
            start = asking.in_utc(self.start) if self.start else None
            end = asking.in_utc(self.end) if self.end else None
        except DOES_NOT_EXIST:
            return None
        if start and end and start >= end:
            return None
        phrase = text.written[self.first : self.last]
        return TimeRange(start=start, end=end, phrase=phrase, is_exact=self.is_exact)


class _Cued(NamedTuple):
    date: Date
    cue: str
    first: int


def relate(dates: Sequence[Date], asking: Asking, text: Text) -> list[FoundPeriod]:
    """Every date with what stands around it. A date that lacks its cue is none."""
    found: list[FoundPeriod] = []
    index, cue = 0, ""
    while index < len(dates):
        cued = _with_cue(dates[index], text)
        if index and cue in _SHARED and _is_another(dates[index - 1], cued, text):
            cued = cued._replace(cue=cue)
        following = dates[index + 1] if index + 1 < len(dates) else None
        try:
            pair = _pair(cued, following, text) if following else None
            one = pair or (_bound(cued, text) if _is_date(cued, text) else None)
        except DOES_NOT_EXIST:
            pair = one = None
        cue = ""
        if one is not None:
            found.append(one)
            cue = cued.cue
        index += 2 if pair else 1
    return found


class _Phrase(NamedTuple):
    words: str
    first: int
    has_article: bool = False


def _phrase_before(text: Text, at: int, phrases: Collection[str], *, article: str = "") -> _Phrase | None:
    """The longest of the phrases that stands right before a place; `article`: where "the" may stand beside it."""
    behind = text.behind(at, LOOK_BEHIND_CHARS)
    *words, rest = (f"{behind[:-1]} " if behind.endswith("-") else behind).split(" ")  # mid-May
    found = None
    first, last = len(behind), 0
    said: list[str] = []
    for word in reversed([] if rest else words):
        first = first - len(word) - 1
        if not word:
            continue
        bare = word.lstrip('("“„‘[{,.;:!?…—–-')
        if article == "behind" and word == "the" and not said and not last:
            last = 1
            continue
        said.insert(0, bare)
        if " ".join(said) in phrases:
            found = _Phrase(" ".join(said), at - len(behind) + first + len(word) - len(bare), bool(last))
        if bare != word or len(said) > 2:
            break
    if found and article == "before" and text.behind(found.first, 5).endswith((" the ", "the ")):
        return found._replace(first=found.first - 4)
    return found


def _with_cue(date: Date, text: Text) -> _Cued:
    first, cue = date.first, ""
    if third := _phrase_before(text, first, _THIRDS, article="before"):
        first, cue = third.first, "part"
        period = third_of(date.period, _THIRDS[third.words])
        # People differ on where "early May" ends.
        date = date._replace(is_exact=date.is_exact and period == date.period, period=period)
    elif month_of := _phrase_before(text, first, _MONTH_OF, article="before"):
        first, cue = month_of.first, "part" if "month" in month_of.words else "year"
    before = _phrase_before(text, first, _CUES, article="behind")
    if before is None or (before.has_article and not cue and date.cues is not None):
        return _Cued(date, cue, first)  # "in the May release" is not in May
    word, first = before.words, before.first
    if word in ("before", "after"):
        first = distance_before(text, first)
    return _Cued(date, cue if cue and word in ("in", "at", "of", "on", "for") else word, first)


def distance_before(text: Text, at: int) -> int:
    """Where "two weeks" begins in "two weeks before": part of the phrase, though not of what it means."""
    if soon := _phrase_before(text, at, _SOON):
        return soon.first
    length = _phrase_before(text, at, _LENGTHS)
    if length is None:
        return at
    at = length.first
    for words in (("few", "couple of"), _COUNTS):
        if more := _phrase_before(text, at, words):
            at = more.first
    behind = text.behind(at, 5).rstrip(" ")
    digits = len(behind) - len(behind.rstrip("0123456789"))
    return at - (len(text.behind(at, 5)) - len(behind)) - digits if digits else at


def _is_another(previous: Date, cued: _Cued, text: Text) -> bool:
    date = cued.date
    is_sure = not date.is_name or text.is_closed(date.last)
    between = text.plain[previous.last : date.first]
    joined = " ".join(between.removeprefix(",").split())
    return not cued.cue and is_sure and between.endswith(" ") and joined in _ALSO and bool(between.strip(" "))


def _is_date(cued: _Cued, text: Text) -> bool:
    date = cued.date
    if cued.cue == "from" and date.is_name:
        return _goes_on(text, date.last) is not None
    if date.is_name and cued.cue in _NAMED_AFTER and not text.is_closed(date.last):
        return False
    return date.cues is None or cued.cue in date.cues - {"between"}


def _goes_on(text: Text, at: int) -> int | None:
    """Where "onwards" ends, if that is what follows and nothing else does."""
    word = text.word_after(at)
    end = text.plain.find(word, at) + len(word)
    return end if word in _ONWARD and not text.word_after(end) else None


def _bound(cued: _Cued, text: Text) -> FoundPeriod:
    date, cue, first = cued
    period, last, is_exact = date.period, date.last, date.is_exact
    if cue == "from" and (onward := _goes_on(text, last)):
        cue, last = "since", onward
    if cue in _VAGUE:
        period, is_exact = blurred(period), False
    start: datetime | None = period.start
    end: datetime | None = period.end
    if cue in ("before", "prior to"):
        # "Before Tuesday's meeting" may be on Tuesday.
        start, end = None, period.end if date.is_possessive else period.start
    elif cue in ("until", "till", "by"):
        start, is_exact = None, is_exact and not date.is_name
    elif cue == "after":
        start, end = period.start if date.is_possessive else period.end, None
    elif cue in ("since", "ever since"):
        end = None
    return FoundPeriod(first, last, start, end, is_exact)


def _pair(cued: _Cued, following: Date, text: Text) -> FoundPeriod | None:
    """Two dates as the ends of one range; both belong to it."""
    date = cued.date
    between = text.plain[date.last : following.first]
    if len(between) > LOOK_BEHIND_CHARS:
        return None
    joined = " ".join(between.split())
    is_joined = joined.lstrip(", ") in _AND if cued.cue == "between" else joined in _TO or joined in _DASHES
    is_lone = date.cues is not None and cued.cue not in (date.cues | {"from"}) and following.cues is not None
    if not is_joined or is_lone or (following.is_name and not text.is_closed(following.last)):
        return None
    if cued.cue not in ("between", "from", "") and (cued.cue not in (date.cues or ()) or cued.cue in _NAMED_AFTER):
        return None
    start, end = _in_order(date, following)
    is_exact = date.is_exact and following.is_exact
    return FoundPeriod(cued.first, following.last, start.start, end.end, is_exact)


def _in_order(date: Date, following: Date) -> tuple[Period, Period]:
    """The end comes after the beginning: "November to February" passes the new year, "Friday to Monday" the weekend."""
    start, end = date.period, following.period
    if date.in_year:
        start = latest_before(date.in_year, end)
    elif following.in_year:
        end = first_after(following.in_year, start)
    elif end.start < start.start and start.start - end.start < timedelta(days=7):
        end = Period(end.start + timedelta(days=7), end.end + timedelta(days=7))
    return (start, end) if start.start <= end.start else (end, start)


# ── Bounds without a date: "before the move", "since we launched" ──

MOST_WORDS = 8

_RELATION = re.compile(r"(?<![a-z0-9_'-])(ever +since|since|before|prior +to|until|till|after)(?= +[^\s])")
_BEFORE = frozenset({"before", "prior to", "until", "till"})
_WORD = re.compile(r" +((?:[^\s,.;:?!()\[\]{}\"“”…，。？！；：、]|\.(?=[a-z0-9]))+)")
_NOT_AFTER = frozenset(("look", "looks", "looked", "looking", "named", "modelled", "modeled", "patterned"))
"""What makes something else of "after": to look after."""


class FoundBound(NamedTuple):
    first: int
    last: int
    bound: EventBound


def find_bounds(text: Text, ranges: Sequence[FoundPeriod]) -> list[FoundBound]:
    """Every bound outside the dates. An event ends where a date begins."""
    is_date = bytearray(len(text.plain) + 1)
    for found in ranges:
        is_date[found.first : found.last] = b"\x01" * (found.last - found.first)
    bounds: list[FoundBound] = []
    for relation in _RELATION.finditer(text.plain):
        if is_date[relation.start()] or (bounds and relation.start() < bounds[-1].last):
            continue
        bound = _events_bound(relation, text, is_date)
        if bound is not None:
            bounds.append(bound)
    return bounds


def _events_bound(relation: re.Match[str], text: Text, is_date: bytearray) -> FoundBound | None:
    word = " ".join(relation[1].split())
    words = _event_words(relation.end(), text, is_date)
    plain = [found[1] for found in words]
    if not plain or not _is_event(word, plain):
        return None
    previous = text.word_before(relation.start())
    if word == "after" and (previous in _NOT_AFTER or previous == plain[0]):
        return None  # to look after, day after day
    first, last = distance_before(text, relation.start()), words[-1].end()
    if any(is_date[first : relation.start()]):
        first = relation.start()
    side: Literal["before", "after"] = "before" if word in _BEFORE else "after"
    event = text.written[words[0].start(1) : last]
    return FoundBound(first, last, EventBound(relation=side, event=event, phrase=text.written[first:last]))


def _event_words(at: int, text: Text, is_date: bytearray) -> list[re.Match[str]]:
    words: list[re.Match[str]] = []
    while len(words) < MOST_WORDS and (found := _WORD.match(text.plain, at)) and not is_date[found.start(1)]:
        word = found[1]
        is_inverted = word in INVERSIONS and text.word_after(found.end()) in SUBJECTS
        if word in CLAUSE_BEGINS or is_inverted or _RELATION.match(text.plain, found.start(1)):
            break
        words.append(found)
        at = found.end()
    while words and words[-1][1] in WEAK_ENDS:
        words.pop()
    return words


def _is_event(relation: str, words: list[str]) -> bool:
    first, second = words[0], words[1] if len(words) > 1 else ""
    if first in EMPTY_EVENTS and not (first in ("that", "this", "those") and second.isalpha()):
        return False
    if not first[0].isalpha() and not first[0].isdigit():
        return False
    if first in SUBJECTS:
        return second in PAST_VERBS or second.endswith("ed")
    if first.split("'")[0] in SUBJECTS:
        return first.endswith("'d")
    return relation != "since" or not PRESENT_VERBS.intersection(words)
