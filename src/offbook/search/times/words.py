"""English words for counts, units and days, and the words that tell a date from something else."""

from __future__ import annotations

import re
from collections.abc import Iterable

from offbook.search.times.periods import Unit


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _numbered(words: str) -> dict[str, int]:
    return {word: number for number, word in enumerate(words.split(), start=1)}


UNITS: dict[str, tuple[Unit, int]] = {
    "minute": ("minute", 1),
    "min": ("minute", 1),
    "hour": ("hour", 1),
    "hr": ("hour", 1),
    "day": ("day", 1),
    "week": ("week", 1),
    "wk": ("week", 1),
    "fortnight": ("week", 2),
    "month": ("month", 1),
    "year": ("year", 1),
    "yr": ("year", 1),
    "decade": ("year", 10),
}

_COUNTED = _numbered("one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen")
COUNTS: dict[str, tuple[int, int]] = {
    **{word: (number, number) for word, number in _COUNTED.items()},
    "a": (1, 1),
    "an": (1, 1),
    "twenty": (20, 20),
    "thirty": (30, 30),
    "forty": (40, 40),
    "fifty": (50, 50),
    "sixty": (60, 60),
    "ninety": (90, 90),
    "a couple of": (2, 3),
    "a couple": (2, 3),
    "couple of": (2, 3),
    "couple": (2, 3),
    "a few": (2, 5),
    "few": (2, 5),
    "several": (3, 8),
}
"""The fewest and the most that a word may mean."""

_ORDINALS = _numbered(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
    " sixteenth seventeenth eighteenth nineteenth twentieth"
)
ORDINALS: dict[str, int] = {
    **_ORDINALS,
    **{f"twenty-{word}": 20 + number for word, number in _ORDINALS.items() if number < 10},
    "thirtieth": 30,
    "thirty-first": 31,
}
WEEKS_OF_MONTH = {"first": 0, "1st": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2, "fourth": 3, "4th": 3, "last": -1}

_WEEKDAYS = _numbered("monday tuesday wednesday thursday friday saturday sunday")
WEEKDAYS: dict[str, int] = {word: number - 1 for word, number in _WEEKDAYS.items()}
SHORT_WEEKDAYS: dict[str, int] = {"mon": 0, "tue": 1, "tues": 1, "wed": 2, "thu": 3, "thur": 3, "thurs": 3, "fri": 4}
"""Without `sat` and `sun`, which are words."""

MONTHS = _numbered("january february march april may june july august september october november december")
SHORT_MONTHS: dict[str, int] = {**{word[:3]: number for word, number in MONTHS.items() if word != "may"}, "sept": 9}
VERB_MONTHS = frozenset({"may", "march", "mar"})
NAME_MONTHS = frozenset({"april", "may", "june", "jan"})
"""Also what people are called: "after June" may be after she came."""

AFTER_A_VERB = _set("be been have not also never well only even still need want seem contain cause help take")
"""What follows "may" where it is no month."""

CLOSERS = _set(
    "what who whom whose where when which why how did do does is was were are and or but to till until through so then"
    " i we you he she they the my our his her with at in about for because if"
)
"""What may follow a whole date; anything else may belong to a longer name ("June's", "Monday meeting")."""

COUNTED_NOUNS = _set(
    "words chars characters tokens lines steps users people dollars euros pounds miles km kilometers kilometres meters"
    " metres feet hours minutes seconds days weeks months years ms items rows files times pieces units calories points"
    " requests messages records customers copies percent kg grams watts mb gb"
)
"""Before them a number is no year: "in 2000 words"."""

NOT_DAYS_BEFORE = _set("every each black good taco casual freaky easter palm ash super per most")
"""Before a weekday or a month these make something else of it."""

SUBJECTS = frozenset({"i", "we", "you", "he", "she", "they", "it"})
EMPTY_EVENTS = _set(
    "that this then it now there when which what them these those all long hand another me him us noon"
    " midnight today here ever"
)
"""What refers to something said, or to nothing: "before that", "after all", "before long"."""
CLAUSE_BEGINS = _set("and but or what who whom whose where when which why how then so because if about")
INVERSIONS = _set("did do does was were had have is are can could should would")
PRESENT_VERBS = _set("is are has have can will do does am")
"""With these "since" gives a reason."""
WEAK_ENDS = _set("to in on at with for the a an of from by and or")

PAST_VERBS = _set(
    "was were had did went came got met left began became bought brought built broke caught chose drove fell felt found"
    " flew forgot gave grew heard held kept knew learnt lost made paid put quit ran read rode said sat saw sold sent"
    " set shot slept spoke spent split stood swam taught told thought took understood woke won wore wrote ate drank"
    " hired first last ever even both all finally just"
)
"""With a pronoun before it, only a past verb names an event: "before I left", not "before I forget"."""


# ── patterns made of them ─────────────────────────────────────────────────────────────────────


def any_of(words: Iterable[str]) -> str:
    """The longest first, so that "a couple of" is not read as "a"."""
    return "|".join(sorted(words, key=len, reverse=True))


def whole_words(pattern: str) -> re.Pattern[str]:
    """Whole words, and any number of blanks for one."""
    return re.compile(rf"(?<![a-z0-9_$€£])(?<![0-9][.,])(?:{pattern})(?![a-z0-9_])".replace(" ", " +"))


NAMES_A_TIME = re.compile(
    r"day|night|week|month|year|decade|ago\b|noon|yester|tomorrow|morning|evening|recent|lately|quarter"
    r"|\d{4}|\d[./]\d+[./]\d|\d/\d|\d(?:st|nd|rd|th)\b"
    rf"|\b(?:{any_of([*MONTHS, *SHORT_MONTHS, *SHORT_WEEKDAYS])}"
    r"|spring|summer|autumn|fall|winter|christmas|easter|thanksgiving|q[1-4]"
    rf"|{any_of(one for one in ORDINALS if one.endswith('th'))})\b"
    r"|[年月日号號天周週昨今明前後后曜時时近]|[\u0600-\u06ff\u3040-\u30ff\uac00-\ud7a3]"
)
"""Of lower case. What a sentence without any of these says about no time: most are told apart by it, at little cost."""

COUNT = rf"\d{{1,4}}|{any_of(COUNTS)}"
UNIT = any_of(UNITS)
WEEKDAY = any_of(WEEKDAYS)
MONTH = rf"(?:{any_of(MONTHS)}|(?:{any_of(SHORT_MONTHS)})\.?)"
YEAR = r"(?:19|20)\d\d"
OFFSETS = {"last": -1, "previous": -1, "past": -1, "this past": -1, "this": 0, "the current": 0, "next": 1}
WHICH = any_of(OFFSETS)
BOUNDS = frozenset({"since", "ever since", "before", "prior to", "after", "until", "till", "by", "between", "around"})
"""After any of these a date is a date."""
