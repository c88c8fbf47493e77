"""What a sentence teaches, and the key under which the same is found again."""

from __future__ import annotations

import re
from typing import NamedTuple

from offbook.continuity.replacing.facts import NO_LONGER, contradicts, is_single_valued, is_within
from offbook.lessons import LessonKind
from offbook.retrieval.words import terms

SEPARATOR = " = "
"""Between the subject and the value of a key. No term holds a blank."""
MAX_KEY_TERMS = 24
FEWEST_WORDS_LEFT = 3
_CHOSEN = frozenset(("like", "choose", "rule"))
"""First words of subjects that have one value at a time: liked or not, this one or that."""

_REASON = re.compile(
    r"(?:\s[-–—]{1,2}\s|\s*;\s|, (?=(?:so|but|because|'cause|cause|since|though|as|it|it's|they|they're|that's|"
    r"which|check|"
    r"just|and (?:it|it's|they|they're|i|that|this))\b)|\s(?:because|'cause|since it|as it|so i)\b).*\Z",
    re.IGNORECASE | re.DOTALL,
)
POINTING = re.compile(
    r"\b(?:this|these|those|them|they|him|her|he|she|such|there|each other|that (?:one|world|place|kind|sort)|like "
    r"that|"
    r"so much|the same)\b",
    re.IGNORECASE,
)
"""Who reads it next month does not know what is meant."""
HURRY = re.compile(
    r"\b(?:immediately|right away|asap|now|at once|instead of asking|already|sharp sharp|mate)\b", re.IGNORECASE
)
"""What is to be done at once is not a rule for later."""


class Taught(NamedTuple):
    """What one clause of one sentence teaches."""

    kind: LessonKind
    clause: str
    """As it was said."""
    key: str
    strength: float
    """How sure the rule is that this is meant to last: see `confidence`."""
    about: str | None = None
    is_order: bool = False
    """It tells the agent what to do."""
    is_wish: bool = False
    """It is put as a wish ("I'd rather …"), which is as real as an order."""


def keyed(subject: str, value: str) -> str:
    return f"{subject}{SEPARATOR}{value}"


def by_words(prefix: str, text: str) -> str:
    """The key of what has no subject of its own: its telling words, in any order."""
    return f"{prefix}: {' '.join(sorted(dict.fromkeys(terms(text)))[:MAX_KEY_TERMS])}"


def without_reason(clause: str) -> str:
    """What is said, without why, where enough is left: "I love tea, it keeps me calm" is about tea."""
    said = _REASON.sub("", clause)
    return said if len(said.split()) >= FEWEST_WORDS_LEFT else clause


def parted(key: str) -> tuple[str, str]:
    """Subject and value. What has no value is a subject by itself, which nothing contradicts."""
    subject, found, value = key.rpartition(SEPARATOR)
    return (subject, value) if found else (key, "")


def cannot_both_hold(new: str, old: str, *, is_change: bool) -> bool:
    """Whether the newer of two keys takes the place of the older. `is_change`: it was said with a word of change."""
    subject, value = parted(new)
    other, old_value = parted(old)
    if not value or not old_value or subject != other or value == old_value:
        return False
    attribute = subject.rpartition("|")[2]
    if attribute.split(" ", 1)[0] in _CHOSEN:
        return True
    if old_value.startswith(NO_LONGER) and not value.startswith(NO_LONGER):
        # What is no longer so is so again, or what is so instead is known.
        return is_single_valued(subject) or is_within(value, old_value.removeprefix(NO_LONGER))
    return (is_change or is_single_valued(subject)) and contradicts(subject, value, old_value)
