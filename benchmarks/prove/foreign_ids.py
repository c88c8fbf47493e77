"""Requests that name what belongs to another agent: every field of every verb that can name something of somebody's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from benchmarks.prove.planted import Fields, Planted
from offbook.api.fields import Request
from offbook.api.verbs import VERBS

Values = Callable[[Planted], Any]


class Foreign(NamedTuple):
    """One request with what is another agent's. `is_own`: it is made as one's own agent, and only the id is foreign."""

    verb: str
    kind: str
    body: Fields
    is_own: bool


def _span(planted: Planted) -> Fields:
    return {"sessionId": planted.session_id, "firstSeq": 1, "lastSeq": planted.last_seq}


def _followed(theirs: Planted) -> Any:
    return {"sessionId": theirs.session_id, "seq": 1, "at": "2026-01-01T00:00:00Z"}


NAMING: dict[str, list[tuple[str, Values]]] = {
    "sessionId": [("session", lambda theirs: theirs.session_id)],
    "parentSessionId": [("session", lambda theirs: theirs.session_id)],
    "span": [("session", _span)],
    "entryId": [("entry", lambda theirs: theirs.entry_id)],
    "byId": [("entry", lambda theirs: theirs.later_entry_id)],
    "entryIds": [("entry", lambda theirs: [theirs.entry_id, theirs.later_entry_id])],
    "messageIds": [("message", lambda theirs: [theirs.message_id])],
    "summaryId": [("summary", lambda theirs: theirs.summary_id), ("lesson", lambda theirs: theirs.lesson_id)],
    "lessonId": [("lesson", lambda theirs: theirs.lesson_id)],
    "receipt": [("receipt", lambda theirs: theirs.receipt)],
    "receiptId": [("receipt", lambda theirs: theirs.receipt_id)],
    "jobId": [("job", lambda theirs: theirs.job_id)],
    "afterSeq": [("message", lambda theirs: theirs.last_seq - 1)],
    "since": [("event", lambda theirs: 1)],
    "records": [("record", lambda theirs: theirs.records)],
    "follows": [("record", _followed)],
    "matching": [("words", lambda theirs: theirs.words[0])],
    "keyword": [("words", lambda theirs: theirs.words[0])],
    "query": [("words", lambda theirs: f"What of {theirs.words[0]}?")],
    "prompt": [("words", lambda theirs: f"What of {theirs.words[0]}?")],
    "ids missing": [("message", lambda theirs: [theirs.message_id])],
    "ids summaries": [("summary", lambda theirs: [theirs.summary_id])],
    "before summaries": [("summary", lambda theirs: "L1-9999")],
    "before lessons": [("lesson", lambda theirs: "lesson-9999")],
    "before audit": [("event", lambda theirs: 10_000)],
    "after export": [("record", lambda theirs: theirs.next_export)],
    "after expand": [("message", lambda theirs: "0:1")],
}
"""By field, or by field and verb where the same word means different things."""
# fmt: off
NAMING_NOTHING = {
    "message", "messages", "limit", "newest", "waitMs", "maxChars", "usedTokens", "contextWindow", "force",
    "targetTokens", "tokenRatio", "at", "scope", "includeSuperseded", "explain", "preview", "depth", "currentTokens",
    "swapAtTokens", "swapToTokens", "deadlineMs", "reason", "level", "dryRun", "again", "text", "usage", "kind",
    "status", "verdict", "secrets", "everything", "enabled", "embeddings", "tasks", "done", "days", "verbs",
    "newContext", "generation",
    "after sessions",
}
# fmt: on
"""What cannot name anything of anybody's: sizes, switches, what is said."""
ONE_OF = {
    "forget": {"entryIds", "sessionId", "matching", "secrets", "everything"},
    "expand": {"summaryId", "span", "sessionId"},
    "forget/verify": {"receipt", "receiptId"},
    "pin": {"keyword", "sessionId", "entryIds", "messageIds"},
    "unpin": {"keyword", "sessionId", "entryIds", "messageIds"},
}
"""Of these one is given at a time."""


def fields_of(request: type[Request]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(request) if field.encode_name != "agentId"]


def kinds_of(verb: str, field: str) -> list[tuple[str, Values]] | None:
    """Which kinds of ids the field can hold; None where that is not known."""
    named = NAMING.get(f"{field} {verb}") or NAMING.get(field)
    if named:
        return named
    return [] if NAMING_NOTHING & {field, f"{field} {verb}"} else None


def unknown_fields() -> list[str]:
    """A field that came since: whether it can name what is another's has to be said above."""
    return [
        f"{verb.name}: {field}"
        for verb in VERBS.values()
        for field in fields_of(verb.request)
        if kinds_of(verb.name, field) is None
    ]


def requests(ours: dict[str, Fields], theirs: Planted, default_agent: str) -> Iterator[Foreign]:
    """`ours` are valid requests of the agent that asks."""
    for verb, fields in ours.items():
        if not issubclass(VERBS[verb].request, Request) or verb == "ping":
            continue
        yield Foreign(verb, "agent", {**fields, "agentId": theirs.agent_id}, False)
        yield Foreign(verb, "agent", {**fields, "agentId": default_agent}, False)
        if "sessionId" in fields_of(VERBS[verb].request):
            named = _with(verb, fields, "sessionId", f"agent:{theirs.agent_id}:main")
            named.pop("agentId")
            yield Foreign(verb, "agent", named, False)
        for field in fields_of(VERBS[verb].request):
            for kind, value in kinds_of(verb, field) or []:
                body = _with(verb, fields, field, value(theirs))
                if field == "messageIds":
                    body["sessionId"] = theirs.session_id
                is_own = field != "receipt"  # it names its agent
                yield Foreign(verb, kind, body, is_own)
                yield Foreign(verb, kind, {**body, "agentId": theirs.agent_id}, False)


def _with(verb: str, fields: Fields, field: str, value: Any) -> Fields:
    others = ONE_OF.get(verb, set()) if field in ONE_OF.get(verb, ()) else set()
    return {name: given for name, given in fields.items() if name not in others} | {field: value}
