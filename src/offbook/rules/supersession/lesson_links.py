"""What a person wrote in the place of a lesson, and which messages give way to it.

All of it follows from the messages that a lesson knows, so it can be made again wherever they are: in the store where
it was written, and in one that they were imported into.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from offbook.model.content import own_text
from offbook.model.lesson import LESSONS_SESSION, Lesson
from offbook.model.memory_entry import PlacedMessage, Supersession
from offbook.model.types import Message
from offbook.rules.anchors.prototypes import denies
from offbook.rules.supersession.facts import CHANGE, UNREAL
from offbook.rules.supersession.supersede import says_more
from offbook.search.resolve import PARTLY, RETRACTED
from offbook.search.words import terms

CORRECTION = "correction"
"""The kind of link from what was learnt to what a person wrote."""
TAKES_BACK = {"verdict": "reject"}
"""In the `meta` of a message that takes back what a person wrote before."""

_QUOTED = re.compile(r"“(?P<said>[^”]+)”\Z")
# What is told with all the words of before and says the contrary, or that it is over.
_OTHERWISE = re.compile(
    r"\b(?:formerly|former|wrong|false|untrue|until|till|stopped|ended|left|rather than|was|were|had|did|lived|"
    r"worked)\b|[不没沒別别非]|以前|曾",
    re.IGNORECASE,
)


def lesson_links(lesson: Lesson, sources: Sequence[PlacedMessage]) -> list[Supersession]:
    """All links that a lesson's own messages make. What was taken back holds nothing down any more."""
    said = [one for one in sources if one.session_id != LESSONS_SESSION]
    written = sorted((one for one in sources if one.session_id == LESSONS_SESSION), key=lambda one: one.logged.seq)
    links: list[Supersession] = []
    standing: list[PlacedMessage] = []
    for new in written:
        if takes_back(new.logged.message):
            links = [one for one in links if one.kind == RETRACTED]
            links += [_link(lesson, old, new, RETRACTED) for old in standing]
            standing = []
            continue
        for old in (*said, *standing):
            kind = _kind(lesson, _text(old), _text(new))
            links += [_link(lesson, old, new, kind)] if kind else []
        standing.append(new)
    return links


def takes_back(message: Message) -> bool:
    return TAKES_BACK.items() <= (message.meta or {}).items()


def adds_to(new: str, old: str) -> bool:
    """Whether `new` says all that `old` says, so that `old` is as true as before."""
    words = set(terms(old))
    is_over = any(one.search(new) and not one.search(old) for one in (CHANGE, UNREAL, _OTHERWISE))
    return bool(words) and words <= set(terms(new)) and denies(new) == denies(old) and not is_over


def claim_of(text: str) -> str:
    """What a lesson claims, without who said it ("They corrected me: …")."""
    found = _QUOTED.search(text.strip())
    return found["said"] if found else text


def _kind(lesson: Lesson, old: str, new: str) -> str | None:
    """None where both are so."""
    claim = claim_of(lesson.learnt_text or lesson.text)
    is_claimed = set(terms(claim)) <= set(terms(old))
    if adds_to(new, old) or (is_claimed and adds_to(new, claim)):
        return None
    # Of a message that says more than the lesson, the rest still holds.
    return PARTLY if says_more(old, new) else CORRECTION


def _link(lesson: Lesson, old: PlacedMessage, new: PlacedMessage, kind: str) -> Supersession:
    at = new.logged.message.ts or new.logged.received_at
    return Supersession(old_place=old.place, new_place=new.place, kind=kind, at=at, note=lesson.id)


def _text(placed: PlacedMessage) -> str:
    return own_text(placed.logged.message.content)
