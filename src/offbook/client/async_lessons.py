"""The verbs of lessons, for asyncio."""

from __future__ import annotations

from collections.abc import Sequence

from offbook.client.asking import Asking
from offbook.model.lesson import Lesson, LessonKind, LessonPage, LessonStatus, Verdict


class AsyncLessons(Asking):
    async def lessons(
        self,
        *,
        kind: LessonKind | None = None,
        status: LessonStatus | Sequence[LessonStatus] | None = None,
        before: str | None = None,
        limit: int = 50,
        agent_id: str | None = None,
    ) -> LessonPage:
        """What was learnt from what was said, the newest first. Go on with `before`: the `next` of the page before."""
        statuses = status if status is None or isinstance(status, str) else list(status)
        body = self._of(None, agent_id, kind=kind, status=statuses, before=before, limit=limit)
        return await self._ask("lessons", body, LessonPage)

    async def judge_lesson(
        self, lesson_id: str, verdict: Verdict, text: str | None = None, *, agent_id: str | None = None
    ) -> Lesson:
        """Accept a lesson, reject it, or `edit` it: `text` is what it says from now on."""
        body = self._of(None, agent_id, lessonId=lesson_id, verdict=verdict, text=text)
        return await self._ask("lessons/judge", body, Lesson)
