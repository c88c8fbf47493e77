"""Lessons as a person sees and judges them.

What somebody writes in the place of a lesson is news: it goes into the log as their message, so that it is recalled,
exported and forgotten as everything else they said, and what the lesson was learnt from gives way to it. To reject
what was written so is news, too: it is taken back, and what it was learnt from holds again.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256

import msgspec

from offbook.api.background import Background
from offbook.ingest.scope import checked_text
from offbook.ingest.secret_scan import redact_text
from offbook.log.store import ANY_SEQ, Store
from offbook.model.errors import NotFound, WrongShape
from offbook.model.lesson import LESSON_ORIGIN, LESSONS_SESSION, Lesson, LessonKind, LessonPage, LessonStatus, Verdict
from offbook.model.receipt import FORGOTTEN
from offbook.model.types import EMBEDDED, AuditDraft, Caller, Message, Receipt, Scope, now, session_event
from offbook.projections.links import relinked
from offbook.statements.lesson_links import TAKES_BACK

LONGEST_TEXT_CHARS = 2_000
"""A lesson is a sentence or two; what is longer belongs into a message."""
NOT_SO = "That is not so: "
NAMES_ASKED_AT_ONCE = 50

BY_HAND = Caller(name="wiki")
"""Whoever edits the files of the data folder."""

Take = Callable[[Scope, Sequence[Message], AuditDraft], Awaitable[Receipt]]
"""Messages into the log, with the event."""


class LessonReview:
    def __init__(self, store: Store, background: Background, take: Take) -> None:
        self._store = store
        self._background = background
        background.judge = self.judge_by_hand
        self._take = take
        self._one_at_a_time = asyncio.Lock()

    # ── what was learnt ──

    async def lessons(
        self,
        agent_id: str,
        *,
        kind: LessonKind | None = None,
        statuses: Sequence[LessonStatus] | None = None,
        before: str | None = None,
        limit: int = 50,
        by: Caller = EMBEDDED,
    ) -> LessonPage:
        """What was learnt from what was said, the newest first, with how sure it is and where it was said."""
        if limit < 1:
            raise WrongShape(f"`limit` is {limit}: ask for at least 1 lesson")
        found = await self._store.lessons(agent_id, kind=kind, statuses=statuses, before=before, limit=limit + 1)
        counts = await self._store.lesson_counts(agent_id)
        shown = found[:limit]
        await self._store.record(agent_id, AuditDraft(verb="lessons", actor=by.name, details={"lessons": len(shown)}))
        return LessonPage(
            agent_id=agent_id, lessons=shown, counts=counts, next=shown[-1].id if len(found) > limit else None
        )

    # ── what a person says to it ──

    async def judge(
        self, agent_id: str, lesson_id: str, verdict: Verdict, text: str | None = None, *, by: Caller = EMBEDDED
    ) -> Lesson:
        """Accept a lesson, reject it, or say in `text` what it should say: the lesson as it is from now on. The same
        verdict again changes nothing and says the same. The background never changes what a person has judged."""
        said = _edited_text(verdict, text)
        # Two who edit at once would each leave the other's words standing.
        async with self._one_at_a_time:
            made_of = self._store.versions.of(agent_id, "erased")
            lesson = await self._store.lesson(agent_id, lesson_id)
            if lesson is None:
                listed = f"offbook lessons --agent {shlex.quote(agent_id)}"
                raise NotFound(f"there is no lesson {lesson_id!r} of agent {agent_id!r}: `{listed}` lists them")
            details = {"lesson": lesson.id, "verdict": verdict}
            if said is not None:
                await self._edit(lesson, said, details, by, made_of)
            else:
                await self._decide(lesson, "accepted" if verdict == "accept" else "rejected", details, by, made_of)
            return await self._store.lesson(agent_id, lesson_id) or lesson

    async def judge_by_hand(self, agent_id: str, lesson_id: str, verdict: Verdict, text: str | None) -> None:
        """In the wiki."""
        await self.judge(agent_id, lesson_id, verdict, text, by=BY_HAND)

    async def _decide(
        self, lesson: Lesson, status: LessonStatus, details: dict[str, str], by: Caller, made_of: tuple[int, ...]
    ) -> None:
        is_turned = "rejected" in (status, lesson.status) and status != lesson.status
        if is_turned and lesson.learnt_text is not None:  # its words are a person's, and in the log
            if status == "rejected":
                said = redact_text(NOT_SO + lesson.text)[0]
                rejected = msgspec.structs.replace(lesson, status=status)
                await self._say(rejected, said, TAKES_BACK, details, by, made_of)
            else:
                await self._edit(lesson, lesson.text, details, by, made_of, status)
            return
        event = AuditDraft(verb="lessons/judge", actor=by.name, details=details)
        decided = msgspec.structs.replace(lesson, status=status)
        await self._store.judge_lesson(lesson.agent_id, decided, [], event, made_of=made_of)

    async def _edit(
        self,
        lesson: Lesson,
        said: str,
        details: dict[str, str],
        by: Caller,
        made_of: tuple[int, ...],
        status: LessonStatus = "edited",
    ) -> None:
        if (lesson.status, lesson.text) == ("edited", said):
            scope = Scope(agent_id=lesson.agent_id, session_id=LESSONS_SESSION)
            await self._store.record(lesson.agent_id, session_event("lessons/judge", by, scope, details))
            return
        edited = msgspec.structs.replace(
            lesson,
            text=said,
            status=status,
            learnt_text=lesson.text if lesson.learnt_text is None else lesson.learnt_text,
            last_seen=max(lesson.last_seen, now()),
            replaced_by=None,
        )
        await self._say(edited, said, {}, details, by, made_of)

    async def _say(
        self,
        judged: Lesson,
        said: str,
        meta: dict[str, str],
        details: dict[str, str],
        by: Caller,
        made_of: tuple[int, ...],
    ) -> None:
        """The lesson is written last: whoever is stopped before that and asks again goes through all of it again, and
        what is there already is found there."""
        scope = Scope(agent_id=judged.agent_id, session_id=LESSONS_SESSION)
        id_ = await self._message_id(scope, judged, said)
        message = Message(role="user", content=said, id=id_, origin=LESSON_ORIGIN, meta={"lesson": judged.id} | meta)
        receipt = await self._take(scope, [message], session_event("lessons/judge", by, scope, details))
        places = await self._store.places(scope, [receipt.first_seq])
        await relinked(self._store, judged, by, places)
        await self._store.judge_lesson(judged.agent_id, judged, places, None, made_of=made_of)

    async def _message_id(self, scope: Scope, lesson: Lesson, said: str) -> str:
        """The first name that no message has: somebody may come back to words they had before. But the one that was
        said last of all is the same edit again, which was stopped on its way."""
        name = f"{lesson.id}:{sha256(said.encode()).hexdigest()[:12]}"
        newest = await self._store.messages_before(scope, before_seq=ANY_SEQ, limit=1)
        # What was forgotten says nothing any more: under its name nothing new would be kept.
        last = newest[0].message.id if newest and newest[0].entry.noise != FORGOTTEN else None
        if last is not None and (last == name or last.startswith(f"{name}:")):
            return last
        names = [name]
        while not (free := await self._store.missing(scope, names)):
            following = range(len(names) + 1, len(names) + 1 + NAMES_ASKED_AT_ONCE)
            names += [f"{name}:{number}" for number in following]
        return free[0]


def _edited_text(verdict: Verdict, text: str | None) -> str | None:
    """The words of an edit, without secrets; None for the other verdicts."""
    if verdict not in ("accept", "edit", "reject"):
        raise WrongShape(f"`verdict` is {verdict!r}: say accept, edit or reject")
    if verdict != "edit":
        if text is not None:
            raise WrongShape(f"`text` goes with the verdict edit, not with {verdict}: leave it out")
        return None
    if text is None or not text.strip():
        raise WrongShape("`text` is empty: say what the lesson should say, or reject it")
    if len(text) > LONGEST_TEXT_CHARS:
        raise WrongShape(
            f"`text` has {len(text):,} characters; a lesson has at most {LONGEST_TEXT_CHARS:,}: say it in fewer"
        )
    checked_text(text, "text")
    return redact_text(text.strip())[0]
