"""The parts of `Store` that keep what was made of the log, take over what another installation made, and erase."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Protocol

from offbook.model.lesson import Lesson, LessonDraft, LessonKind, LessonStatus
from offbook.model.receipt import ForgetReceipt, KeptText, Lineage
from offbook.model.record import Admission, SessionPart
from offbook.model.summary import Completion, HandedContext, Node, Spending, Summary, SummaryDraft, SummaryText, Usage
from offbook.model.turn import TurnMemory
from offbook.model.types import (
    AuditDraft,
    AuditEvent,
    Scope,
    Session,
)


class SummaryRows(Protocol):
    """Summaries, and what models were paid for them."""

    # ── summaries ──

    async def add_summary(self, agent_id: str, draft: SummaryDraft, event: AuditDraft) -> Summary:
        """Keep a summary under the next number of its level, and note in its sources that they are merged.

        The same level and spans again: what is there stays and is returned, unless the new one is by another
        summarizer and `event` says `"again": True`; then the text is replaced, under its id. A source that is
        unknown, another agent's or merged already, a span that is not in the agent's log or overlaps another of its
        level: `StoreError`, and nothing is written.
        """

    async def summaries(
        self,
        agent_id: str,
        *,
        level: int | None = None,
        session_id: str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[Summary]:
        """The agent's summaries, the newest made first, those made before the one of this id."""

    async def summary(self, agent_id: str, summary_id: str) -> Summary | None: ...

    async def nodes(self, scope: Scope, *, level: int, through_seq: int | None = None, limit: int = 100) -> list[Node]:
        """The summaries of this level that lie wholly in this session and end at `through_seq` or before, the one
        that ends last first. Those of one level never overlap. Does not grow with history."""

    async def nodes_holding(self, scope: Scope, *, seq: int) -> list[Node]:
        """The summaries of this session alone that stand for this message, one of each level at most."""

    async def summary_texts(self, agent_id: str, ids: Sequence[str]) -> dict[str, SummaryText]:
        """What is unknown or another agent's is left out."""

    async def summarised_through(self, scope: Scope) -> int:
        """The last message of the session that a summary of level 1 stands for; 0 where there is none."""

    async def unmerged(
        self, agent_id: str, *, level: int, session_id: str | None = None, limit: int = 100
    ) -> list[Summary]:
        """Summaries of the level that none merges, oldest first: a session's by `first_seq`, all by `first_at`."""

    async def summary_counts(self, agent_id: str) -> dict[int, int]:
        """How many summaries of each level. Does not grow with history."""

    async def summaries_after(self, agent_id: str, *, after: str | None = None, limit: int = 100) -> list[Summary]:
        """The agent's summaries in the order they were made, those made after the one of this id."""

    # ── what models were paid for ──

    async def completion(self, agent_id: str, fingerprint: str) -> Completion | None: ...

    async def add_completion(self, agent_id: str, completion: Completion, at: datetime) -> None:
        """Keep an answer and add what it cost to the day's spending. The same fingerprint again changes nothing."""

    async def spending(self, day: date, *, agent_id: str | None = None) -> list[Spending]:
        """What was used on a day (UTC), by summarizer: of one agent, or of all."""

    async def spent(self, agent_id: str) -> Usage:
        """What the agent's summaries have cost so far. Does not grow with history, but with its days."""


