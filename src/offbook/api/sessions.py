"""The verbs of the record: messages into the log and out of it, and what a host tells of a session's life."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec

from offbook.api.background import Background
from offbook.api.fields import LONGEST_WAIT_SECONDS
from offbook.api.followers import Followers
from offbook.ingest.entries import Intake
from offbook.ingest.scope import checked_key
from offbook.ingest.secret_scan import redact_text
from offbook.log.reading import LogReader
from offbook.log.store import PARENT_NOTE, Store
from offbook.model.errors import WrongShape
from offbook.model.plain_names import is_plain_name
from offbook.model.settings import Settings
from offbook.model.status import CaptureClaim
from offbook.model.types import (
    EMBEDDED,
    MAX_KEY_BYTES,
    AuditDraft,
    Caller,
    CompressedContext,
    Entry,
    LoggedMessage,
    LogPage,
    Mark,
    Message,
    Receipt,
    Scope,
    SessionGaps,
    now,
    session_event,
)

OFF = {"enabled": False}
"""In the audit event of a verb that by the master switch recorded nothing."""


class SessionService:
    def __init__(
        self,
        store: Store,
        settings: Settings,
        background: Background,
        intake: Intake,
        log_reader: LogReader,
        followers: Followers,
    ) -> None:
        self._store = store
        self._settings = settings
        self._background = background
        self._intake = intake
        self._log_reader = log_reader
        self._followers = followers

    # ── the record ──

    async def on_message(
        self,
        scope: Scope,
        messages: Sequence[Message],
        *,
        by: Caller = EMBEDDED,
        claim: CaptureClaim | None = None,
    ) -> Receipt:
        """Take messages into the log. Returns when they are durable."""
        if not messages:
            raise WrongShape("`messages` is empty: send at least one message")
        if not self._is_on(scope):  # what the client says it sent is counted all the same: nothing went missing
            return await self._append(scope, (), session_event("onMessage", by, scope, OFF), claim=claim)
        async with self._intake.entries(scope, messages) as entries:
            return await self._append(scope, entries, session_event("onMessage", by, scope), claim=claim)

    async def log(
        self,
        scope: Scope,
        *,
        after_seq: int = 0,
        limit: int = 100,
        newest: bool = False,
        wait_seconds: float = 0.0,
        by: Caller = EMBEDDED,
    ) -> LogPage:
        """The session's messages after `after_seq`, whole, the first or the newest `limit` of them; waits for the
        next one where there is none yet. A page of large ones ends early: go on from `last_seq`."""
        if newest:
            session = await self._store.session(scope)
            after_seq = max(after_seq, (session.last_seq if session else 0) - limit)
        page = await self._page(scope, after_seq, limit)
        if not page and wait_seconds > 0 and not self._followers.is_stopping:

            async def has_come() -> bool:
                return bool(await self._page(scope, after_seq, 1))

            await self._followers.wait(scope, min(wait_seconds, LONGEST_WAIT_SECONDS), has_come)
            page = await self._page(scope, after_seq, limit)
        lines = await self._log_reader.lines(scope, page)
        last_seq = lines[-1].seq if lines else after_seq
        await self._record(scope, "log", by, {"afterSeq": after_seq, "lastSeq": last_seq, "messages": len(lines)})
        return LogPage(messages=lines, last_seq=last_seq)

    async def missing(self, scope: Scope, ids: Sequence[str], *, by: Caller = EMBEDDED) -> list[str]:
        """Which of these message ids the session does not hold, each once, in the order given: for a host that
        compares its own transcript with the log."""
        if not ids:
            raise WrongShape("`ids` is empty: name at least one message")
        for id_ in ids:
            checked_key(id_, "ids", MAX_KEY_BYTES)
        missing = await self._store.missing(scope, ids)
        await self._record(scope, "missing", by, {"asked": len(ids), "missing": len(missing)})
        return missing

    # ── the life of a session ──

    async def session_start(
        self,
        scope: Scope,
        *,
        max_chars: int | None = None,
        parent_session_id: str | None = None,
        by: Caller = EMBEDDED,
    ) -> CompressedContext | None:
        """What the agent needs to go on with a session after a restart; None where nothing is known of it.

        `parent_session_id`: the session that started this one, of whichever agent. Its name is kept with this one and
        opens nothing.
        """
        if parent_session_id is not None:
            checked_key(parent_session_id, "parentSessionId", MAX_KEY_BYTES)
        if not self._is_on(scope):
            await self._record(scope, "hooks/session-start", by, {"context": None, **OFF})
            return None
        session = await self._store.session(scope)
        if session is None or not session.last_seq:
            event = session_event("hooks/session-start", by, scope, {"context": None})
            await self._store.mark(scope, Mark(kind="start", at=now()), event, parent_session_id=parent_session_id)
            return None
        if parent_session_id is not None:
            # Before the start is marked: its event says what is noted.
            await self._store.set_session_note(scope, PARENT_NOTE, parent_session_id)
        return await self._background.swapping.started(scope, session, max_chars or self._default_chars(scope), by)

    async def session_end(self, scope: Scope, *, reason: str | None = None, by: Caller = EMBEDDED) -> None:
        reason = redact_text(reason)[0] if reason else None
        # The chain is for ever: of a sentence it has none of the words, which can be forgotten.
        # As hosts name why a session ends: `idle`, `reset`.
        said = reason or ""
        is_word = is_plain_name(said, also="_.:/-", most_chars=40) and said[0].isalpha()
        details = {"reason": reason} if is_word else {}
        if not self._is_on(scope):
            await self._record(scope, "hooks/session-end", by, {**details, **OFF})
            return
        event = session_event("hooks/session-end", by, scope, details)
        await self._store.mark(scope, Mark(kind="end", at=now(), reason=reason), event)
        self._background.runner.notify(scope)

    async def pre_compaction(
        self,
        scope: Scope,
        messages: Sequence[Message] | None = None,
        *,
        by: Caller = EMBEDDED,
    ) -> int:
        """Save whatever of the host's context is not in the log yet. Returns how many messages that were."""
        messages = messages or ()
        if not self._is_on(scope):
            await self._record(scope, "hooks/pre-compaction", by, {"given": len(messages), **OFF})
            return 0
        event = session_event("hooks/pre-compaction", by, scope, {"given": len(messages)})
        mark = Mark(kind="pre-compaction", at=now())
        async with self._intake.entries(scope, messages) as entries:
            receipt = await self._append(scope, entries, event, mark=mark, is_context=True)
        return receipt.accepted

    async def post_compaction(self, scope: Scope, new_context: Any = None, *, by: Caller = EMBEDDED) -> None:
        """Note that the host compacted by itself, and what it went on with."""
        encoded = await asyncio.to_thread(msgspec.json.encode, new_context)
        details = {} if new_context is None else {"bytes": len(encoded), "sha256": sha256(encoded).hexdigest()}
        if not self._is_on(scope):
            await self._record(scope, "hooks/post-compaction", by, {**details, **OFF})
            return
        event = session_event("hooks/post-compaction", by, scope, details)
        await self._store.mark(scope, Mark(kind="post-compaction", at=now()), event)

    # ── how ──

    async def take(self, scope: Scope, messages: Sequence[Message], event: AuditDraft) -> Receipt:
        async with self._intake.entries(scope, messages) as entries:
            return await self._append(scope, entries, event)

    async def _append(
        self,
        scope: Scope,
        entries: Sequence[Entry],
        event: AuditDraft,
        *,
        claim: CaptureClaim | None = None,
        mark: Mark | None = None,
        is_context: bool = False,
    ) -> Receipt:
        receipt = await self._store.append(
            scope,
            entries,
            event,
            gaps=self._gaps(scope.agent_id),
            claim=claim,
            mark=mark,
            is_context=is_context,
        )
        self._followers.wake(scope)
        self._background.runner.notify(scope)
        return receipt

    async def _record(self, scope: Scope, verb: str, by: Caller, details: dict[str, Any]) -> None:
        await self._store.record(scope.agent_id, session_event(verb, by, scope, details))

    async def _page(self, scope: Scope, after_seq: int, limit: int) -> list[LoggedMessage]:
        return await self._store.messages(scope, after_seq=after_seq, limit=limit)

    def _is_on(self, scope: Scope) -> bool:
        return self._settings.for_agent(scope.agent_id).enabled

    def _gaps(self, agent_id: str) -> SessionGaps:
        session = self._settings.for_agent(agent_id).session
        return SessionGaps(interrupted=session.interrupted_gap, new=session.new_session_gap)

    def _default_chars(self, scope: Scope) -> int:
        """The share of the window a swapped-in context may take (B6), at four characters a token."""
        settings = self._settings.for_agent(scope.agent_id)
        return int(settings.token_budget.context_window * settings.memory.compaction.target_size * 4)
