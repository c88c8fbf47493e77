"""A hook's call from beginning to end: what is told to the provider, and what the host is answered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from offbook.client.clients import Client
from offbook.hosts.coding.agents import AgentName, session_of
from offbook.hosts.coding.capture import BYTES_AT_ONCE, capture
from offbook.hosts.coding.documents import Document
from offbook.hosts.coding.ends import Ends
from offbook.hosts.coding.injecting import added_context, at_start, for_prompt
from offbook.hosts.coding.places import Places

START, PROMPT, END = "SessionStart", "UserPromptSubmit", "SessionEnd"
CAPTURED = frozenset({"Stop", "SubagentStop", "PreCompact", END})
LAST_PATIENCE_SECONDS = 0.5
"""Nothing comes after the end of a session, so its hook waits for another one that reads, and reads more at once. Not
for long: there are versions of Claude Code that end with their hooks after a second and a half."""
LAST_BYTES = 4 * BYTES_AT_ONCE


def answer(
    agent: AgentName,
    document: Document,
    client: Client,
    home: Path,
    environ: Mapping[str, str],
    *,
    deadline_ms: int,
) -> dict[str, Any] | None:
    """What to print, or None. Raises OffbookError, OSError."""
    session = session_of(agent, document, environ)
    if session.is_sub_agent:
        return None
    ends = Ends(home, agent)
    if document.event in (START, PROMPT):
        ends.drop(client, session.key)  # it goes on, whatever became of its end
        is_start = document.event == START
        text = (
            at_start(client, session.key, document.source, deadline_ms)
            if is_start
            else for_prompt(client, session.key, document.prompt, deadline_ms)
        )
        return added_context(document.event, text) if text else None
    if document.event in CAPTURED:
        places = Places(home / "hooks" / agent, f"{client.endpoint} {client.agent_id or ''}")
        if document.event != END:
            capture(client, session, places)
            return None
        try:
            capture(client, session, places, limit_bytes=LAST_BYTES, patience_seconds=LAST_PATIENCE_SECONDS)
        finally:
            ends.keep(client, session.key, document.reason or None)
        places.thin_out()
    return None


def deliver(agent: AgentName, client: Client, home: Path, *, seconds: float) -> None:
    """What waits takes its chance, whoever left it: messages, and behind them the ends of sessions. Raises OSError."""
    if client.settle(seconds):
        Ends(home, agent).tell(client, seconds=seconds, endpoint=client.endpoint)
