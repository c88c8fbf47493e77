"""Which lessons come into a turn: what a person has judged first, then what is sure enough, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from offbook.continuity.learning.confidence import confidence_at
from offbook.continuity.learning.fold import holding, spoken_against
from offbook.lessons import Lesson, LessonStatus
from offbook.settings import Lessons

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
