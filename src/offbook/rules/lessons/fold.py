"""What was said, joined with what is known: the same again is one lesson, what changed takes the place of what was.

Nothing is counted twice: a lesson knows where it was said, and a place it knows teaches nothing new. So a piece of work
that is done again leaves the same, and so does one whose messages come in another order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from math import prod
from typing import NamedTuple

from offbook.model.lesson import LESSONS_SESSION, Lesson, LessonDraft, LessonStatus
from offbook.model.settings.sections import Lessons
from offbook.rules.lessons.changes import Frame, frame_of, groups_of, takes_place_of
from offbook.rules.lessons.reader import LessonMention
from offbook.rules.lessons.voice import cannot_both_hold, parted
from offbook.rules.supersession.facts import CHANGE

# ── How sure a lesson is ──

MOST = 0.98
"""However often it was said: they may change their mind."""
FADES_OVER = timedelta(days=730)
FADES_BY = 0.25
"""What a rule was fairly sure of (0.7) and was said once falls below what comes into a turn (0.6) after 14 months; what
was said twice (0.91) stays."""
SPOKEN_AGAINST = 0.7
DIGITS = 4


def confidence_of(strengths: Iterable[float], before: float = 0.0) -> float:
    """After it was said with these strengths, where it had that confidence before."""
    doubt = (1 - before) * prod(1 - strength for strength in strengths)
    return round(min(MOST, 1 - doubt), DIGITS)


def confidence_at(confidence: float, last_seen: datetime, at: datetime, *, is_spoken_against: bool = False) -> float:
    age = min(max(at - last_seen, timedelta()), FADES_OVER)
    faded = confidence * (1 - FADES_BY * (age / FADES_OVER))
    return faded * SPOKEN_AGAINST if is_spoken_against else faded


RULES = "rules"


class Learnt(NamedTuple):
    """What is to be kept, and what no longer holds."""

    drafts: list[LessonDraft]
    replaced: dict[str, str]
    """Ids of lessons, and the key of what took their place."""
    outdated: dict[str, str]
    """Keys of drafts that were outdated before they were learnt, and the key of what had taken their place."""
    new: int
    again: int


def folded(known: Iterable[Lesson], said: Sequence[LessonMention], learnt_by: str = RULES) -> Learnt:
    by_key: dict[str, Lesson] = {}
    for lesson in sorted(known, key=lambda one: one.id):
        by_key.setdefault(lesson.key, lesson)
    sayings: dict[str, list[LessonMention]] = {}
    for one in sorted(said, key=lambda one: (one.at, one.place)):
        there = by_key.get(one.key)
        if there is None or not _is_known(there, one):
            sayings.setdefault(one.key, []).append(one)
    drafts = {key: _draft(by_key.get(key), some, learnt_by) for key, some in sayings.items()}
    links = _links(by_key, drafts, sayings)
    replaced = {
        by_key[old].id: new
        for old, new in links.items()
        if old in by_key and (old in sayings or by_key[old].replaced_by is None)
    }
    # Whatever takes a place is among the drafts: the store finds it there.
    for key in replaced.values():
        if key not in drafts:
            drafts[key] = as_draft(by_key[key])
    return Learnt(
        drafts=list(drafts.values()),
        replaced=replaced,
        outdated={old: new for old, new in links.items() if old not in by_key},
        new=sum(key not in by_key for key in sayings),
        again=sum(key in by_key for key in sayings),
    )


def holding(lessons: Iterable[Lesson]) -> list[Lesson]:
    """Those that nothing took the place of and nobody rejected."""
    return [one for one in lessons if one.replaced_by is None and one.status != "rejected"]


def spoken_against(lessons: Sequence[Lesson]) -> set[str]:
    """The ids of those that something said later speaks against, although both may be true."""
    by_subject: dict[str, list[Lesson]] = {}
    for one in lessons:
        subject, value = parted(one.key)
        if value:
            by_subject.setdefault(subject, []).append(one)
    return {
        old.id
        for some in by_subject.values()
        for old in some
        if any(old.last_seen < new.last_seen and cannot_both_hold(new.key, old.key, is_change=True) for new in some)
    }


def _is_known(lesson: Lesson, one: LessonMention) -> bool:
    return any((source.session_id, source.seq) == (one.session_id, one.seq) for source in lesson.sources)


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
    is_newer = last.at > lesson.last_seen
    return LessonDraft(
        kind=lesson.kind,
        text=last.text if is_newer else lesson.text,
        key=lesson.key,
        confidence=confidence_of(strengths, lesson.confidence),
        first_seen=min(lesson.first_seen, sayings[0].at),
        last_seen=max(lesson.last_seen, last.at),
        # At least: of a lesson that was said very often, not every place is told. The store knows them all.
        times=max(lesson.times, _times_said(lesson) + times),
        places=[one.place for one in sayings],
        learnt_by=lesson.learnt_by,
        about=last.about or lesson.about if is_newer else lesson.about,
    )


def _times_said(lesson: Lesson) -> int:
    """Where somebody judged it, they did not say it once more."""
    return sum(source.session_id != LESSONS_SESSION for source in lesson.sources)


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


class _LessonCandidate(NamedTuple):
    key: str
    last_seen: datetime
    said: list[tuple[datetime, str, Frame | None]]
    """When, and in which words, the last ones last. Of what was said before now, only these are known."""
    is_new: bool
    """It was just said."""


def _links(
    by_key: Mapping[str, Lesson], drafts: Mapping[str, LessonDraft], sayings: Mapping[str, Sequence[LessonMention]]
) -> dict[str, str]:
    """For each key of a subject that was just spoken of: the newest that took its place, if any did."""
    alike: dict[str, list[_LessonCandidate]] = {}
    spoken_of: set[str] = set()
    for one in _candidates(by_key, drafts, sayings):
        for group in _groups(one):
            alike.setdefault(group, []).append(one)
            spoken_of |= {group} if one.is_new else set()
    found: dict[str, _LessonCandidate] = {}
    for group in sorted(spoken_of):
        newest_first = sorted(alike[group], key=_age, reverse=True)
        for at, old in enumerate(newest_first):
            those = (new for new in newest_first[:at] if new.is_new or old.is_new)
            new = next((new for new in those if _takes_place(new, old)), None)
            if new is not None:
                found[old.key] = max(new, found.get(old.key, new), key=_age)
    return {old: new.key for old, new in found.items()}


def _candidates(
    by_key: Mapping[str, Lesson], drafts: Mapping[str, LessonDraft], sayings: Mapping[str, Sequence[LessonMention]]
) -> Iterator[_LessonCandidate]:
    """All that is known and all that was just said. What a person rejected takes no place of anything."""
    for key in (*(key for key in by_key if key not in drafts), *drafts):
        lesson, draft = by_key.get(key), drafts.get(key)
        if lesson is not None and lesson.status == "rejected":
            continue
        said = [(lesson.last_seen, lesson.text)] if lesson is not None else []
        said += [(one.at, one.text) for one in sayings.get(key, ())]
        if one := draft or lesson:
            read = [(at, text, frame_of(one.kind, text)) for at, text in sorted(said)]
            yield _LessonCandidate(key, one.last_seen, read, is_new=draft is not None)


def _groups(one: _LessonCandidate) -> set[str]:
    """Only those of one group can take each other's place: of one subject, or of one make."""
    subject = parted(one.key)[0]
    makes = (groups_of(frame) for _, _, frame in one.said if frame is not None)
    return ({subject} if subject != one.key else set()).union(*makes)


