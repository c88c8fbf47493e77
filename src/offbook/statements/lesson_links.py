"""What a person wrote in the place of a lesson, and which messages give way to it.

All of it follows from the messages that a lesson knows, so it can be made again wherever they are: in the store where
it was written, and in one that they were imported into.
"""

from __future__ import annotations

from collections.abc import Sequence

from offbook.model.content import own_text
from offbook.model.lesson import LESSONS_SESSION, Lesson
from offbook.model.memory_entry import PlacedMessage, Supersession
from offbook.model.sentences import sentences
from offbook.model.types import Message
from offbook.search.resolve import CORRECTION, PARTLY, RETRACTED
from offbook.search.words import terms

TAKES_BACK = {"verdict": "reject"}
"""In the `meta` of a message that takes back what a person wrote before."""


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
            if own_text(old.logged.message.content).strip() != own_text(new.logged.message.content).strip():
                links.append(_link(lesson, old, new, PARTLY if _says_more(old, lesson) else CORRECTION))
        standing.append(new)
    return links


def takes_back(message: Message) -> bool:
    return TAKES_BACK.items() <= (message.meta or {}).items()


def _says_more(old: PlacedMessage, lesson: Lesson) -> bool:
    """Of a message that says more than the lesson, the rest still holds; not of what was written in its place."""
    if old.session_id == LESSONS_SESSION:
        return False
    claimed = set(terms(lesson.learnt_text or lesson.text))
    rest = [one for one in sentences(own_text(old.logged.message.content)) if not set(terms(one.text)) <= claimed]
    return bool(rest)


def _link(lesson: Lesson, old: PlacedMessage, new: PlacedMessage, kind: str) -> Supersession:
    at = new.logged.message.ts or new.logged.received_at
    return Supersession(old_place=old.place, new_place=new.place, kind=kind, at=at, note=lesson.id)
