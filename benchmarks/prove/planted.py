"""An agent with something of every kind, and a valid request of every verb about it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.acceptance.daemon import UNHURRIED, WITHOUT_MODEL, Daemon

from offbook.model.home import TOKEN_PREFIX, BoundToken, Home, token_digest
from offbook.model.types import now

SETTLING_SECONDS = 120.0
LARGE_CHARS = 70_000
"""Kept as a file beside the log."""
TALK_MESSAGES = 40
ENVIRON = {
    **WITHOUT_MODEL,
    **UNHURRIED,
    "OFFBOOK_CHUNK_TOKENS": "200",
    "OFFBOOK_PRUNING_BOUNDARY_TOKENS": "100",
    "OFFBOOK_SUMMARY_TARGET_TOKENS": "80",
    "OFFBOOK_MERGE_THRESHOLD": "3",
    "OFFBOOK_SUMMARIZER_ORDER": "host",
}
"""Summaries of two levels come of few messages. A host writes those of an agent that asks for jobs, nobody else's."""
HOST_SUFFIX = "-host"

Fields = dict[str, Any]


class Planted(NamedTuple):
    """What there is of one agent. `words` occur in nothing but what this agent said."""

    agent_id: str
    session_id: str
    words: tuple[str, ...]
    message_id: str
    entry_id: str
    later_entry_id: str
    summary_id: str
    lesson_id: str
    receipt_id: str
    receipt: Fields
    last_seq: int
    records: list[Fields]
    next_export: str | None
    job_id: str = ""

    @property
    def host(self) -> str:
        """The agent beside it whose host writes its summaries."""
        return self.agent_id + HOST_SUFFIX


def bound_token(home: Path, name: str, *agents: str) -> str:
    """As `offbook token create` makes one."""
    secret = f"{TOKEN_PREFIX}{name}-of-a-trial-{'x' * 32}"
    made = BoundToken(name=name, digest=token_digest(secret), agents=list(agents), created_at="2026-01-01T00:00:00Z")
    folder = Home(home)
    folder.write_bound_tokens([*folder.read_bound_tokens(), made])
    return secret


def plant(daemon: Daemon, agent_id: str, word: str) -> Planted:
    """`word` is in everything that is said; the daemon is at rest afterwards."""
    owner = {"agentId": agent_id}
    scope = {**owner, "sessionId": f"talk-{agent_id}"}
    words = tuple(f"{word}{part}" for part in ("talk", "large", "rule", "gone"))
    asked(daemon, "onMessage", **scope, messages=_talk(words, agent_id))
    asked(daemon, "onMessage", **owner, sessionId=f"other-{agent_id}", message=_said(f"Forget {words[3]}.", "gone-1"))
    settled(daemon)
    lessons = _until(lambda: asked(daemon, "lessons", **owner)["lessons"], f"no lesson was learnt of {agent_id}")
    summaries = _until(lambda: asked(daemon, "summaries", **owner)["summaries"], f"no summary of {agent_id}")
    receipt = asked(daemon, "forget", **owner, matching=words[3], reason="a trial")["receipt"]
    found = asked(daemon, "recall", **scope, query=words[0], limit=10)["entries"]
    page = asked(daemon, "export", **owner, limit=5)
    asked(daemon, "pin", **owner, entryIds=[found[0]["id"]])
    asked(daemon, "prepareTurn", **scope, prompt=f"What of {words[0]}?")
    return Planted(
        agent_id=agent_id,
        session_id=scope["sessionId"],
        words=words[:3],
        message_id=f"{agent_id}-3",
        entry_id=found[0]["id"],
        later_entry_id=found[-1]["id"],
        summary_id=summaries[0]["id"],
        lesson_id=lessons[0]["id"],
        receipt_id=receipt["id"],
        receipt=receipt,
        last_seq=TALK_MESSAGES + 4,
        records=page["records"],
        next_export=page.get("next"),
    )


