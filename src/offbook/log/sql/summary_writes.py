"""Writing what compression needs. Part of the ledger: in the writer thread, inside its transaction.

Nothing is kept in memory between two writes, so a rollback leaves nothing behind. What could not be read again is not
written: the limits of a field are checked when it is read.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

import msgspec

from offbook.log.audit_chain import micros
from offbook.log.sql import reads, summary_reads
from offbook.log.sql.connection import UNREADABLE
from offbook.log.sql.recall_reads import agent_number
from offbook.log.sql.rows import LedgerPart
from offbook.model.errors import StoreError
from offbook.model.summary import Completion, HandedContext, SourceSpan, Summary, SummaryDraft, summary_id
from offbook.model.types import AuditDraft, Scope, now

_INSERT_SUMMARY = """
INSERT INTO summaries (agent, level, number, session, first_seq, last_seq, first_at, last_at, chars, tokens, made_at,
                       brief)
VALUES (?,?,?,?,?,?,?,?,?,?,?,?)
"""
_REPLACE_SUMMARY = """
UPDATE summaries SET first_at = ?, last_at = ?, chars = ?, tokens = ?, made_at = ?, brief = ? WHERE summary = ?
"""
_INSERT_SPAN = "INSERT INTO summary_spans (session, level, last_seq, first_seq, summary) VALUES (?,?,?,?,?)"
_ENDS_NEXT = """
SELECT summary, first_seq FROM summary_spans WHERE session = ? AND level = ? AND last_seq >= ? ORDER BY last_seq LIMIT 1
"""
_ADD_SPENDING = """
INSERT INTO spending (day, agent, summarizer, calls, input_tokens, cached_tokens, output_tokens, dollars)
VALUES (?,?,?,1,?,?,?,?)
ON CONFLICT (day, agent, summarizer) DO UPDATE SET
    calls = spending.calls + 1,
    input_tokens = spending.input_tokens + excluded.input_tokens,
    cached_tokens = spending.cached_tokens + excluded.cached_tokens,
    output_tokens = spending.output_tokens + excluded.output_tokens,
    dollars = spending.dollars + excluded.dollars