class LessonRows(Protocol):
    """What was learnt of what was said."""

    async def keep_lessons(
        self, agent_id: str, drafts: Sequence[LessonDraft], *, replaced: Mapping[str, str], event: AuditDraft
    ) -> list[Lesson]:
        """Add what was learnt. One of the same kind and key that is there takes the draft's words, times and places in,
        unless a person has judged it: then only its times, `last_seen` and places. `replaced` names lessons that no
        longer hold, by id, and the key of the draft that took their place. Places that are not the agent's are left
        out. The event is recorded only where something changed; returns what is there now, in the order given."""

    async def lessons(
        self,
        agent_id: str,
        *,
        kind: LessonKind | None = None,
        statuses: Sequence[LessonStatus] | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[Lesson]:
        """The agent's lessons, the one of the highest number first, those before the one of this id. Forgotten ones are
        not there."""

    async def lesson(self, agent_id: str, lesson_id: str) -> Lesson | None: ...

    async def standing_lessons(self, agent_id: str, ids: Sequence[str]) -> set[str]:
        """Those of them that nobody has rejected and nothing has taken the place of."""

    async def lesson_places(self, agent_id: str, lesson_id: str) -> list[int]:
        """All places that say it, in order; none for what is unknown."""

    async def lessons_at(self, agent_id: str, places: Sequence[int]) -> list[Lesson]:
        """Those that any of these places says, by number."""

    async def lessons_keyed(self, agent_id: str, keys: Collection[str]) -> list[Lesson]:
        """Those with any of these keys, by number."""

    async def judge_lesson(
        self,
        agent_id: str,
        lesson: Lesson,
        places: Sequence[int],
        event: AuditDraft | None,
        *,
        made_of: tuple[int, ...] | None = None,
    ) -> None:
        """Keep a lesson as a person wants it, with the places where that was said beside its own. What was seen of it
        meanwhile stays. No event where the message that says it brought its own. Not there: `StoreError`. `made_of`: as
        for `hand_over`."""

    async def lesson_counts(self, agent_id: str) -> dict[str, int]:
        """How many of each status, without those forgotten. Grows with lessons, not with history."""


class TurnRows(Protocol):
    """What contexts and turns were made with, and small state of a session."""

    # ── contexts that were handed out ──

    async def hand_over(
        self,
        scope: Scope,
        context: HandedContext,
        event: AuditDraft | None,
        *,
        made_of: tuple[int, ...] | None = None,
    ) -> None:
        """Keep what the agent runs on from now on, and make its generation the session's: one above it for a swap, the
        same for a start. All or nothing: with another generation, or without a session, `StoreError`.

        `made_of`: the version `erased` of the agent from before it was made; `StoreBusy` where something was erased
        since, so that nothing of it comes back."""

    async def handed(self, scope: Scope, *, at: datetime | None = None) -> HandedContext | None:
        """The newest context that was handed out, or the newest at that time."""

    # ── what turns were prepared with ──

    async def keep_turn_memory(
        self, scope: Scope, memory: TurnMemory, *, made_of: tuple[int, ...] | None = None
    ) -> None:
        """Keep the stable section of a session's turns; those before it stay. Also of a session that nobody has
        written to. Derived, so no audit event: the turn that shows it leaves one. `made_of`: as for `hand_over`."""

    async def turn_memory(self, scope: Scope, *, at: datetime | None = None) -> TurnMemory | None:
        """The one kept last, or the one kept last at that time. Does not grow with history."""

    # ── small state of a session ──

    async def session_note(self, scope: Scope, name: str) -> str | None: ...

    async def set_session_note(self, scope: Scope, name: str, value: str | None) -> None:
        """Keep a value under a name, in the place of the one before; None removes it. Derived, so no audit event.
        A session that is not there: nothing."""

    def let_go(self, agent_id: str) -> None:
        """Keep nothing in memory of the agent's notes and links: another node has it, or they are to be read as they
        lie there."""

    async def sessions_after(self, agent_id: str, *, after: str | None = None, limit: int = 100) -> list[Session]:
        """The agent's sessions in the order they were made, those after the one of this key. For who goes through
        all of them."""


class RecordRows(Protocol):
    """What another installation exported."""

    async def forgotten_in(self, scope: Scope, *, first_seq: int, last_seq: int) -> int:
        """How many messages of this stretch were forgotten. Grows with the stretch."""

    async def admit(self, scope: Scope, parts: Sequence[SessionPart], event: AuditDraft) -> list[Admission]:
        """Put parts of a session in the places they had elsewhere, in order; what became of each.

        What is there stays. A message is added only at the end, right after one that is known to be the same here
        (given before it, or `Followed`), or as the first of all; one in whose place another is, and all that is given
        after it, is refused. A pin gets the number it has. One event, which counts what was taken; none where nothing
        was. All or nothing: whatever is refused is refused without a trace.
        """

    async def admit_lessons(self, agent_id: str, lessons: Sequence[Lesson], event: AuditDraft) -> list[Admission]:
        """Keep lessons as they are, under the numbers they have where those are free; what became of each. One of the
        same kind and key stays. One whose sources are all unknown here, or of which one was forgotten here, is
        refused. One event, where any was taken."""


class ErasureRows(Protocol):
    """Forgetting."""

    async def places_hashed(self, agent_id: str, hashes: Collection[bytes]) -> list[int]:
        """Where those of the agent's messages lie whose rows have these hashes, also forgotten ones, in order. Looks at
        every message."""

    async def lineage(self, agent_id: str, places: Sequence[int], *, summaries: Sequence[str] = ()) -> Lineage:
        """Everything that came of these messages of the agent, but for what was forgotten before; `summaries` names
        others that are meant, with what merges them. Looks at every message that has large parts."""

    async def parts_in_use(self, agent_id: str, digests: Collection[str]) -> set[str]:
        """Which of these large parts messages of the agent refer to, also those that were on their way into the log
        when this was asked, whether or not anybody still waits for them. Looks at every message that has large parts,
        and keeps nobody who writes waiting."""

    async def erase(
        self,
        agent_id: str,
        lineage: Lineage,
        rewritten: Mapping[str, SummaryDraft],
        receipt: ForgetReceipt,
        event: AuditDraft,
        lessons: Sequence[Lesson] = (),
    ) -> tuple[int, AuditEvent]:
        """Take what was said out of the messages of the lineage, and out of all that came of it: vectors, holds, links,
        contexts and notes of their sessions, turn memories and answers of models of the agent, its lessons. Summaries
        get the drafts given for them, under their ids; of its lessons, those in `lessons` are kept as given, with their
        other sources. A message keeps its place, id, times and hashes; its noise is `forgotten`, and nothing new is
        kept of it. Returns the number of the receipt, and the event, which gets the number and how many messages."""

    async def erase_stray(self, agent_id: str, rows: Sequence[tuple[str, int]]) -> None:
        """Remove rows that `kept_texts` named. Derived, so no audit event."""

    def kept_texts(self, agent_id: str) -> AsyncIterator[KeptText]:
        """Every text of the agent that is kept beside the log, in pages. Grows with history; never on a request path
        but that of forgetting."""

    async def set_receipt(self, agent_id: str, erasure: int, receipt: ForgetReceipt) -> None: ...

    async def receipts(self, agent_id: str) -> list[tuple[int, ForgetReceipt]]:
        """What was forgotten, the oldest first, with the numbers."""

    async def purge(self) -> None:
        """Leave no byte in the store's files of what was removed before. Writes wait meanwhile."""
