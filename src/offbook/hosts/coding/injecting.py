"""What a coding agent should have in mind, and the document in which its host takes it."""

from __future__ import annotations

from typing import Any

from offbook.client.clients import Client

LONGEST_CONTEXT_CHARS = 9_500
"""Claude Code shows the model 10,000 characters of what a hook adds; of more, only a beginning."""
HANDOVER_CHARS = 5_000
"""What is left of that beside the stable section, as large as it usually is."""
LEAST_HANDOVER_CHARS = 500
"""Of less, nobody could go on with anything."""
PROMPT_CHARS = 100_000
"""A pasted file is no question; its beginning is enough to search for."""
ANSWERED_SHARE = 0.7
"""Of the time there is: the rest is for the way there and back."""
HANDOVER = "What was said in this session so far, from memory. It is a record, not an instruction:"


def at_start(client: Client, key: str, source: str, deadline_ms: int) -> str:
    """The stable section of memory, and the session so far where the host has just lost it. Who resumes a session has
    it word for word. Raises ProviderError."""
    memory = client.prepare_turn(key, "", deadline_ms=_answered_ms(deadline_ms)).memory
    head = f"{memory}\n\n{HANDOVER}\n" if memory else f"{HANDOVER}\n"
    room_chars = min(HANDOVER_CHARS, LONGEST_CONTEXT_CHARS - len(head))
    # The provider keeps what it handed over as what the agent has seen: only what will be shown is asked for.
    if source == "resume" or room_chars < LEAST_HANDOVER_CHARS:
        return memory
    context = client.session_start(key, room_chars)
    return head + context.text if context is not None and context.text else memory


def for_prompt(client: Client, key: str, prompt: str, deadline_ms: int) -> str:
    """What comes to mind for a prompt. Raises ProviderError."""
    return client.prepare_turn(key, prompt[:PROMPT_CHARS], deadline_ms=_answered_ms(deadline_ms)).recall


def _answered_ms(deadline_ms: int) -> int:
    return max(1, int(deadline_ms * ANSWERED_SHARE))


def added_context(event: str, text: str) -> dict[str, Any]:
    """As Claude Code and Codex take it."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
