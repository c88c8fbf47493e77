"""A provider that answers as it was told to, and remembers what it was asked."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from offbook import Client
from offbook.model.summary import CompressionEstimate, SourceSpan, SummaryView, Usage
from offbook.model.types import now

EMPTY_COUNTS = {"messages": 0, "chars": 0, "sessions": 0, "noise": 0, "duplicates": 0, "conflicts": 0}


class Answering:
    """Each verb answers in turn, the last answer for ever. An answer that is an error is raised."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._answers: dict[str, list[Any]] = {}
        monkeypatch.setattr(Client, "call", lambda _, verb, body=None: self._answer(verb, body or {}))
        monkeypatch.setattr(Client, "status", lambda _, agent=None: self._answer("status", {"agentId": agent}))

    def with_answers(self, verb: str, *answers: Any) -> None:
        self._answers[verb] = list(answers)

    def bodies(self, verb: str) -> list[dict[str, Any]]:
        return [body for each, body in self.asked if each == verb]

    def _answer(self, verb: str, body: dict[str, Any]) -> Any:
        self.asked.append((verb, body))
        answers = self._answers[verb]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return msgspec.to_builtins(answer)


def status(counts: dict[str, int] | None = None, *, waiting: int = 0, dollars: float = 0.0, **more: Any) -> Any:
    """What `status` answers of an agent with so many summaries."""
    summaries = {"counts": counts or {}, "waiting": waiting, "summarizers": ["extractive"]}
    return {
        "agentId": "main",
        "version": "1",
        "store": "sqlite",
        "startedAt": "2026-01-31T12:00:00Z",
        "counts": EMPTY_COUNTS | {"redactions": 0, "blobs": 0, "auditEvents": 0},
        "tiers": {"hot": 0, "warm": 0, "cold": 0},
        "pinned": 0,
        "retrievals": 0,
        "index": {"entries": 0, "embedded": 0, "waiting": 0},
        "summaries": summaries | more,
        "backlog": waiting,
        "costs": {"tokens": 0, "dollars": dollars},
        "capture": {"sent": 0, "received": 0, "missing": 0, "waiting": 0, "clients": []},
        "sessions": [],
        "agents": ["main"],
    }


def summary(number: int, **fields: Any) -> SummaryView:
    given = {
        "id": f"L1-{number:04}",
        "level": 1,
        "spans": [SourceSpan(session_id="chat", first_seq=number, last_seq=number + 9)],
        "sources": [],
        "text": "They met in Lisbon.\nAda is the cat.",
        "source_messages": 10,
        "source_tokens": 2_000,
        "tokens": 500,
        "summarizer": "extractive",
        "prompt_version": "1",
        "fingerprint": "f",
        "usage": Usage(),
        "first_at": now(),
        "last_at": now(),
        "made_at": now(),
        "lost": 0,
        "losses": [],
    }
    return SummaryView(**(given | fields))


def estimate(**fields: Any) -> CompressionEstimate:
    given: dict[str, Any] = {
        "agent_id": "main",
        "sessions": 2,
        "waiting": 0,
        "source_tokens": 12_000,
        "summaries": 4,
        "input_tokens": 0,
        "output_tokens": 0,
        "dollars": 0.0,
        "summarizer": "extractive",
        "counts": {"L1": 1},
    }
    return CompressionEstimate(**(given | fields))
