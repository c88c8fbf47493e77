"""What an agent's chain says of a moment: what was there by then, and what came later and goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import apsw
import msgspec

from offbook.log.audit_chain import GENESIS, counts_with, event_hash, micros, moment, seal, stand_ins_hash
from offbook.log.sql import audit_reads
from offbook.log.sql.connection import UNREADABLE
from offbook.log.sql.lesson_reads import FORGOTTEN
from offbook.log.sql.row_ids import place_of
from offbook.model.lesson import LESSONS_SESSION, Lesson, LessonStatus, lesson_id
from offbook.model.receipt import ForgottenSpan
from offbook.model.status import Counts
from offbook.model.types import LOST, SALVAGE, AuditDraft, AuditEvent, AuditHead

EVENTS_AT_A_TIME = 2_000
MAKES_SUMMARIES = frozenset({"compress", "import"})


class Parted(NamedTuple):
    """An agent's chain before and after a moment."""

    last_seq: int
    """The last event that stays; 0 where none does."""
    late: int
    """How many stay and say a later time."""
    early: list[int]
    """What those say that go and say an earlier one."""


@dataclass
class History:
    """One agent's chain, read once from its beginning to its end."""

    head: AuditHead = GENESIS
    """The last event that stays."""
    head_at: int = 0
    counts: Counts = field(default_factory=Counts)
    removed: int = 0
    cut_seq: dict[str, int] = field(default_factory=dict)
    """By session: its last message that stays, where some go."""
    opened: set[str] = field(default_factory=set)
    """Sessions that were not there yet."""
    touched: set[str] = field(default_factory=set)
    """Sessions that something happened in later."""
    summaries: set[str] = field(default_factory=set)
    """Those that were there."""
    offloaded_through: str | None = None
    is_offloaded_later: bool = False
    cross: bool | None = None
    is_cross_later: bool = False
    verdicts: dict[str, str] = field(default_factory=dict)
    """By lesson: what a person had said of it last."""
    judged_later: set[str] = field(default_factory=set)
    edited_later: set[str] = field(default_factory=set)
    pinned_later: int = 0
    is_pinning_unclear: bool = False
    is_unlinked_later: bool = False
    forgotten_later: list[AuditEvent] = field(default_factory=list)
    stand_ins: dict[int, str] = field(default_factory=dict)
    """What stays of those that stand for lost events, and the hash of each."""

    def stays(self, event: AuditEvent) -> None:
        self.head, self.head_at = AuditHead(seq=event.seq, hash=event.hash), micros(event.at)
        self.counts = counts_with(self.counts, event)
        details = event.details
        if event.verb in MAKES_SUMMARIES and isinstance(details.get("id"), str):
            self.summaries.add(details["id"])
        elif event.verb == LOST:
            self.stand_ins[event.seq] = event_hash(event)
        elif event.verb == "offload":
            self.offloaded_through = details.get("through")
        elif event.verb == "cross" and "enabled" in details:
            self.cross = details["enabled"]
        elif event.verb == "lessons/judge" and "lesson" in details:
            self.verdicts[details["lesson"]] = details.get("verdict", "")

    def goes(self, event: AuditEvent) -> None:
        self.removed += 1
        details, session = event.details, event.session_id
        if session is not None:
            self.touched.add(session)
            if details.get("accepted"):
                self.cut_seq[session] = min(self.cut_seq.get(session, details["firstSeq"]), details["firstSeq"] - 1)
            if details.get("opened"):
                self.opened.add(session)
        if event.verb == "offload":
            self.is_offloaded_later = True
        elif event.verb == "cross" and "enabled" in details:
            self.is_cross_later = True
        elif event.verb == "lessons/judge" and "lesson" in details:
            self.judged_later.add(details["lesson"])
            if details.get("verdict") == "edit":
                self.edited_later.add(details["lesson"])
        elif event.verb == "pin":
            self.pinned_later += details.get("changed", 0)
        elif event.verb == "unpin" and details.get("changed"):
            self.is_pinning_unclear = True
        elif event.verb == "unlink" and details.get("changed"):
            self.is_unlinked_later = True
        elif event.verb == SALVAGE or (event.verb == "forget" and details.get("spans")):
            self.forgotten_later.append(event)
        if details.get("pins"):
            self.is_pinning_unclear = True


