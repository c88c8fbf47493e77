"""The verbs of lessons, for callers that block."""

from __future__ import annotations

from collections.abc import Sequence

from offbook.client.blocking_turns import BlockingTurns
from offbook.model.lesson import Lesson, LessonKind, LessonPage, LessonStatus, Verdict


class BlockingLessons(BlockingTurns):
    def lessons(
        self,
        *,
        kind: LessonKind | None = None,
        status: LessonStatus | Sequence[LessonStatus] | None = None,
        before: str | None = None,
        limit: int = 50,
        agent_id: str | None = None,
    ) -> LessonPage:
        return self._run(self._client.lessons(kind=kind, status=status, before=before, limit=limit, agent_id=agent_id))

    def judge_lesson(
        self, lesson_id: str, verdict: Verdict, text: str | None = None, *, agent_id: str | None = None
    ) -> Lesson:
        return self._run(self._client.judge_lesson(lesson_id, verdict, text, agent_id=agent_id))
