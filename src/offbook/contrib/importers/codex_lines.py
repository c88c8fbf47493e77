"""One line of a Codex rollout: something that was said or done, or the reason why it is none.

The shapes are those of `ResponseItem` and of the fragments of context in the sources of Codex (codex-rs/protocol and
codex-rs/core/src/context): what the program tells the model under the user's name is text between two marks.
"""

from __future__ import annotations

import re
from typing import Any

from offbook.client.history.fields import decoded, dictionaries, dictionary, text_or_none, without_blanks
from offbook.contrib.importers.claude_code import Skipped, TranscriptMessage

OWN_WORDS = "Codex wrote it to itself"
_NOTHING_SAID = "nothing is said in them, or their thoughts are sealed"
_COMMAND = ("<user_shell_command>", "</user_shell_command>")
"""What a person ran beside the agent, and what it printed."""
_FRAGMENTS = (
    ("# agents.md instructions", "</instructions>"),
    ("<user_instructions>", "</user_instructions>"),
    ("<environment_context>", "</environment_context>"),
    ("<additional_context>", "</additional_context>"),
    ("<recommended_plugins>", "</recommended_plugins>"),
    ("<internal_model_context>", "</internal_model_context>"),
    ("<goal_context>", "</goal_context>"),
    ("<skill>", "</skill>"),
    ("<turn_aborted>", "</turn_aborted>"),
    ("<subagent_notification>", "</subagent_notification>"),
    ("<hook_prompt", "</hook_prompt>"),
)
"""How what Codex adds under the user's name begins and ends, in small letters."""
_IMAGE_TAG = re.compile(r"\s*(?:</?(?:local_)?image>|<image name=[^\n]{0,1000}>)\s*")
"""Stands before and behind a picture, to name it."""
_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
"""The calls, and where each says what is called for."""
_RESULTS = ("function_call_output", "custom_tool_call_output")
_LEFT_OUT = {
    "web_search_call": Skipped("searches of the web", "what they found stands in the reply"),
    "image_generation_call": Skipped("images", "images are left out"),
    "agent_message": Skipped("messages between agents", "what a sub-agent answered stands in the reply"),
}
ITEMS = frozenset({"message", "reasoning", *_CALLS, *_RESULTS, *_LEFT_OUT})
"""What an item may be. The first versions wrote items without an envelope."""


def read(kind: Any, payload: dict[str, Any]) -> TranscriptMessage | Skipped:
    """Of a line's type and payload. ValueError for a message that has no content."""
    if kind != "response_item":
        return Skipped(f"lines of kind {str(kind)[:60]}", "bookkeeping of Codex")
    item = payload.get("type")
    if item == "message":
        return _message(payload)
    if item == "reasoning":
        return _thought(payload)
    if isinstance(item, str) and item in _CALLS:
        return _call(item, payload)
    if item in _RESULTS:
        return _result(payload)
    return _LEFT_OUT.get(str(item)) or Skipped(f"items of kind {str(item)[:60]}", "bookkeeping of Codex")


def _message(payload: dict[str, Any]) -> TranscriptMessage | Skipped:
    role, content = payload.get("role"), payload.get("content")
    if role not in ("user", "assistant"):
        return Skipped("instructions", OWN_WORDS)
    if isinstance(content, str):
        content = [{"type": "input_text", "text": content}]
    if not isinstance(content, list):
        raise ValueError("it has no content")
    blocks = [_plain(block) for block in dictionaries(content)]
    meta = {"phase": text_or_none(payload.get("phase"))}
    if role == "assistant":
        said = without_blanks(blocks)
        return TranscriptMessage("assistant", said, {}, meta) if said else Skipped("empty messages", _NOTHING_SAID)
    typed = [block for block in blocks if not _is_of_the_program(block)]
    said = without_blanks(typed)
    if not said:
        return Skipped("context that Codex adds" if len(typed) < len(blocks) else "empty messages", OWN_WORDS)
    is_command = isinstance(said, str) and _is_between(said, _COMMAND)
    return TranscriptMessage("user", said, {"origin": "codex:command"} if is_command else {}, meta)


def _plain(block: dict[str, Any]) -> dict[str, Any]:
    if block.get("type") in ("input_text", "output_text"):
        return {"type": "text", "text": text_or_none(block.get("text")) or ""}
    return block


def _is_of_the_program(block: dict[str, Any]) -> bool:
    text = block.get("text") if block.get("type") == "text" else None
    if not isinstance(text, str):
        return False
    return _IMAGE_TAG.fullmatch(text) is not None or any(_is_between(text, marks) for marks in _FRAGMENTS)


def _is_between(text: str, marks: tuple[str, str]) -> bool:
    begins, ends = marks
    trimmed = text.strip()
    return trimmed[: len(begins)].lower() == begins and trimmed[-len(ends) :].lower() == ends


def _thought(payload: dict[str, Any]) -> TranscriptMessage | Skipped:
    parts = dictionaries(payload.get("summary")) + dictionaries(payload.get("content"))
    text = "\n\n".join(part["text"] for part in parts if text_or_none(part.get("text")))
    if not text:
        return Skipped("empty messages", _NOTHING_SAID)
    return TranscriptMessage("assistant", [{"type": "thinking", "thinking": text}], {}, {})


def _call(item: str, payload: dict[str, Any]) -> TranscriptMessage:
    given = payload.get(_CALLS[item])
    called = {
        "type": "tool-call",
        "id": text_or_none(payload.get("call_id")) or text_or_none(payload.get("id")) or "",
        "name": text_or_none(payload.get("name")) or item,
        "arguments": _arguments(given) if item == "function_call" else given,
    }
    return TranscriptMessage("assistant", [called], {}, {})


def _arguments(given: Any) -> Any:
    """They come as JSON in a text; what is none stays a text."""
    value = _decoded_or_none(given)
    return value if isinstance(value, dict) else given


def _result(payload: dict[str, Any]) -> TranscriptMessage:
    output = payload.get("output")
    if isinstance(output, dict):  # of older versions
        output = output.get("content", output.get("content_items"))
    shell_output = dictionary(_decoded_or_none(output)).get("output")  # the shell's, beside its exit code
    if isinstance(shell_output, str):
        output = shell_output
    content = output if isinstance(output, str) else without_blanks([_plain(each) for each in dictionaries(output)])
    return TranscriptMessage("tool", content, {"toolCallId": text_or_none(payload.get("call_id"))}, {})


def _decoded_or_none(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("{"):
        return None
    try:
        return decoded(value)
    except (ValueError, RecursionError):
        return None