"""


class _SessionSpan(NamedTuple):
    """A span, by the number of its session."""

    session: int
    first_seq: int
    last_seq: int


class CompressionLedger(LedgerPart):
    # ── summaries ──

    def add_summary(self, agent_id: str, draft: SummaryDraft, event: AuditDraft) -> Summary:
        data, draft = _readable(draft)
        stretches = self._stretches(agent_id, draft.spans)
        known = self._known(agent_id, draft, stretches)
        if known is None:
            return self._add(agent_id, draft, data, stretches, event)
        if known.draft.summarizer == draft.summarizer or event.details.get("again") is not True:
            return known
        return self._replace(known, draft, data, event)

    def _add(
        self, agent_id: str, draft: SummaryDraft, data: str, stretches: Sequence[_SessionSpan], event: AuditDraft
    ) -> Summary:
        sources = self._sources(agent_id, draft.sources)
        agent, at = self._agent(agent_id), now()
        number = summary_reads.last_number(self._connection, agent.agent, draft.level) + 1
        lies_in = stretches[0] if len(stretches) == 1 else (None, None, None)
        self._connection.execute(
            _INSERT_SUMMARY,
            (
                agent.agent,
                draft.level,
                number,
                *lies_in,
                micros(draft.first_at),
                micros(draft.last_at),
                len(draft.text),
                draft.tokens,
                micros(at),
                draft.brief,
            ),
        )
        id_ = summary_id(draft.level, number)
        summary = summary_reads.summary_number(self._connection, agent.agent, id_)
        self._connection.execute("INSERT INTO summary_texts (summary, draft) VALUES (?,?)", (summary, data))
        self._connection.executemany(
            _INSERT_SPAN,
            [(each.session, draft.level, each.last_seq, each.first_seq, summary) for each in stretches],
        )
        self._connection.executemany(
            "UPDATE summaries SET parent = ? WHERE summary = ?", [(summary, source) for source in sources]
        )
        self._chain(agent, _with_id(event, id_), at)
        return Summary(id=id_, agent_id=agent_id, made_at=at, draft=draft)

    def _replace(self, known: Summary, draft: SummaryDraft, data: str, event: AuditDraft) -> Summary:
        if set(draft.sources) != set(known.draft.sources):
            raise StoreError(f"{known.id} merges {known.draft.sources}, not {draft.sources}: write it again from those")
        agent, at = self._agent(known.agent_id), now()
        summary = summary_reads.summary_number(self._connection, agent.agent, known.id)
        times = micros(draft.first_at), micros(draft.last_at)
        self._connection.execute(
            _REPLACE_SUMMARY, (*times, len(draft.text), draft.tokens, micros(at), draft.brief, summary)
        )
        self._connection.execute("UPDATE summary_texts SET draft = ? WHERE summary = ?", (data, summary))
        self._chain(agent, _with_id(event, known.id), at)
        return msgspec.structs.replace(known, made_at=at, draft=draft)

    def _stretches(self, agent_id: str, spans: Sequence[SourceSpan]) -> list[_SessionSpan]:
        if not spans:
            raise StoreError("a summary stands for at least one span: name it")
        stretches = [self._stretch(agent_id, span) for span in spans]
        in_order = sorted(stretches)
        for one, other in pairwise(in_order):
            if one.session == other.session and other.first_seq <= one.last_seq:
                raise StoreError(f"two spans of a summary overlap at message {other.first_seq}: make them one")
        return stretches

    def _stretch(self, agent_id: str, span: SourceSpan) -> _SessionSpan:
        scope = Scope(agent_id=agent_id, session_id=span.session_id)
        session = reads.session(self._connection, scope)
        number = reads.session_number(self._connection, scope)
        if session is None or number is None:
            raise StoreError(f"agent {agent_id!r} has no session {span.session_id!r}: nothing can stand for it")
        if not 1 <= span.first_seq <= span.last_seq <= session.last_seq:
            raise StoreError(
                f"{span.first_seq} to {span.last_seq} is no stretch of session {span.session_id!r}, "
                f"which has messages 1 to {session.last_seq}"
            )
        return _SessionSpan(number, span.first_seq, span.last_seq)

    def _known(self, agent_id: str, draft: SummaryDraft, stretches: Sequence[_SessionSpan]) -> Summary | None:
        """The summary of the same level and spans. One that shares only some of them is an error."""
        for stretch in stretches:
            row = self._connection.execute(_ENDS_NEXT, (stretch.session, draft.level, stretch.first_seq)).fetchone()
            if row is None or row[1] > stretch.last_seq:
                continue
            (met,) = summary_reads.summaries_at(self._connection, agent_id, [row[0]])
            if _in_order(met.draft.spans) == _in_order(draft.spans):
                return met
            raise StoreError(
                f"{met.id} stands for some of messages {stretch.first_seq} to {stretch.last_seq} already: "
                "summaries of one level do not overlap"
            )
        return None

    def _sources(self, agent_id: str, ids: Sequence[str]) -> list[int]:
        agent = agent_number(self._connection, agent_id)
        found = []
        for id_ in dict.fromkeys(ids):
            number = summary_reads.summary_number(self._connection, agent, id_)
            if number is None:
                raise StoreError(f"agent {agent_id!r} has no summary {id_}: it cannot be merged")
            if self._connection.execute("SELECT parent FROM summaries WHERE summary = ?", (number,)).get is not None:
                raise StoreError(f"summary {id_} is merged already: look at what `unmerged` gives now")
            found.append(number)
        return found

    # ── what models were paid for ──

    def add_completion(self, agent_id: str, completion: Completion, at: datetime) -> None:
        with to_be_read_again("an answer of a model"):
            answer = msgspec.json.encode(completion).decode()
            summary_reads.completion_decoder.decode(answer)
        agent, usage = self._agent(agent_id), completion.usage
        self._connection.execute(
            "INSERT INTO completions (agent, fingerprint, at, answer) VALUES (?,?,?,?) "
            "ON CONFLICT (agent, fingerprint) DO NOTHING",
            (agent.agent, completion.fingerprint, micros(at), answer),
        )
        if self._connection.changes():
            day = at.astimezone(UTC).date().isoformat()
            used = usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.dollars
            self._connection.execute(_ADD_SPENDING, (day, agent.agent, completion.summarizer, *used))

    # ── contexts that were handed out ──

    def hand_over(self, scope: Scope, context: HandedContext, payload: bytes, event: AuditDraft | None) -> None:
        self._check(scope.agent_id)
        session = reads.session_number(self._connection, scope)
        if session is None:
            raise StoreError(f"agent {scope.agent_id!r} has no session {scope.session_id!r}: nothing to hand over")
        generation = self._connection.execute("SELECT generation FROM sessions WHERE session = ?", (session,)).get
        if context.generation != generation + (context.kind == "swap"):
            raise StoreError(
                f"session {scope.session_id!r} is at generation {generation}, so {context.generation} cannot be "
                "the next: make the context again"
            )
        self._connection.execute(
            "INSERT INTO contexts (session, generation, at, payload) VALUES (?,?,?,?)",
            (session, context.generation, micros(context.at), payload),
        )
        self._connection.execute("UPDATE sessions SET generation = ? WHERE session = ?", (context.generation, session))
        if event is not None:
            self._chain(self._agent(scope.agent_id), event, now())

    # ── notes of a session ──

    def set_session_note(self, scope: Scope, name: str, value: str | None) -> bool:
        """Whether there is such a session."""
        self._check(scope.agent_id)
        session = reads.session_number(self._connection, scope)
        if session is None:
            return False
        if value is None:
            self._connection.execute("DELETE FROM session_notes WHERE session = ? AND name = ?", (session, name))
            return True
        self._connection.execute(
            "INSERT INTO session_notes (session, name, value) VALUES (?,?,?) "
            "ON CONFLICT (session, name) DO UPDATE SET value = excluded.value",
            (session, name, value),
        )
        return True


def packed(context: HandedContext) -> bytes:
    """As it is kept. Takes milliseconds for a large one, so never in the writer thread."""
    with to_be_read_again("a context"):
        data = msgspec.json.encode(context)
        summary_reads.context_decoder.decode(data)
    return zlib.compress(data, level=1)  # six times as quick as the usual


def _readable(draft: SummaryDraft) -> tuple[str, SummaryDraft]:
    """As it is kept, and as it will be read."""
    with to_be_read_again("a summary"):
        data = msgspec.json.encode(draft).decode()
        return data, summary_reads.draft_decoder.decode(data)


@contextmanager
def to_be_read_again(what: str) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        raise StoreError(
            f"{what} could not be read again ({type(error).__name__}: {error}): nothing was kept"
        ) from error


def _with_id(event: AuditDraft, id_: str) -> AuditDraft:
    return msgspec.structs.replace(event, details=event.details | {"id": id_})


def _in_order(spans: Sequence[SourceSpan]) -> list[SourceSpan]:
    return sorted(spans, key=lambda span: (span.session_id, span.first_seq))