def history_of(connection: apsw.Connection, agent_id: str, last_seq: int) -> History:
    history = History()
    for event in _events(connection, agent_id):
        if event.seq <= last_seq:
            history.stays(event)
        else:
            history.goes(event)
    return history


def parted_at(connection: apsw.Connection, agent: int, at: int) -> Parted:
    """Where the chain is cut: where the fewest events are on the wrong side of the moment by the time they say, and of
    such places at the first. Where the clock only went forward there are none. Where it was wrong for a while, those
    that say so are few: neither does one that says a time long ago keep all that came before it, nor one that says a
    time to come take all that came after. Where it was ahead from the beginning they may be many, and nothing would
    be left: then it is cut by what was said since."""
    last_seq = score = best = 0
    for seq, said in connection.execute("SELECT seq, at FROM audit WHERE agent = ? ORDER BY seq", (agent,)):
        score += 1 if said <= at else -1
        if score > best:
            last_seq, best = seq, score
    last_seq = last_seq or _last_since_set_right(connection, agent, at)
    bounds = (agent, last_seq, at)
    late = connection.execute("SELECT count(*) FROM audit WHERE agent = ? AND seq <= ? AND at > ?", bounds).get
    early: list[tuple[Any, ...]] = connection.execute(
        "SELECT at FROM audit WHERE agent = ? AND seq > ? AND at <= ?", bounds
    ).fetchall()
    return Parted(last_seq, late, [said for (said,) in early])


def _last_since_set_right(connection: apsw.Connection, agent: int, at: int) -> int:
    """Of a chain that begins with later times: the last event by the moment, where more than one say, each after the
    other, that the clock was set back to stay. 0 where only one does, or where the clock went on afterwards from where
    it had been: then it was behind for a while, and nothing was there yet."""
    last_seq = said_last = witnesses = highest = ahead = 0
    following: int | None = None
    for seq, said in connection.execute("SELECT seq, at FROM audit WHERE agent = ? ORDER BY seq", (agent,)):
        if said > at:
            highest = max(highest, said)
            following = said if following is None else following
        elif not witnesses or said >= said_last:
            last_seq, said_last, witnesses = seq, said, witnesses + 1
            ahead, following = highest, None
    is_to_stay = following is None or following < ahead
    return last_seq if witnesses > 1 and is_to_stay else 0


def forgotten_again(agent_id: str, history: History, erased: dict[str, set[int]]) -> Iterator[AuditEvent]:
    """The events that say of a message that it was forgotten or lost, at the end of the shorter chain: what was said is
    gone, and something has to vouch for that. `erased`: of each session the messages that stay, emptied."""
    head = history.head
    for event in history.forgotten_later:
        details: dict[str, Any] = event.details
        if event.verb == SALVAGE:
            details = details | _lost_again(details, history)
        else:
            spans = [
                span
                for span in _held(event.details["spans"], history)
                if any(span.first_seq <= seq <= span.last_seq for seq in erased.get(span.session_id, ()))
            ]
            if not spans:
                continue
            details = details | {"spans": msgspec.to_builtins(spans)}
        draft = AuditDraft(verb=event.verb, actor=event.actor, session_id=event.session_id, details=details)
        again = seal(agent_id, draft, head, moment(max(history.head_at, micros(event.at))))
        head = AuditHead(seq=again.seq, hash=again.hash)
        yield again


def _lost_again(details: dict[str, Any], history: History) -> dict[str, Any]:
    """Of what a salvage names: what the shorter chain and its sessions hold."""
    again: dict[str, Any] = {
        name: msgspec.to_builtins(list(_held(details[name], history)))
        for name in ("spans", "emptied")
        if name in details
    }
    if "events" in details:
        end = history.head.seq
        again["events"] = [[first, min(last, end)] for first, last in details["events"] if first <= end]
    if "standIns" in details:
        again["standIns"] = stand_ins_hash(history.stand_ins.values())
    return again


def _held(spans: object, history: History) -> Iterator[ForgottenSpan]:
    """What the shorter sessions hold of them: the numbers behind are given anew."""
    for span in msgspec.convert(spans, list[ForgottenSpan]):
        last_seq = min(span.last_seq, history.cut_seq.get(span.session_id, span.last_seq))
        if span.first_seq <= last_seq:
            yield msgspec.structs.replace(span, last_seq=last_seq)


