"""What was said later about what the page tells: lessons with what followed them, and outdated sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from offbook.model.content import own_text
from offbook.model.lesson import Lesson
from offbook.model.memory_entry import PlacedMessage, Supersession
from offbook.model.sentences import sentences
from offbook.model.statement import ReadSentence
from offbook.models.sentence_kinds import read_sentences
from offbook.search.resolve import SINCE
from offbook.search.words import STOP_WORDS, terms
from offbook.statements.clauses import UNCLEAR, concerns, left_of, spans_of
from offbook.statements.lessons import QUOTED

STATES = 0.4


class Corrected(NamedTuple):
    """A message that something later was said about."""

    kind: str
    """Of the link."""
    session_id: str
    seq: int
    outdated: dict[str, str]
    """Its sentences that no longer hold, and what is left of each."""
    since: tuple[ReadSentence, ...]
    """What was said later."""


def corrected_by(link: Supersession, old: PlacedMessage, new: PlacedMessage) -> Corrected | None:
    """None where nothing is stated at one of the ends, or where it may be about the same and shares no word with it, or
    is about nobody knows which of several statements: that takes no place on the page."""
    said, since = _stated(old), _stated(new)
    if not said or not since:
        return None
    words = {term for one in since for term in terms(one.text)} - STOP_WORDS
    shared = [one for one in said if words & set(terms(one.text))]
    if link.kind == SINCE and (not shared or link.note == UNCLEAR):
        return None
    if spans := spans_of(link.note):
        text = own_text(old.logged.message.content)
        concerned = [one for one in sentences(text) if concerns(spans, one.start, one.end)]
        outdated = {one.text: left_of(text, spans, one.start, one.end) for one in concerned}
    else:
        outdated = {one.text: "" for one in shared or said}
    return Corrected(link.kind, old.session_id, old.logged.seq, outdated, tuple(since))


def later_than(lessons: Sequence[Lesson], corrected: Iterable[Corrected]) -> dict[str, str]:
    """By the id of a lesson, what was said later and may be about the same. What a model wrote gives way where a model
    says so: it knows better what is about the same."""
    by_source = {(source.session_id, source.seq): one for one in lessons for source in one.sources}
    later: dict[str, str] = {}
    for one in corrected:
        lesson = by_source.get((one.session_id, one.seq))
        if one.kind != SINCE or lesson is None or lesson.status != "learnt" or lesson.learnt_by != QUOTED:
            continue
        known = set(terms(lesson.text)) - STOP_WORDS
        best = max(one.since, key=lambda each: (len(known & set(terms(each.text))), each.states))
        if known & set(terms(best.text)):
            later.setdefault(lesson.id, best.text)
    return later


def _stated(placed: PlacedMessage) -> list[ReadSentence]:
    message = placed.logged.message
    read = read_sentences(own_text(message.content), is_user=message.role == "user")
    return [one for one in read if one.states >= STATES] or read
