"""What a host says to itself. Kept in the log and marked; recall and compression leave it out.

The strings are those of the npm package `openclaw` 2026.9.6 (`dist/`, file names without their hash); those that
only older versions write are marked so.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import msgspec

from offbook.ingest.frames import A_RECORD, is_framed
from offbook.model.content import (
    ARGUMENT_KEYS,
    HOLDERS,
    NAME_KEYS,
    REASONING_TYPES,
    block_text,
    call_fields,
    first_of,
    is_call,
    is_result,
    strings,
    text_of,
)
from offbook.model.receipt import FORGOTTEN_TEXT
from offbook.model.types import COMMAND, Block, Message

# ── The tools by which a model asks for memory, known again in what it said: ours, and those of others ──

CALLS_ANOTHER = "tool_call"
"""The host's tool that calls a tool it does not show; its result begins with the name of that one."""
_FORGET = "memory_forget"
_NAMES = frozenset(
    {
        *("memory_recall", "memory_context", "memory_expand", "memory_search", "memory_get"),
        *("memory_pin", "memory_status", _FORGET),
        *("swap_status", "swap_dashboard", "swap_promote", "swap_cross"),
    }
)


def is_of_memory(name: str) -> bool:
    """An MCP client puts the server's name and two underscores before it."""
    return _bare(name) in _NAMES


def asks_memory(call: Block) -> bool:
    return _tool_called(call) in _NAMES


def without_the_forgotten(message: Message) -> Message:
    """Of a call that has a text forgotten, not the text: the call is told after it was answered, and would bring it
    back. The very same message where there is none."""
    if message.role != "assistant" or isinstance(message.content, str):
        return message
    blocks = [_without_the_text(block) if is_call(block) else block for block in message.content]
    if all(map(_is_same, blocks, message.content)):
        return message
    return msgspec.structs.replace(message, content=blocks)


def _without_the_text(call: Block) -> Block:
    if _tool_called(call) != _FORGET:
        return call
    holder = next((kind for kind in HOLDERS if isinstance(call.get(kind), dict)), None)
    fields = call if holder is None else call[holder]
    changed = _emptied(fields, levels=2 if first_of(fields, NAME_KEYS) == CALLS_ANOTHER else 1)
    if changed is None:
        return call
    return changed if holder is None else {**call, holder: changed}


def _emptied(fields: Block, levels: int) -> Block | None:
    """Without the text in what is given, or in what is given on. None where there is none."""
    key = next((key for key in ARGUMENT_KEYS if key in fields), None)
    given = None if key is None else _object_in(fields[key])
    if key is None or given is None:
        return None
    emptied: Any = None
    if levels > 1:
        emptied = _emptied(given, levels - 1)
    elif given.get("confirm") is True and isinstance(given.get("matching"), str):
        emptied = {**given, "matching": FORGOTTEN_TEXT}
    if emptied is None:
        return None
    is_text = isinstance(fields[key], str)  # as OpenAI has it
    return {**fields, key: msgspec.json.encode(emptied).decode() if is_text else emptied}


def _tool_called(call: Block) -> str:
    fields = call_fields(call)
    name = str(first_of(fields, NAME_KEYS) or "")
    if name != CALLS_ANOTHER:
        return _bare(name)
    given = _object_in(first_of(fields, ARGUMENT_KEYS))
    return _bare(str(given.get("id", "")).rpartition(":")[2]) if given is not None else ""


def _object_in(arguments: Any) -> dict[str, Any] | None:
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, RecursionError):
            return None
    return arguments if isinstance(arguments, dict) else None


def _bare(name: str) -> str:
    return name.rpartition("__")[2]


def _is_same(one: Block, other: Block) -> bool:
    return one is other


SHORTEST_SUBSTANCE_CHARS = 10
LONGEST_MONOLOGUE_CHARS = 240
"""A line that begins with "Let me" and goes on for longer explains something."""
LONGEST_ACKNOWLEDGEMENT_CHARS = 300
"""`DEFAULT_HEARTBEAT_ACK_MAX_CHARS` in heartbeat.mjs: with no more beside the token, the host drops a reply."""
WIDE_LETTER_CHARS = 3
"""A Chinese character says about as much as three Latin letters."""

