"""What a client can show and attach by itself: sessions, summaries, lessons, each at an address of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from offbook.api.mcp import answer_text
from offbook.api.mcp.asking import CONTEXT_CHARS, Memory
from offbook.model.errors import NotFound, ProviderUnavailable
from offbook.model.plain_names import level_and_number

SCHEME = "offbook://"
SUMMARIES_SHOWN = 20
LESSONS_SHOWN = 100
LONGEST_NUMBER = 15
HELD = ["learnt", "accepted", "edited"]
"""The lessons that hold: all but those a person rejected."""


class Listed(NamedTuple):
    address: str
    name: str
    description: str


LISTED = (
    Listed("offbook://sessions", "sessions", "The newest conversations, and how long each is."),
    Listed("offbook://summaries", "summaries", "The newest summaries of what was said."),
    Listed("offbook://lessons", "lessons", "What was learnt: decisions, corrections, preferences, procedures, facts."),
)
TEMPLATES = (
    Listed("offbook://sessions/{id}", "session", "A conversation, what is older of it summarised."),
    Listed("offbook://summaries/{id}", "summary", "A summary, as in L1-0003."),
)


async def listed(memory: Memory) -> list[Listed]:
    """The fixed ones, and the newest sessions. Without a provider only the first: reading one then says why."""
    try:
        status = await memory.ask("status", memory.owned({}))
    except ProviderUnavailable:
        return list(LISTED)
    sessions = [each["sessionId"] for each in status.get("sessions", [])]
    return [*LISTED, *(Listed(address("sessions", each), each, "A conversation.") for each in sessions)]


async def text_at(uri: str, memory: Memory) -> str:
    """What is at an address. Raises NotFound, or what the provider refuses."""
    kind, separator, rest = uri.removeprefix(SCHEME).partition("/")
    name = unquote(rest)
    if uri.startswith(SCHEME) and not (separator and not name):
        if kind == "sessions":
            return await (_session(name, memory) if name else _sessions(memory))
        if kind == "summaries":
            return await (_summary(name, memory) if name else _summaries(memory))
        if kind == "lessons" and not name:
            body = memory.owned({"status": HELD, "limit": LESSONS_SHOWN})
            return answer_text.lessons(await memory.ask("lessons", body))
    known = ", ".join(each.address for each in (*LISTED, *TEMPLATES))
    raise NotFound(f"there is no resource {uri!r}: use one of {known}")


def address(kind: str, name: str) -> str:
    return f"{SCHEME}{kind}/{quote(name, safe='')}"


async def _sessions(memory: Memory) -> str:
    return answer_text.sessions(await memory.ask("status", memory.owned({})))


async def _session(session_id: str, memory: Memory) -> str:
    body = memory.owned({"sessionId": session_id, "maxChars": CONTEXT_CHARS})
    answer = await memory.ask("getCompressedContext", body)
    if not answer["covers"]["lastSeq"]:
        raise NotFound(f"there is no session {session_id!r}: {SCHEME}sessions lists them")
    return await answer_text.format_context(answer)


async def _summaries(memory: Memory) -> str:
    return answer_text.summaries(await memory.ask("summaries", memory.owned({"limit": SUMMARIES_SHOWN})))


async def _summary(summary_id: str, memory: Memory) -> str:
    if named := level_and_number(summary_id, most=LONGEST_NUMBER):
        level, number = named
        async for one in _newest_first(level, f"L{level}-{number + 1:04d}", memory):
            if one["id"] == summary_id:
                return answer_text.summary(one)
    raise NotFound(f"there is no summary {summary_id!r}: {SCHEME}summaries lists the newest")


async def _newest_first(level: int, following: str, memory: Memory) -> AsyncIterator[dict[str, Any]]:
    """First the one before `following`, which is the one wanted unless that is the newest; then all of the level."""
    page = await memory.ask("summaries", memory.owned({"level": level, "before": following, "limit": 1}))
    for one in page["summaries"]:
        yield one
    before: str | None = None
    while True:
        body = {"level": level, "limit": 100} | ({"before": before} if before else {})
        page = await memory.ask("summaries", memory.owned(body))
        for one in page["summaries"]:
            yield one
        before = page.get("next")
        if before is None:
            return
