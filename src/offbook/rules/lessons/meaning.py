"""With a model: two of a kind that mean the same are one lesson, in whatever words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from offbook.model.lesson import Lesson
from offbook.rules.anchors.prototypes import denies, names_in
from offbook.rules.lessons.reader import LessonMention, changed
from offbook.rules.lessons.voice import parted
from offbook.rules.likeness import Embed, vectors_of

SAME_MEANING = 0.9
"""Measured with the packaged model on 24 pairs of lessons that mean the same and 26 that only look alike, such as
"translator" and "designer": 17 of the former are joined and 1 of the latter ("lives in", "works in"). At 0.85 it is 21
and 3, at 0.94 it is 7 and none."""
MOST_COMPARED = 500
"""The lessons seen last, of a kind. With more, the older ones are known by their words alone."""
LEAST_LATIN_SHARE = 0.9
"""The packaged model takes all that is in other letters for the same."""


class _Known(NamedTuple):
    key: str
    group: str
    text: str


def joined(known: Sequence[Lesson], said: Sequence[LessonMention], embed: Embed) -> list[LessonMention]:
    """What was said, under the key of what means the same: of what is known, else of what was said before it. Names,
    numbers and denials must agree, as they do not show in a vector; what has a value is known by that."""
    keys = {one.key for one in known}
    found: list[LessonMention] = []
    for kind in dict.fromkeys(one.kind for one in said):
        lessons = sorted((one for one in known if one.kind == kind), key=lambda one: one.last_seen)[-MOST_COMPARED:]
        there = [_Known(one.key, _group(one.key), one.learnt_text or one.text) for one in lessons]
        for one in sorted((one for one in said if one.kind == kind), key=lambda one: (one.at, one.place)):
            key = one.key
            if key not in keys:
                key = _nearest(one, there, embed) or key
                keys.add(key)
                there.append(_Known(key, _group(key), one.text))
            found.append(changed(one, key))
    return found


def _group(key: str) -> str:
    """Only those of one group are compared. What has a value is a group by itself, but for what is liked
    or not, to be done or not."""
    subject, value = parted(key)
    holder, _, attribute = subject.rpartition("|")
    first = attribute.split(" ", 1)[0]
    return f"{holder}|{first} {value}" if first in ("like", "rule") else key if value else ""


def _nearest(one: LessonMention, there: Sequence[_Known], embed: Embed) -> str | None:
    names, is_denied, group = names_in(one.text), denies(one.text), _group(one.key)
    alike = [
        other
        for other in there
        if other.group == group and names_in(other.text) == names and denies(other.text) == is_denied
    ]
    if not alike or not _is_latin(one.text):
        return None
    rows = vectors_of(embed, [one.text, *(other.text for other in alike)])
    likeness = rows[1:] @ rows[0]
    best = int(likeness.argmax())
    return alike[best].key if float(likeness[best]) >= SAME_MEANING else None


def _is_latin(text: str) -> bool:
    return sum(letter < "\u0250" or "\u2010" <= letter <= "\u203a" for letter in text) >= LEAST_LATIN_SHARE * len(text)
