"""What was said, joined with what is known: the same again is one lesson, what changed takes the place of what was.

Nothing is counted twice: a lesson knows where it was said, and a place it knows teaches nothing new. So a piece of work
that is done again leaves the same, and so does one whose messages come in another order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from offbook.continuity.learning.confidence import confidence_of
from offbook.continuity.learning.reading import Said
from offbook.continuity.learning.taught import cannot_both_hold, parted
from offbook.continuity.replacing.lasting import CHANGE
from offbook.lessons import LESSONS_SESSION, Lesson, LessonDraft, LessonKind

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


def folded(known: Iterable[Lesson], said: Sequence[Said], learnt_by: str = RULES) -> Learnt:
    by_key: dict[str, Lesson] = {}
    for lesson in sorted(known, key=lambda one: one.id):
        by_key.setdefault(lesson.key, lesson)
    sayings: dict[str, list[Said]] = {}
    for one in sorted(said, key=lambda one: (one.at, one.place)):
        there = by_key.get(one.key)
        if there is None or not _is_known(there, one):
            sayings.setdefault(one.key, []).append(one)
    drafts = {key: _draft(by_key.get(key), some, learnt_by) for key, some in sayings.items()}
    links = _links(by_key, drafts)
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


def _is_known(lesson: Lesson, one: Said) -> bool:
    return any((source.session_id, source.seq) == (one.session_id, one.seq) for source in lesson.sources)


def _draft(lesson: Lesson | None, sayings: Sequence[Said], learnt_by: str) -> LessonDraft:
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


class _Standing(NamedTuple):
    key: str
    text: str
    last_seen: float
    kind: LessonKind


def _links(by_key: Mapping[str, Lesson], drafts: Mapping[str, LessonDraft]) -> dict[str, str]:
    """For each key of a subject that was just spoken of: the newest that took its place, if any did."""
    subjects = {subject for key in drafts if (subject := parted(key)[0]) != key}
    standing: dict[str, list[_Standing]] = {}
    for key, lesson in by_key.items():
        # What a person rejected takes no place of anything.
        if key not in drafts and parted(key)[0] in subjects and lesson.status != "rejected":
            one = _Standing(key, lesson.text, lesson.last_seen.timestamp(), lesson.kind)
            standing.setdefault(parted(key)[0], []).append(one)
    for key, draft in drafts.items():
        judged = by_key.get(key)
        if parted(key)[0] in subjects and not (judged and judged.status == "rejected"):
            one = _Standing(key, draft.text, draft.last_seen.timestamp(), draft.kind)
            standing.setdefault(parted(key)[0], []).append(one)
    found: dict[str, str] = {}
    for some in standing.values():
        newest_first = sorted(some, key=lambda one: (one.last_seen, one.key), reverse=True)
        for at, old in enumerate(newest_first):
            for new in newest_first[:at]:
                is_change = bool(CHANGE.search(new.text))
                if new.last_seen > old.last_seen and cannot_both_hold(new.key, old.key, is_change=is_change):
                    found[old.key] = new.key
                    break
    return found