def _events(connection: apsw.Connection, agent_id: str) -> Iterator[AuditEvent]:
    after = 0
    while page := audit_reads.audit_events(connection, agent_id, None, after, EVENTS_AT_A_TIME, newest_first=False):
        yield from page
        after = page[-1].seq


# ── Lessons as they were before what came later, as far as that is known. Part of `point_in_ti ──

STATUS_OF: dict[str, LessonStatus] = {"accept": "accepted", "edit": "edited", "reject": "rejected"}

_LOSE_SOURCES = """
DELETE FROM lesson_sources WHERE lesson = ?
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.place = lesson_sources.place)
"""
_SAID = "SELECT count(*) FROM lesson_sources WHERE lesson = ? AND NOT (place >= ? AND place < ?)"
_LEFT = """
SELECT count(*), max(m.ts) FROM lesson_sources l JOIN messages m ON m.place = l.place WHERE l.lesson = ?
"""


def cut_lessons(connection: apsw.Connection, agent: int, history: History) -> int:
    """Those go of which no source is left; the others are as old and as often said as what is left of theirs. How many
    cannot be as they were."""
    kept: list[tuple[int, Lesson]] = []
    gone: set[str] = set()
    unclear = 0
    judged = _places_of_judgements(connection, agent)
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT lesson, number, data FROM lessons WHERE agent = ? AND status <> ?", (agent, FORGOTTEN)
    ).fetchall()
    for row, number, data in rows:
        said: int = connection.execute(_SAID, (row, *judged)).get
        connection.execute(_LOSE_SOURCES, (row,))
        is_less = connection.changes() > 0
        said -= connection.execute(_SAID, (row, *judged)).get
        counted: list[tuple[Any, ...]] = connection.execute(_LEFT, (row,)).fetchall()
        ((left, last_said),) = counted
        if is_less and not left:
            gone.add(lesson_id(number))
            connection.execute("DELETE FROM lessons WHERE lesson = ?", (row,))
            continue
        with suppress(*UNREADABLE):  # a damaged one is left to `doctor`
            id_, lesson = lesson_id(number), msgspec.json.decode(data, type=Lesson)
            was = as_it_was(lesson, id_, unsaid=said, last_said=last_said if is_less else None, history=history)
            kept.append((row, was))
            unclear += is_unclear(id_, history)
    for row, lesson in kept:
        if lesson.replaced_by in gone:
            lesson = msgspec.structs.replace(lesson, replaced_by=None)  # noqa: PLW2901
        connection.execute(
            "UPDATE lessons SET status = ?, last_seen = ?, data = ? WHERE lesson = ?",
            (lesson.status, micros(lesson.last_seen), msgspec.json.encode(lesson).decode(), row),
        )
    return unclear


def _places_of_judgements(connection: apsw.Connection, agent: int) -> tuple[int, int]:
    """From where to where. Who judges a lesson does not say it once more."""
    session: int | None = connection.execute(
        "SELECT session FROM sessions WHERE agent = ? AND key = ?", (agent, LESSONS_SESSION)
    ).get
    return (0, 0) if session is None else (place_of(session, 0), place_of(session + 1, 0))


def is_unclear(id_: str, history: History) -> bool:
    """Of two edits only the last is kept."""
    return id_ in history.edited_later and history.verdicts.get(id_) == "edit"


def as_it_was(lesson: Lesson, id_: str, *, unsaid: int, last_said: int | None, history: History) -> Lesson:
    """`unsaid`: how many times less it had been said; `last_said`: where some of its sources are gone, when the newest
    of those left was said."""
    changes: dict[str, Any] = {}
    if unsaid:
        changes["times"] = max(1, lesson.times - unsaid)
    if last_said is not None:
        changes["last_seen"] = min(lesson.last_seen, moment(last_said))
    if id_ in history.judged_later:
        changes["status"] = STATUS_OF.get(history.verdicts.get(id_, ""), "learnt")
        if id_ in history.edited_later and not is_unclear(id_, history):
            changes |= {"text": lesson.learnt_text or lesson.text, "learnt_text": None}
    return msgspec.structs.replace(lesson, **changes)
