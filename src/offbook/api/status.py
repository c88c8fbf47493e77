"""The verbs of what is known of an agent's memory, and of keeping it: counts, settings, audit, index, maintenance."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

import msgspec

from offbook.api.background import Background
from offbook.ingest.entries import in_utc
from offbook.ingest.scope import checked_session
from offbook.log.audit_chain import GENESIS, end_is_whole
from offbook.log.store import CROSS, Store
from offbook.model.lesson import LESSONS_SESSION
from offbook.model.maintenance import MaintenanceReport
from offbook.model.settings import Settings, as_document, told_origins
from offbook.model.status import (
    AuditReport,
    CaptureReport,
    Costs,
    Health,
    IndexStatus,
    Status,
    SummaryStatus,
    TaskHealth,
    TierHours,
)
from offbook.model.turn import SettingsView
from offbook.model.types import EMBEDDED, AuditDraft, AuditHead, Caller, Scope, now
from offbook.model.version import VERSION

EVENTS_VERIFIED = 1_000
"""How much of the chain the `audit` verb verifies: as much as it can show. All of it: `offbook audit --verify`."""
SESSIONS_IN_STATUS = 20
NO_ORIGINS: Mapping[str, str] = MappingProxyType({})


class StatusService:
    def __init__(
        self, store: Store, settings: Settings, background: Background, origins: Mapping[str, str] = NO_ORIGINS
    ) -> None:
        self._store = store
        self._settings = settings
        self._background = background
        self._origins = origins
        self._started_at = now()

    # ── what is known ──

    async def ping(self, *, by: Caller = EMBEDDED) -> Health:
        """The backlog is that of the agents that the caller may act for."""
        started = time.perf_counter()
        await self._store.ping()
        return Health(
            ok=True,
            latency_ms=round((time.perf_counter() - started) * 1_000, 3),
            version=VERSION,
            store=self._store.kind,
            model=self._background.embedders.name,
            backlog=self._background.runner.backlog(by.agents),
        )

    async def status(self, agent_id: str, *, by: Caller = EMBEDDED) -> Status:
        counts = await self._store.counts(agent_id)
        captures = await self._store.captures(agent_id)
        newest = await self._store.sessions(agent_id, limit=SESSIONS_IN_STATUS + 1)
        sessions = [session for session in newest if session.session_id != LESSONS_SESSION][:SESSIONS_IN_STATUS]
        if await self._store.session(Scope(agent_id=agent_id, session_id=LESSONS_SESSION)) is not None:
            counts = msgspec.structs.replace(counts, sessions=counts.sessions - 1)  # nobody talked there
        index, tiers = await self._background.status(agent_id)
        holds = await self._store.hold_counts(agent_id)
        ttl = self._settings.for_agent(agent_id).ttl
        spent = await self._store.spent(agent_id)
        backups, unreadable = await asyncio.to_thread(self._background.backups_of, agent_id)
        await self._store.record(agent_id, AuditDraft(verb="status", actor=by.name))
        return Status(
            agent_id=agent_id,
            version=VERSION,
            store=self._store.kind,
            started_at=self._started_at,
            counts=counts,
            tiers=tiers,
            pinned=holds.pinned,
            retrievals=holds.retrievals,
            index=index,
            backlog=index.waiting + self._background.to_compress(agent_id),
            costs=Costs(tokens=spent.input_tokens + spent.output_tokens, dollars=spent.dollars),
            summaries=await self._summary_status(agent_id, by),
            capture=CaptureReport(
                sent=sum(capture.sent for capture in captures),
                received=sum(capture.received for capture in captures),
                missing=sum(capture.missing for capture in captures),
                waiting=sum(capture.waiting for capture in captures),
                clients=captures,
            ),
            sessions=sessions,
            agents=await self._visible_agents(by),
            hot_hours=TierHours(base=ttl.base_hours, bump=ttl.bump_hours, most=ttl.max_hours),
            maintenance=self._task_health(agent_id, by),
            lessons=await self._store.lesson_counts(agent_id),
            forgets=self._background.forgetting.count(agent_id) or 0,
            encrypted=self._background.is_encrypted,
            backups=backups,
            unreadable_backups=unreadable,
        )

    async def config(self, agent_id: str, *, by: Caller = EMBEDDED) -> SettingsView:
        """The settings that hold for the agent."""
        await self._store.record(agent_id, AuditDraft(verb="config", actor=by.name))
        return SettingsView(
            agent_id=agent_id,
            settings=as_document(self._settings.for_agent(agent_id)),
            origins=told_origins(self._origins, agent_id),
        )

    async def audit(
        self,
        agent_id: str,
        *,
        session_id: str | None = None,
        since: datetime | int | None = None,
        limit: int = 100,
        before: int | None = None,
        verbs: Sequence[str] | None = None,
        by: Caller = EMBEDDED,
    ) -> AuditReport:
        """The newest events (after `since`, a time or a sequence number), and whether the chain's end verifies."""
        checked_session(session_id)
        earliest = in_utc(since, "since") if isinstance(since, datetime) else None
        await self._store.record(
            agent_id, AuditDraft(verb="audit", actor=by.name, session_id=session_id, details={"limit": limit})
        )
        # Noted before the events are read: whatever is noted then must be among them or before them.
        noted = await self._store.noted_audit_head(agent_id)
        end = await self._store.newest_audit_events(agent_id, limit=EVENTS_VERIFIED)
        # None at all: of a stranger, on a full disk.
        head = AuditHead(seq=end[-1].seq, hash=end[-1].hash) if end else GENESIS
        is_whole = not end or await asyncio.to_thread(end_is_whole, end, noted)
        if isinstance(since, int) and before is None and verbs is None:
            events = await self._store.audit_events(agent_id, session_id=session_id, after_seq=since, limit=limit)
        else:
            events = await self._store.newest_audit_events(
                agent_id, session_id=session_id, limit=limit, before_seq=before, verbs=verbs
            )
            after_seq = since if isinstance(since, int) else 0
            events = [each for each in events if each.seq > after_seq and (earliest is None or each.at >= earliest)]
        return AuditReport(events=events, head=head, verified=is_whole)

    # ── what keeps it ──

    async def reindex(self, agent_id: str, *, embeddings: bool = False, by: Caller = EMBEDDED) -> IndexStatus:
        """Make the agent's search index anew from the log, in the background; with `embeddings` the vectors too."""
        await self._store.record(
            agent_id, AuditDraft(verb="reindex", actor=by.name, details={"embeddings": embeddings})
        )
        return await self._background.rebuild(agent_id, embeddings=embeddings)

    async def maintain(
        self, agent_id: str, *, tasks: Sequence[str] | None = None, by: Caller = EMBEDDED
    ) -> MaintenanceReport:
        """Look after the agent's memory now, and say what was done: all tasks, or those named."""
        runs = await self._background.runner.now(agent_id, tasks)
        failed = sorted({run.task for run in runs if run.error is not None})
        details = {"tasks": sorted({run.task for run in runs})} | ({"failed": failed} if failed else {})
        await self._store.record(agent_id, AuditDraft(verb="maintain", actor=by.name, details=details))
        return MaintenanceReport(agent_id=agent_id, runs=runs, health=self._task_health(agent_id, by))

    async def _summary_status(self, agent_id: str, by: Caller) -> SummaryStatus:
        """What models have used today is counted for all agents together, so it is for who may act for all."""
        status = await self._background.summary_status(agent_id)
        return status if by.agents is None else msgspec.structs.replace(status, spending=None)

    def _task_health(self, agent_id: str, by: Caller) -> list[TaskHealth]:
        """Whoever may act for some agents only does not see how those of others are."""
        return self._background.runner.health(agent_id, with_others=by.agents is None)

    async def _visible_agents(self, by: Caller) -> list[str]:
        """Those of whom there is anything. A question makes an agent, too, with the event that it was asked: a name
        that was mistyped is none that anybody has to see."""
        decided = {name for value in ("on", "off") for name in await self._store.agents_with_note(CROSS, value)}
        visible = [agent for agent in await self._store.agents() if by.may_act_for(agent)]
        return [agent for agent in visible if agent in decided or (await self._store.counts(agent)).sessions]
