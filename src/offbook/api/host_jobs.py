"""The verbs of the jobs that the host's own model does: summaries to write."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from offbook.api.fields import LONGEST_WAIT_SECONDS
from offbook.api.followers import Followers
from offbook.ingest.fair_threads import LARGE_BYTES
from offbook.ingest.secret_scan import redact_text
from offbook.log.store import Store
from offbook.model.errors import NotFound
from offbook.model.summary import ClaimedJob, Usage
from offbook.model.types import EMBEDDED, AuditDraft, Caller
from offbook.models.summarizers.host import HostSummarizer

CLAIM_PAUSE_SECONDS = 0.1
"""How often a host that waits for a job is looked for one."""


class HostJobs:
    def __init__(self, store: Store, host: HostSummarizer, followers: Followers) -> None:
        self._store = store
        self._host = host
        self._followers = followers

    async def claim(self, agent_id: str, *, wait_seconds: float = 0.0, by: Caller = EMBEDDED) -> ClaimedJob:
        """The host's next job, if there is one within `wait_seconds`."""
        deadline = time.monotonic() + min(wait_seconds, LONGEST_WAIT_SECONDS)
        # No thread waits for it: there are few of them, and hosts that wait would leave none for the other verbs.
        while (job := self._host.claim(agent_id)) is None:
            if time.monotonic() >= deadline or self._followers.is_stopping:
                break
            await asyncio.sleep(CLAIM_PAUSE_SECONDS)
        await self._record(agent_id, "jobs/claim", by, {"job": job.id if job else None})
        return ClaimedJob(job=job)

    async def complete(
        self, agent_id: str, job_id: str, text: str, *, usage: Usage | None = None, by: Caller = EMBEDDED
    ) -> None:
        said, _ = await asyncio.to_thread(redact_text, text) if len(text) > LARGE_BYTES else redact_text(text)
        if not self._host.complete(agent_id, job_id, said, usage):
            raise NotFound(f"there is no job {job_id!r} to complete: it was given to somebody else, or given up")
        await self._record(agent_id, "jobs/complete", by, {"job": job_id, "chars": len(text)})

    async def fail(self, agent_id: str, job_id: str, *, reason: str = "", by: Caller = EMBEDDED) -> None:
        if not self._host.fail(agent_id, job_id, redact_text(reason)[0]):
            raise NotFound(f"there is no job {job_id!r} to fail: it was given to somebody else, or given up")
        await self._record(agent_id, "jobs/fail", by, {"job": job_id})

    async def _record(self, agent_id: str, verb: str, by: Caller, details: dict[str, Any]) -> None:
        await self._store.record(agent_id, AuditDraft(verb=verb, actor=by.name, details=details))
