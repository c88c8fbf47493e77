"""The verbs of contexts and summaries, as both clients ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from offbook.client.async_client import AsyncClient
from offbook.client.blocking import Client
from offbook.model.errors import ProviderRefused
from offbook.model.summary import Usage
from tests.unit.client.fake_provider import WRONG_SHAPE, FakeProvider

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
SPAN = {"sessionId": "s", "firstSeq": 1, "lastSeq": 2}
SAID = {"role": "user", "content": "The ferry is called Aurora."}
AT = "2026-01-02T03:04:05Z"
SUMMARY = {
    "id": "L1-0001",
    "level": 1,
    "spans": [SPAN],
    "sources": [],
    "text": "They: ferry called Aurora",
    "sourceMessages": 2,
    "sourceTokens": 40,
    "tokens": 6,
    "summarizer": "extractive",
    "promptVersion": "1",
    "fingerprint": "f",
    "usage": {},
    "firstAt": AT,
    "lastAt": AT,
    "madeAt": AT,
    "lost": 0,
    "losses": [],
}
JOB = {"id": "j1", "agentId": "main", "messages": [SAID], "stable": 1, "maxOutputTokens": 200, "leaseSeconds": 60.0}
ANSWERS: dict[str, dict[str, Any]] = {
    "swap": {
        "swapped": True,
        "reason": "due",
        "generation": 3,
        "messages": [SAID],
        "tokensBefore": 900,
        "tokensAfter": 400,
        "ledger": {"verbatim": [{"kind": "verbatim", "firstSeq": 1, "lastSeq": 1, "chars": 9}], "droppedCount": 2},
        "tookMs": 2.5,
    },
    "expand": {"spans": [SPAN], "messages": [{"sessionId": "s", "seq": 1, "receivedAt": AT, "message": SAID}]},
    "summaries": {"summaries": [SUMMARY], "next": "L1-0001"},
    "compress": {
        "agentId": "main",
        "sessions": 1,
        "waiting": 1,
        "sourceTokens": 9,
        "summaries": 1,
        "inputTokens": 0,
        "outputTokens": 0,
        "dollars": 0.0,
        "summarizer": "extractive",
        "counts": {"1": 1},
    },
    "replay": {
        "sessionId": "s",
        "agentId": "main",
        "at": AT,
        "generation": 3,
        "kind": "swap",
        "handedAt": AT,
        "memory": "",
        "messages": [SAID],
        "lastSeq": 1,
        "isExact": True,
        "why": [{"at": AT, "verb": "swap", "actor": "owner", "details": {}}],
    },
    "jobs/claim": {"job": JOB},
    "jobs/complete": {"ok": True},
    "jobs/fail": {"ok": True},
}


class Provider(FakeProvider):
    def _answer(self, request: Any) -> tuple[int, Any]:
        if request.verb in ANSWERS:
            return 200, ANSWERS[request.verb] | self.extra_fields
        return super()._answer(request)


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OFFBOOK_URL", "OFFBOOK_SOCKET", "OFFBOOK_TOKEN", "OFFBOOK_AGENT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OFFBOOK_HOME", str(tmp_path))


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[FakeProvider]:
    with Provider(socket=tmp_path / "offbook.sock") as provider:
        yield provider


async def test_each_verb_asks_for_what_it_is_given_and_gives_values(provider: FakeProvider) -> None:
    async with AsyncClient(agent_id="main") as client:
        swap = await client.swap("s", 900, 1_000)
        await client.swap("s", 900, 1_000, force=True, agent_id="other")
        expansion = await client.expand("L1-0001")
        await client.expand(span=(3, 9), session_id="s", after="0:4", limit=2)
        page = await client.summaries()
        await client.summaries(level=2, session_id="s", before="L2-0007", limit=5)
        estimate = await client.compress()
        await client.compress("s", dry_run=True)
        replay = await client.replay("s", NOON)
        await client.replay("s", "2026-11-15T12:00:00Z")
        job = await client.claim_job(wait_ms=50)
        await client.complete_job("j1", "They: hi", usage=Usage(input_tokens=7))
        await client.fail_job("j1", "too long")
        await client.fail_job("j1")
    assert (swap.swapped, swap.generation, swap.messages[0].content) == (True, 3, "The ferry is called Aurora.")
    assert (swap.ledger.verbatim[0].last_seq, swap.ledger.dropped_count, swap.ledger.summaries) == (1, 2, [])
    assert (expansion.messages[0].seq, expansion.spans[0].last_seq, expansion.next) == (1, 2, None)
    assert (page.summaries[0].id, page.next) == ("L1-0001", "L1-0001")
    assert (estimate.counts, replay.why[0].verb, replay.is_exact) == ({"1": 1}, "swap", True)
    assert job is not None
    assert (job.id, job.stable) == ("j1", 1)
    main = {"agentId": "main"}
    at = {**main, "sessionId": "s", "at": "2026-11-15T12:00:00Z"}
    used = {"sessionId": "s", "usedTokens": 900, "contextWindow": 1_000}
    span = {"firstSeq": 3, "lastSeq": 9}
    usage = {"inputTokens": 7, "cachedTokens": 0, "outputTokens": 0, "dollars": 0.0}
    assert [(request.verb, request.body) for request in provider.requests] == [
        ("swap", {**main, **used}),
        ("swap", {**used, "agentId": "other", "force": True}),
        ("expand", {**main, "summaryId": "L1-0001", "limit": 100}),
        ("expand", {**main, "sessionId": "s", "span": span, "after": "0:4", "limit": 2}),
        ("summaries", {**main, "limit": 20}),
        ("summaries", {**main, "sessionId": "s", "level": 2, "before": "L2-0007", "limit": 5}),
        ("compress", main),
        ("compress", {**main, "sessionId": "s", "dryRun": True}),
        ("replay", at),
        ("replay", at),
        ("jobs/claim", {**main, "waitMs": 50}),
        ("jobs/complete", {**main, "jobId": "j1", "text": "They: hi", "usage": usage}),
        ("jobs/fail", {**main, "jobId": "j1", "reason": "too long"}),
        ("jobs/fail", {**main, "jobId": "j1"}),
    ]


def test_the_blocking_client_does_the_same(provider: FakeProvider) -> None:
    with Client(agent_id="main") as client:
        assert client.swap("s", 900, 1_000).generation == 3
        assert client.expand("L1-0001").messages[0].seq == 1
        assert client.summaries(level=1).summaries[0].level == 1
        assert client.compress(dry_run=True).waiting == 1
        assert client.replay("s", NOON).generation == 3
        job = client.claim_job()
        assert job is not None
        client.complete_job(job.id, "text")
        client.fail_job(job.id)
        provider.plan.append(WRONG_SHAPE)
        with pytest.raises(ProviderRefused):
            client.swap("s", -1, 0)


async def test_a_newer_provider_is_understood_and_no_job_is_none(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.extra_fields = {"newField": {"a": 1}}
    monkeypatch.setitem(ANSWERS, "jobs/claim", {"job": None})
    async with AsyncClient() as client:
        assert (await client.swap("s", 900, 1_000)).ledger.dropped_count == 2
        assert (await client.summaries()).summaries[0].usage == Usage()
        assert await client.claim_job() is None