# `LEADING_TIMESTAMP_ENVELOPE_RE` in history-image-prune.mjs.
_STAMP = re.compile(r"\s*\[[A-Za-z]{3} \d{4}-\d{2}-\d{2} \d{2}:\d{2}[^\]\n]{0,40}\]\s*")
# `sourcePromptPrefix` of a job, and `INTERNAL_WAKE_TRANSCRIPT_PROMPTS.cron` in heartbeat.mjs.
_CRON = ("[cron:", "[OpenClaw cron wake]")
# `INTERNAL_WAKE_TRANSCRIPT_PROMPTS.heartbeat` and `HEARTBEAT_PROMPT` there; the last two are of older hosts.
_HEARTBEAT = (
    "[OpenClaw heartbeat poll]",
    "Follow the heartbeat monitor scratch context",
    "Read HEARTBEAT.md if it exists",
    "Run the following periodic tasks (only those due",
)
_HEARTBEAT_TOKEN = "HEARTBEAT_OK"  # noqa: S105 - what a model answers, nothing secret
# `INTER_SESSION_PROMPT_PREFIX_BASE` in input-provenance.mjs; the skips end an exchange between two agents.
_ROUTING = "[Inter-session message"
_SKIPS = ("ANNOUNCE_SKIP", "REPLY_SKIP")
# The other wakes of heartbeat.mjs, runtime-context-prompt.mjs, the flush of memory-core and the prompt of a reset.
_RUNTIME = (
    "[OpenClaw exec completion]",
    "[OpenClaw session event]",
    "[Internal task completion event]",
    "Pre-compaction memory flush",
    "A new session was started via /new or /reset",
)
_CONTINUE = "Continue the OpenClaw runtime event."
_RUNTIME_HEADS = ("OpenClaw runtime context", "OpenClaw runtime event")
_RUNTIME_NOTE = "This context is runtime-generated, not user-authored"
_NOTE_WITHIN_CHARS = 400
# internal-runtime-context.mjs. A block without its end runs to the end, as it does for the host.
_CONTEXT_BEGIN = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>"
_CONTEXT_END = "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"
# What a person asks of us, and what they ask of the host in a word: with more behind it, it may be for the agent.
_OUR_COMMANDS = frozenset(("/swap-status", "/swap-dashboard", "/swap-promote", "/swap-cross", "/offbook"))
_HOST_COMMANDS = frozenset(("/new", "/reset", "/compact", "/status", "/help", "/commands", "/stop", "/model", "/usage"))
LONGEST_COMMAND_CHARS = 400
# How the host answers the commands that begin a conversation anew, and how our plugin signs its answers; those to other
# commands are marked by the host.
_HOST_ANSWERS = ("✅ New session started.", "✅ Session reset.")
_SIGNATURE = "\n— Offbook"
_HOST_SPEAKS = "gateway-injected"
"""The model's name under which the host writes what it says itself."""
_RECORD_WITHIN_CHARS = 400
_GIVEN_BY_LOOK_UP = re.compile(
    r'\s{0,9}\{\s{0,9}"tool":\s{0,9}\{\s{0,9}"id":\s{0,9}"(?:[^"]{0,99}[:_])?memory_(?:search|get)"'
)
_MARKERS_BEGIN_WITH = frozenset("[<FRACOP/")
"""The first letters of all that is matched at the beginning, frames too. Most messages begin with another."""


def noise_kind(message: Message) -> str | None:
    """What kind of noise a message is; None where it says something.

    A call or a result is not: it is what was done and seen. But what a tool of memory gave was said before, and would
    be remembered as if it had been said again; and what it was asked, found again, would look like an answer, or be
    pinned with the very word it asks to pin. A picture says something however few words go with it.
    """
    if _is_given_by_memory(message) or _only_asks_memory(message):
        return "injected"
    if _is_part_of_an_exchange(message):
        return None
    text = text_of(message.content).strip()
    stamp = _STAMP.match(text)
    said = text[stamp.end() :] if stamp else text
    kind = _kind_by_marker(message, said)
    if kind is not None or not _is_only_text(message):
        return kind
    if message.role == "assistant" and _is_monologue(said):
        return "monologue"
    return "short" if _weight(said) < SHORTEST_SUBSTANCE_CHARS else None


def _is_monologue(said: str) -> bool:
    is_line = len(said) <= LONGEST_MONOLOGUE_CHARS and "\n" not in said
    return is_line and said.lower().startswith("let me ") and not said.lower().startswith("let me know")


