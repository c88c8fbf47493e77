"""What is left of a lesson when some of the messages that say it are forgotten.

It is told in the words of those that stay, as if the others had never been said; but what a person judged stays
judged. Of a judgement only the words go, where they were forgotten themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

import msgspec

from offbook.model.content import own_text
from offbook.model.lesson import LESSONS_SESSION, Lesson, LessonDraft, LessonStatus
from offbook.model.memory_entry import PlacedMessage
from offbook.model.receipt import FORGOTTEN, FORGOTTEN_TEXT
from offbook.search.words import terms
from offbook.statements.lesson_links import takes_back
from offbook.statements.lessons import QUOTED, as_draft, folded
from offbook.statements.reading import LessonMention, kept_in, with_key


def remains_of(
    lesson: Lesson,
    sources: Sequence[PlacedMessage],
    gone: Collection[int],
    says: Callable[[str], bool],
) -> Lesson | None:
    """The lesson without the messages at these places; None where nothing of it is left. `sources` are all of its;
    `says`: whether a text has stretches of words that only those have which go."""
    stay = [one for one in sources if one.place not in gone and one.logged.entry.noise != FORGOTTEN]
    said = [one for one in stay if one.session_id != LESSONS_SESSION]
    taught = _taught(lesson, said)
    words = _words(lesson, said, taught, says)
    judged = _judged(lesson, sources, stay, words, says)
    if judged is None:
        return None
    times_gone = sum(one.session_id != LESSONS_SESSION for one in sources) - len(said)
    left = msgspec.structs.replace(
        judged,
        times=max(len(said), lesson.times - times_gone, 1),
        first_seen=_first(lesson.first_seen, sources, stay),
        last_seen=_last(lesson.last_seen, sources, stay),
    )
    if left.status == "learnt" and taught is not None:
        return msgspec.structs.replace(left, confidence=taught.confidence, learnt_by=taught.learnt_by)
    return left


# ── what was learnt ──


def _taught(lesson: Lesson, said: Sequence[PlacedMessage]) -> LessonDraft | None:
    """As it would be learnt from these alone."""
    found: list[LessonMention] = []
    for placed in said:
        all_of_it = kept_in(placed)
        same = [one for one in all_of_it if one.key == lesson.key]
        alike = [one for one in all_of_it if one.kind == lesson.kind]
        if same:
            found += same
        elif len(alike) == 1 and lesson.learnt_by == QUOTED:  # it meant the same in other words
            found += alike
    if not found:
        return None
    key = lesson.key if any(one.key == lesson.key for one in found) else found[0].key
    (draft,) = folded([], [with_key(one, key) for one in found]).drafts
    return draft


def _words(
    lesson: Lesson, said: Sequence[PlacedMessage], taught: LessonDraft | None, says: Callable[[str], bool]
) -> LessonDraft | None:
    """As they were where those who stay say all of it, else as they say it."""
    if not said:
        return None
    before = lesson.text if lesson.learnt_text is None else lesson.learnt_text
    heard = {term for one in said for term in terms(own_text(one.logged.message.content))}
    is_said = _all_in(before, heard) and _all_in(lesson.about or "", heard) and not says(before)
    if taught is None:
        return msgspec.structs.replace(as_draft(lesson), text=before) if is_said else None  # a model's
    if lesson.learnt_by == QUOTED and not any(before in own_text(one.logged.message.content) for one in said):
        return taught  # a quotation is word for word what one of those says who stay
    return msgspec.structs.replace(taught, text=before, about=lesson.about) if is_said else taught


def _all_in(text: str, heard: Collection[str]) -> bool:
    return not text or all(term in heard for term in terms(text))


# ── what a person made of it ──


def _judged(
    lesson: Lesson,
    sources: Sequence[PlacedMessage],
    stay: Sequence[PlacedMessage],
    words: LessonDraft | None,
    says: Callable[[str], bool],
) -> Lesson | None:
    written = _written(sources)
    left = _written(stay)
    standing = [one for one in left if not takes_back(one.logged.message)]
    is_last_left = bool(written) and left[-1:] == written[-1:]
    if lesson.learnt_text is None:
        return None if words is None else _saying(lesson, words, lesson.status)
    if not written:  # it came without the messages in which it was judged
        is_lost = words is None or says(lesson.text)
        return None if is_lost else _edited(lesson, lesson.text, words, lesson.status)
    if not standing:
        return None if words is None else _saying(lesson, words, _without_words(lesson, is_last_left=is_last_left))
    text = own_text(standing[-1].logged.message.content)
    status = lesson.status if is_last_left else _without_words(lesson, text)
    return _edited(lesson, text, words, status)


def _without_words(lesson: Lesson, still_says: str | None = None, *, is_last_left: bool = False) -> LessonStatus:
    """The status of what was judged in words that are forgotten: whoever only added to it said yes, else no."""
    if is_last_left or lesson.status != "edited":
        return lesson.status
    if set(terms(still_says or lesson.learnt_text or "")) <= set(terms(lesson.text)):
        return "accepted" if still_says is None else "edited"
    return "rejected"


def _saying(lesson: Lesson, words: LessonDraft, status: LessonStatus) -> Lesson:
    """What was learnt, and nothing that a person wrote."""
    return msgspec.structs.replace(
        lesson, text=words.text, learnt_text=None, key=words.key, about=words.about, status=status
    )


def _edited(lesson: Lesson, text: str, words: LessonDraft | None, status: LessonStatus) -> Lesson:
    about = lesson.about if _all_in(lesson.about or "", set(terms(text))) else None
    return msgspec.structs.replace(
        lesson,
        text=text,
        learnt_text=FORGOTTEN_TEXT if words is None else words.text,
        # What it was about is not said any more: it is known by its number.
        key=lesson.id if words is None else words.key,
        about=about if words is None else words.about,
        status=status,
    )


def _written(sources: Sequence[PlacedMessage]) -> list[PlacedMessage]:
    return sorted((one for one in sources if one.session_id == LESSONS_SESSION), key=lambda one: one.logged.seq)


# ── when ──


def _at(placed: PlacedMessage) -> datetime:
    return placed.logged.said_at


def _first(known: datetime, sources: Sequence[PlacedMessage], stay: Sequence[PlacedMessage]) -> datetime:
    first = min(map(_at, stay), default=known)
    return known if first == min(map(_at, sources), default=known) else max(known, first)


def _last(known: datetime, sources: Sequence[PlacedMessage], stay: Sequence[PlacedMessage]) -> datetime:
    last = max(map(_at, stay), default=known)
    return known if last == max(map(_at, sources), default=known) else min(known, last)
