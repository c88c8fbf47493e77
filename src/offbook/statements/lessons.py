"""What is kept beyond its conversation: the same said again is one lesson; what was corrected holds no longer.

Nothing is counted twice: a lesson knows where it was said, and a place it knows teaches nothing new. So a piece of work
that is done again leaves the same, and so does one whose messages come in another order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from math import inf, prod
from typing import NamedTuple

from offbook.model.lesson import LESSONS_SESSION, Lesson, LessonDraft, LessonStatus
from offbook.model.settings.sections import Lessons
from offbook.search.words import STOP_WORDS, terms
from offbook.statements.reading import LessonMention

MOST = 0.98
"""However often it was said: they may change their mind."""
FADES_OVER = timedelta(days=730)
FADES_BY = 0.25
DIGITS = 4
QUOTED = "quoted"
"""Who wrote a lesson that is a quotation."""
BY_RULES = "rules"
"""Lessons of the first version, read by patterns: they are told only where a person judged them."""
UNWRITTEN = (QUOTED, BY_RULES)
"""Who learns without a model."""
LEAST_BESIDE_A_MODEL = 0.75
FEWEST_WORDS = 3
JUDGED: tuple[LessonStatus, ...] = ("accepted", "edited")


class Learnt(NamedTuple):
    """What is to be kept, and how much of it was new or said again."""

    drafts: list[LessonDraft]
    new: int
    again: int
    given_way: dict[str, str]
    """By the id of a quotation, the key of what a model wrote of the same."""


def folded(known: Iterable[Lesson], said: Sequence[LessonMention], learnt_by: str = QUOTED) -> Learnt:
    by_key: dict[str, Lesson] = {}
    at: dict[tuple[str, int], list[Lesson]] = {}
    for lesson in sorted(known, key=lambda one: one.id):
        by_key.setdefault(lesson.key, lesson)
        for source in lesson.sources:
            at.setdefault((source.session_id, source.seq), []).append(lesson)
    sayings: dict[str, list[LessonMention]] = {}
    given_way: dict[str, str] = {}
    for one in sorted(said, key=lambda one: (one.at, one.place)):
        there = by_key.get(one.key)
        same = [lesson for lesson in at.get((one.session_id, one.seq), ()) if says_the_same(lesson.text, one.text)]
        if learnt_by in UNWRITTEN and any(lesson.learnt_by not in UNWRITTEN for lesson in same):
            continue  # a model has written it down
        if there is None or not _is_known(there, one) or _is_worded_anew(there, learnt_by):
            sayings.setdefault(one.key, []).append(one)
        given_way |= {each.id: one.key for each in same if each.key != one.key and _is_worded_anew(each, learnt_by)}
    drafts = {key: _draft(by_key.get(key), some, learnt_by) for key, some in sayings.items()}
    return Learnt(
        drafts=list(drafts.values()),
        new=sum(key not in by_key for key in sayings),
        again=sum(key in by_key for key in sayings),
        given_way=given_way,
    )


def says_the_same(one: str, other: str) -> bool:
    """Of two sentences drawn from the same message: at least half of the telling words of the shorter are in both."""
    words, others = set(terms(one)) - STOP_WORDS, set(terms(other)) - STOP_WORDS
    return bool(words and others) and 2 * len(words & others) >= min(len(words), len(others))


def confidence_of(strengths: Iterable[float], before: float = 0.0) -> float:
    """After it was said with these strengths, where it had that confidence before."""
    doubt = (1 - before) * prod(1 - strength for strength in strengths)
    return round(min(MOST, 1 - doubt), DIGITS)


def confidence_at(confidence: float, last_seen: datetime, at: datetime) -> float:
    """It fades with time: what was said once, in passing, is told no longer after a year or two."""
    age = min(max(at - last_seen, timedelta()), FADES_OVER)
    return confidence * (1 - FADES_BY * (age / FADES_OVER))


def holding(lessons: Iterable[Lesson]) -> list[Lesson]:
    """Those that nothing took the place of and nobody rejected."""
    return [one for one in lessons if one.replaced_by is None and one.status != "rejected"]


ENOUGH_LESSONS = 12
"""Beside more than these nothing is told that was said in passing: most of it was pasted or played. Of 29 such lessons
of three people 4 were true of them."""


def chosen_lessons(
    lessons: Sequence[Lesson], settings: Lessons, at: datetime, passing: Collection[str] = ()
) -> list[Lesson]:
    """Which come into a turn: what a person has judged first, then what is surest; what was said only in passing, in
    conversations they never came back to (`passing`: their ids), where there are few others."""
    if not settings.enabled:
        return []
    there = holding({one.id: one for one in lessons}.values())
    # Where a model reads what is said, a quotation must be surer: the model tells better what lasts.
    has_model = any(one.learnt_by not in UNWRITTEN for one in there)
    least = {QUOTED: max(settings.min_confidence, LEAST_BESIDE_A_MODEL if has_model else 0.0), BY_RULES: inf}
    shown = [
        one
        for one in there
        if one.status in JUDGED
        or confidence_at(one.confidence, one.last_seen, at) >= least.get(one.learnt_by, settings.min_confidence)
    ]
    shown.sort(key=lambda one: (confidence_at(one.confidence, one.last_seen, at), one.last_seen, one.id), reverse=True)
    shown.sort(key=lambda one: one.status not in JUDGED)
    shown = _distinct(shown)
    in_passing = [one for one in shown if one.id in passing and one.status not in JUDGED]
    others = [one for one in shown if one not in in_passing]
    return [*others, *in_passing[: max(0, ENOUGH_LESSONS - len(others))]][: settings.max_injected]


def _distinct(lessons: Sequence[Lesson]) -> list[Lesson]:
    """Of those that nobody judged and that differ in numbers only, the first: a log that is read aloud teaches once."""
    found: dict[frozenset[str], Lesson] = {}
    for one in lessons:
        words = frozenset(term for term in terms(one.text) if not any(map(str.isdigit, term)))
        found.setdefault(words if len(words) >= FEWEST_WORDS and one.status not in JUDGED else frozenset({one.id}), one)
    return list(found.values())


def as_draft(lesson: Lesson) -> LessonDraft:
    """As it is, to be kept again."""
    return LessonDraft(
        kind=lesson.kind,
        text=lesson.text,
        key=lesson.key,
        confidence=lesson.confidence,
        first_seen=lesson.first_seen,
        last_seen=lesson.last_seen,
        times=lesson.times,
        places=[],
        learnt_by=lesson.learnt_by,
        about=lesson.about,
    )


def _is_known(lesson: Lesson, one: LessonMention) -> bool:
    return any((source.session_id, source.seq) == (one.session_id, one.seq) for source in lesson.sources)


def _is_worded_anew(lesson: Lesson, learnt_by: str) -> bool:
    """A quotation that a model writes down: what it wrote stands in its place."""
    return lesson.learnt_by in UNWRITTEN and learnt_by not in UNWRITTEN and lesson.status == "learnt"


def _draft(lesson: Lesson | None, sayings: Sequence[LessonMention], learnt_by: str) -> LessonDraft:
    last = sayings[-1]
    times = len({(one.session_id, one.seq) for one in sayings})
    strengths = [one.strength for one in sayings]
    if lesson is None:
        return LessonDraft(
            kind=last.kind,
            text=last.text,
            key=last.key,
            confidence=confidence_of(strengths),
            first_seen=sayings[0].at,
            last_seen=last.at,
            times=times,
            places=[one.place for one in sayings],
            learnt_by=learnt_by,
            about=last.about,
        )
    # Said in other words since: the newest are the ones that are kept.
    is_anew = _is_worded_anew(lesson, learnt_by)
    is_newer = last.at > lesson.last_seen or is_anew
    sure = max(lesson.confidence, confidence_of(strengths)) if is_anew else confidence_of(strengths, lesson.confidence)
    return LessonDraft(
        kind=lesson.kind,
        text=last.text if is_newer else lesson.text,
        key=lesson.key,
        confidence=sure,
        first_seen=min(lesson.first_seen, sayings[0].at),
        last_seen=max(lesson.last_seen, last.at),
        # At least: of a lesson that was said very often, not every place is told. The store knows them all.
        times=max(lesson.times, _times_said(lesson) + times * (not is_anew)),
        places=[one.place for one in sayings],
        learnt_by=learnt_by if is_anew else lesson.learnt_by,
        about=last.about or lesson.about if is_newer else lesson.about,
    )


def _times_said(lesson: Lesson) -> int:
    """Where somebody judged it, they did not say it once more."""
    return sum(source.session_id != LESSONS_SESSION for source in lesson.sources)