def _is_given_by_memory(message: Message) -> bool:
    if message.role != "tool":
        return False
    if message.name is None:
        return _begins_as_a_record(message)
    if message.name == CALLS_ANOTHER:
        return _GIVEN_BY_LOOK_UP.match(text_of(message.content)) is not None
    return is_of_memory(message.name)


def _begins_as_a_record(message: Message) -> bool:
    """Where a transcript does not say whose result it is: ours begin with words of their own, as text or in JSON."""
    results = [message.content] if isinstance(message.content, str) else [*message.content]
    return bool(results) and all(
        any(A_RECORD in text[:_RECORD_WITHIN_CHARS] for _, text in strings(result)) for result in results
    )


def _only_asks_memory(message: Message) -> bool:
    if message.role != "assistant" or isinstance(message.content, str):
        return False
    calls = [block for block in message.content if is_call(block)]
    others = [block for block in message.content if not is_call(block)]
    is_silent = all(str(block.get("type")) in REASONING_TYPES or block_text(block) == "" for block in others)
    return bool(calls) and is_silent and all(map(asks_memory, calls))


def _kind_by_marker(message: Message, said: str) -> str | None:
    if (message.meta or {}).get("isCommand") is True:
        return COMMAND
    is_by_host = message.role == "assistant" and message.model == _HOST_SPEAKS
    if is_by_host and (said.startswith(_HOST_ANSWERS) or said.endswith(_SIGNATURE)):
        return COMMAND
    if said[:1] not in _MARKERS_BEGIN_WITH and _HEARTBEAT_TOKEN not in said and message.meta is None:
        return None
    if message.role == "user" and _is_command(said):
        return COMMAND
    if is_framed(said):
        return "injected"
    if said.startswith(_CRON):
        return "cron"
    if said.startswith(_HEARTBEAT) or _is_acknowledgement(message, said):
        return "heartbeat"
    if said.startswith(_ROUTING) or said.rstrip() in _SKIPS or _provenance(message) == "inter_session":
        return "routing"
    if said == _CONTINUE or said.startswith(_RUNTIME) or _is_runtime_context(said):
        return "runtime"
    return None


def _is_command(said: str) -> bool:
    is_ours = said.partition(" ")[0] in _OUR_COMMANDS and "\n" not in said and len(said) <= LONGEST_COMMAND_CHARS
    return is_ours or said in _HOST_COMMANDS


def _is_acknowledgement(message: Message, said: str) -> bool:
    if _HEARTBEAT_TOKEN not in said or message.role != "assistant":
        return said == _HEARTBEAT_TOKEN
    # As the host does: markup around the token does not count, and punctuation may follow it.
    bare = said.strip("*`~_ \n")
    is_at_an_edge = bare.startswith(_HEARTBEAT_TOKEN) or bare.rstrip(".!。").endswith(_HEARTBEAT_TOKEN)
    return is_at_an_edge and len(bare) - len(_HEARTBEAT_TOKEN) <= LONGEST_ACKNOWLEDGEMENT_CHARS


def _is_runtime_context(said: str) -> bool:
    """Whether nothing is left outside the host's internal context."""
    if said.startswith(_RUNTIME_HEADS):
        return _RUNTIME_NOTE in said[:_NOTE_WITHIN_CHARS]
    if not said.startswith(_CONTEXT_BEGIN):
        return False
    return not said.rpartition(_CONTEXT_END)[2].strip() if _CONTEXT_END in said else True


def _provenance(message: Message) -> str | None:
    provenance = (message.meta or {}).get("provenance")
    kind = provenance.get("kind") if isinstance(provenance, dict) else None
    return kind if isinstance(kind, str) else None


def _is_part_of_an_exchange(message: Message) -> bool:
    if message.role == "tool" or "tool_calls" in (message.meta or {}):
        return True
    blocks = [] if isinstance(message.content, str) else message.content
    return any(is_call(block) or is_result(block) or "tool_calls" in block for block in blocks)


def _is_only_text(message: Message) -> bool:
    blocks = [] if isinstance(message.content, str) else message.content
    return all(block_text(block) is not None or str(block.get("type")) in REASONING_TYPES for block in blocks)


def _weight(said: str) -> int:
    if len(said) >= SHORTEST_SUBSTANCE_CHARS:
        return len(said)
    return sum(WIDE_LETTER_CHARS if _is_wide_letter(letter) else 1 for letter in said)


def _is_wide_letter(letter: str) -> bool:
    return unicodedata.category(letter) == "Lo" and unicodedata.east_asian_width(letter) in ("W", "F")