def _talk(words: tuple[str, ...], prefix: str) -> list[Fields]:
    talk, large, rule, _ = words
    texts = [f"Look at src/module_{number}.py of {talk}, it says E{number}. " * 4 for number in range(TALK_MESSAGES)]
    texts += [
        f"{large} " + f"a page of {large} " * (LARGE_CHARS // (len(large) + 11)),
        f"I prefer {rule} over coffee, always.",
        f"From now on always use {rule} for the invoices.",
        f"My aunt Greta lives in {talk}.",
    ]
    return [_said(text, f"{prefix}-{number}") for number, text in enumerate(texts, 1)]


def _said(text: str, id_: str) -> Fields:
    return {"role": "user", "content": text, "id": id_}


def asked(daemon: Daemon, verb: str, **fields: Any) -> Any:
    reply = daemon.ask(verb, over_socket=True, **fields)
    if reply.status != 200:
        raise AssertionError(f"{verb}: {reply.status} {reply.body[:500]!r}")
    return reply.json()


def settled(daemon: Daemon) -> None:
    _until(lambda: asked(daemon, "ping")["backlog"] == 0, "there is no end of what is to be done in the background")


def _until(found: Callable[[], Any], otherwise: str) -> Any:
    deadline = time.monotonic() + SETTLING_SECONDS
    while not (value := found()):
        if time.monotonic() > deadline:
            raise TimeoutError(otherwise)
        time.sleep(0.05)
    return value


def claim(daemon: Daemon, planted: Planted, *, wait_ms: int = 10_000) -> str:
    """The next summary that a host is to write; `NO_JOB` where there is none, or the provider cannot say."""
    reply = daemon.ask("jobs/claim", over_socket=True, agentId=planted.host, waitMs=wait_ms)
    job = reply.json()["job"] if reply.status == 200 else None
    return str(job["id"]) if job else NO_JOB


def offer_jobs(daemon: Daemon, planted: Planted) -> None:
    """Summaries for a host to write: it is asked for them only once it has asked for some."""
    claim(daemon, planted, wait_ms=0)
    talk = [_said(f"Look at src/page_{number}.py, it says E{number}. " * 4, f"job-{number}") for number in range(30)]
    daemon.ask("onMessage", over_socket=True, agentId=planted.host, sessionId="jobs", messages=talk)


NO_JOB = "job-of-a-trial"


def samples(planted: Planted, job_id: str = NO_JOB) -> dict[str, Fields]:
    """Of every verb a request that a provider in order answers with 200."""
    owner = {"agentId": planted.agent_id}
    scope = {**owner, "sessionId": planted.session_id}
    span = {"sessionId": planted.session_id, "firstSeq": 1, "lastSeq": planted.last_seq}
    return {
        "ping": {},
        "onMessage": {**scope, "message": _said("This is said in the middle of it.", "in-the-middle")},
        "getCompressedContext": {**scope, "maxChars": 400_000},
        "swap": {**scope, "usedTokens": 90_000, "contextWindow": 100_000, "force": True},
        "expand": {**owner, "span": span},
        "summaries": owner,
        "compress": owner,
        "replay": {**scope, "at": now().isoformat()},
        "jobs/claim": {"agentId": planted.host},
        "jobs/complete": {"agentId": planted.host, "jobId": job_id, "text": "They looked at many modules."},
        "jobs/fail": {"agentId": planted.host, "jobId": job_id, "reason": "a trial"},
        "recall": {**scope, "query": "Where does my aunt Greta live?"},
        "prepareTurn": {**scope, "prompt": "Where does my aunt Greta live?"},
        "enrich": {**scope, "query": "Where does my aunt Greta live?"},
        "topics": scope,
        "anchors": scope,
        "state": scope,
        "config": owner,
        "lessons": owner,
        "lessons/judge": {**owner, "lessonId": planted.lesson_id, "verdict": "accept"},
        "pin": {**owner, "entryIds": [planted.entry_id]},
        "unpin": {**owner, "entryIds": [planted.entry_id]},
        "unlink": {**owner, "entryId": planted.entry_id},
        "cross": {**owner, "enabled": False},
        "hooks/pre-compaction": {**scope, "messages": [_said("This is said before it compacts.", "before-it")]},
        "hooks/post-compaction": {**scope, "newContext": "What the host goes on with."},
        "hooks/session-start": scope,
        "hooks/session-end": {**scope, "reason": "idle"},
        "log": {**scope, "limit": 1_000},
        "missing": {**scope, "ids": [planted.message_id]},
        "sessions": owner,
        "activity": owner,
        "entries": {**owner, "entryIds": [planted.entry_id]},
        "status": owner,
        "audit": owner,
        "export": owner,
        "import": {**owner, "records": planted.records},
        "reindex": owner,
        "maintain": owner,
        "forget/verify": {**owner, "receiptId": planted.receipt_id},
        "forget": {**owner, "matching": f"module_7.py of {planted.words[0]}", "reason": "a trial"},
    }