def _takes_place(new: _LessonCandidate, old: _LessonCandidate) -> bool:
    if new.last_seen <= old.last_seen:
        return False
    since = [(text, frame) for at, text, frame in new.said if at > old.last_seen]
    if cannot_both_hold(new.key, old.key, is_change=True):  # else no word of change would help
        is_change = any(CHANGE.search(text) for text, _ in since)
        if is_change or cannot_both_hold(new.key, old.key, is_change=False):
            return True
    before = old.said[-1][2]
    return before is not None and any(frame is not None and takes_place_of(frame, before) for _, frame in since)


def _age(one: _LessonCandidate) -> tuple[datetime, str]:
    return one.last_seen, one.key


# ── Which lessons come into a turn: what a person has judged first, then what is sure enough,  ──

JUDGED: tuple[LessonStatus, ...] = ("accepted", "edited")


def chosen_lessons(lessons: Sequence[Lesson], settings: Lessons, at: datetime) -> list[Lesson]:
    if not settings.enabled:
        return []
    there = holding({one.id: one for one in lessons}.values())
    doubted = spoken_against(there)
    shown = [
        one
        for one in there
        if one.status in JUDGED
        or confidence_at(one.confidence, one.last_seen, at, is_spoken_against=one.id in doubted)
        >= settings.min_confidence
    ]
    shown.sort(key=lambda one: (one.last_seen, one.id), reverse=True)
    return sorted(shown, key=lambda one: one.status not in JUDGED)[: settings.max_injected]
