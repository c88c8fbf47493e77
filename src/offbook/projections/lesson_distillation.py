"""Lessons that a model finds: it is asked once for each stretch of which a summary has been made.

Through the writer of summaries, so with its order, its caps for the day, its pauses and its ledger of what was paid.
Without a model there is nothing to do here: the rules have read every message already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

import msgspec
import structlog

from offbook.log.store import Store
from offbook.model.errors import StoreCorrupt
from offbook.model.settings import Settings
from offbook.model.summary import Summary, summary_id
from offbook.model.types import LoggedMessage, Scope, Value, now
from offbook.projections.lesson_prompt import STRENGTH, grounded_in, lessons_prompt
from offbook.projections.summary_writer import Writer
from offbook.rules.lessons.reader import LessonMention

SPANS = "lessons-stretches"
"""The agent's note of how far it was asked."""
MOST_OF_THE_PAST = 20
"""Where lessons begin on a memory that is there already, only the newest stretches are asked about: the rules read
the rest."""
MOST_TRIES = 3
"""Then it is left to the rules: a stretch that no model can take must not keep the next from its turn."""
TRY_COUNTS_AFTER = timedelta(hours=6)
"""Since the one before. A model that is away for an hour is asked all the same, and misses nothing."""
LOOKED_AHEAD = 50
"""Numbers of summaries that may be missing in a row."""
MESSAGES_AT_A_TIME = 200
MOST_MESSAGES = 1_000

log = structlog.get_logger("offbook.projections")


class DistillationCursor(Value, frozen=True):
    """How far a model was asked."""

    through: int = 0
    tries: int = 0
    """Of the one after it, as far as they count."""
    tried_at: datetime | None = None


class Distilled(NamedTuple):
    number: int
    said: list[LessonMention]
    by: str


class LessonDistillation:
    def __init__(self, store: Store, settings: Settings, writer: Writer) -> None:
        self._store = store
        self._settings = settings
        self._writer = writer

    async def next(self, agent_id: str) -> Distilled | None:
        """What the next stretch teaches. None: there is none, or nobody can be asked now."""
        if not self._writer.has_models(agent_id):
            return None
        asked = await self._asked(agent_id)
        summary = await self._following(agent_id, asked.through)
        if summary is None:
            return None
        number = _number(summary)
        try:
            return await self._distilled(agent_id, summary, number)
        except StoreCorrupt as error:
            log.error("passed over", action="lessons.damage", agent=agent_id, summary=summary.id, detail=error.detail)
            return Distilled(number, [], "")
        except _NobodyAnswers:
            return await self._tried(agent_id, asked, number)

    async def done(self, agent_id: str, distilled: Distilled) -> None:
        """After what it taught was kept: who is stopped between the two asks again, and is given the answer that was
        paid for."""
        await self._note(agent_id, DistillationCursor(through=distilled.number))

    async def _tried(self, agent_id: str, asked: DistillationCursor, number: int) -> Distilled | None:
        at = now()
        if asked.tried_at is not None and abs(at - asked.tried_at) < TRY_COUNTS_AFTER:
            return None
        if asked.tries + 1 >= MOST_TRIES:
            return Distilled(number, [], "")
        await self._note(agent_id, DistillationCursor(through=asked.through, tries=asked.tries + 1, tried_at=at))
        return None

    async def _distilled(self, agent_id: str, summary: Summary, number: int) -> Distilled:
        said: list[LessonMention] = []
        by = ""
        for span in summary.draft.spans:
            scope = Scope(agent_id=agent_id, session_id=span.session_id)
            messages = await self._messages(scope, span.first_seq, span.last_seq)
            if not messages:
                continue
            written = await self._writer.write(
                agent_id,
                partial(lessons_prompt, agent_id, messages),
                # An answer may be as long as it is: it is no summary, which must be shorter than its source.
                source_chars=10**9,
                identifiers=(),
            )
            if written is None:
                raise _NobodyAnswers
            answer, by, _ = written
            said += await self._said(scope, answer.text, messages)
        return Distilled(number, said, by)

    async def _said(self, scope: Scope, answer: str, messages: Sequence[LoggedMessage]) -> list[LessonMention]:
        found = await asyncio.to_thread(grounded_in, answer, messages)
        by_seq = {one.seq: one for one in messages}
        seqs = sorted({seq for one in found for seq in one.seqs})
        places = dict(zip(seqs, await self._store.places(scope, seqs), strict=True))
        return [
            LessonMention(
                kind=one.proposed.kind,
                text=one.proposed.text,
                key=one.key,
                strength=STRENGTH,
                at=_at(by_seq[seq]),
                place=places[seq],
                session_id=scope.session_id,
                seq=seq,
                about=one.proposed.about,
            )
            for one in found
            for seq in one.seqs
        ]

    async def _messages(self, scope: Scope, first_seq: int, last_seq: int) -> list[LoggedMessage]:
        found: list[LoggedMessage] = []
        after = first_seq - 1
        while after < last_seq and len(found) < MOST_MESSAGES:
            page = await self._store.messages(scope, after_seq=after, limit=MESSAGES_AT_A_TIME)
            if not page:
                break
            found += [one for one in page if one.seq <= last_seq]
            after = page[-1].seq
        return found

    async def _following(self, agent_id: str, through: int) -> Summary | None:
        newest = await self._store.summaries(agent_id, level=1, limit=1)
        last = _number(newest[0]) if newest else 0
        for number in range(through + 1, min(last, through + LOOKED_AHEAD) + 1):
            if summary := await self._store.summary(agent_id, summary_id(1, number)):
                return summary
        return None

    async def _asked(self, agent_id: str) -> DistillationCursor:
        note = await self._store.agent_note(agent_id, SPANS)
        try:
            if note is not None:
                return msgspec.json.decode(note, type=DistillationCursor)
        except msgspec.MsgspecError:
            log.warning("note not readable", action="lessons.note", agent=agent_id)
        newest = await self._store.summaries(agent_id, level=1, limit=1)
        asked = DistillationCursor(through=max(0, _number(newest[0]) - MOST_OF_THE_PAST) if newest else 0)
        await self._note(agent_id, asked)
        return asked

    async def _note(self, agent_id: str, asked: DistillationCursor) -> None:
        await self._store.set_agent_note(agent_id, SPANS, msgspec.json.encode(asked).decode(), None)


class _NobodyAnswers(Exception):
    """No model can be asked now."""


def _number(summary: Summary) -> int:
    return int(summary.id.rpartition("-")[2])


def _at(one: LoggedMessage) -> datetime:
    return min(one.message.ts or one.received_at, one.received_at)
