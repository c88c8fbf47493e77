"""One line of a Claude Code session: something that was said, or the reason why it is none."""

from __future__ import annotations

from typing import Any, NamedTuple

from offbook.portability.wires import dictionaries, dictionary, text_or_none, without_blanks

OWN_WORDS = "Claude Code wrote it to itself"
NO_MODEL = "<synthetic>"
"""The model of a reply that no model gave."""
_COMMANDS = ("<command-", "<local-command-", "<bash-")
"""How a line begins that holds a command of the program and what it printed, under the user's name."""


class Said(NamedTuple):
    role: str
    content: str | list[dict[str, Any]]
    labels: dict[str, Any]
    meta: dict[str, Any]


class Skipped(NamedTuple):
    what: str
    why: str


def read(fields: dict[str, Any]) -> Said | Skipped:
    """ValueError for a message that has no content."""
    kind = fields.get("type")
    if kind == "summary":
        return Skipped("summaries", "Offbook makes its own from the messages")
    if kind == "attachment":
        return _queued(dictionary(fields.get("attachment")))
    if kind is None:
        return Skipped("lines that say no type", "none of a session of Claude Code")
    if kind not in ("user", "assistant"):
        return Skipped(f"lines of kind {str(kind)[:60]}", "bookkeeping of Claude Code")
    if fields.get("isMeta") is True:
        return Skipped("meta messages", OWN_WORDS)
    if fields.get("isCompactSummary") is True:
        return Skipped("summaries of what was compacted", "Offbook makes its own from the messages")
    message = dictionary(fields.get("message"))
    content = message.get("content")
    if not isinstance(content, str | list):
        raise ValueError("it has no content")
    if kind == "assistant":
        return _reply(fields, message, content)
    return _told(fields, content)


def _queued(attachment: dict[str, Any]) -> Said | Skipped:
    prompt, mode = attachment.get("prompt"), attachment.get("commandMode", "prompt")
    is_typed = mode == "prompt" and dictionary(attachment.get("origin")).get("kind", "human") == "human"
    if attachment.get("type") != "queued_command" or not is_typed:
        return Skipped("attachments of the program", OWN_WORDS)
    content = prompt if isinstance(prompt, str) else without_blanks(_blocks(prompt))
    if not content:
        return Skipped("empty messages", "nothing is said in them")
    return Said("user", content, {}, {"isQueued": True})


def _reply(fields: dict[str, Any], message: dict[str, Any], content: str | list[Any]) -> Said | Skipped:
    model = text_or_none(message.get("model"))
    if model == NO_MODEL or fields.get("isApiErrorMessage") is True:
        return Skipped("notices of errors", OWN_WORDS)
    kept = content if isinstance(content, str) else without_blanks(_blocks(content))
    if not kept:
        return Skipped("empty messages", "nothing is said in them, or their thoughts are sealed")
    return Said("assistant", kept, {"model": model}, {"messageId": text_or_none(message.get("id"))})


def _told(fields: dict[str, Any], content: str | list[Any]) -> Said | Skipped:
    blocks = [] if isinstance(content, str) else _blocks(content)
    kept = content if isinstance(content, str) else without_blanks(blocks)
    if not kept:
        return Skipped("empty messages", "nothing is said in them")
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if results and len(results) == len(blocks):
        call_id = results[0].get("tool_use_id") if len(results) == 1 else None
        return Said("tool", kept, {"toolCallId": call_id}, {})
    by = text_or_none(dictionary(fields.get("origin")).get("kind"))
    if by not in (None, "human"):
        return Said("user", kept, {"origin": f"claude-code:{by}"}, {})
    if isinstance(kept, str) and kept.lstrip().startswith(_COMMANDS):
        return Said("user", kept, {"origin": "claude-code:command"}, {})
    return Said("user", kept, {}, {})


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Without the seals of thoughts, which are of use to nobody else, and without thoughts that are only a seal."""
    kept: list[dict[str, Any]] = []
    for block in dictionaries(content):
        if block.get("type") == "redacted_thinking" or (block.get("type") == "thinking" and not block.get("thinking")):
            continue
        kept.append({name: value for name, value in block.items() if name not in ("signature", "cache_control")})
    return kept
