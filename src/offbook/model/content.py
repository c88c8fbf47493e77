"""Structured content, read in whatever dialect it came.

The contract's own blocks are `text`, `tool-call {id, name, arguments}`, `tool-result {toolCallId, content}`,
`image` and `file`; any other object is kept as it is. Beside them this reads what hosts send unchanged:
OpenClaw (`toolCall`, `toolResult`, `thinking`), Anthropic (`tool_use`, `tool_result`, `source`), OpenAI chat
(`tool_calls`, `image_url`, `input_audio`) and OpenAI responses (`input_text`, `function_call`, `custom_tool_call`,
`reasoning`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from offbook.model.plain_names import is_plain_name
from offbook.model.types import Block, Content, Message

Path = tuple[str | int, ...]

MAX_DEPTH = 100
"""How deeply lists and objects may nest. JSON encoders recurse in C, so depth is a limit of the process."""
BEGINNING_CHARS = 400
"""How much of a text that lies outside the log is shown in its place: a paragraph."""

TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
REASONING_TYPES = frozenset({"thinking", "redacted_thinking", "reasoning"})
CALL_TYPES = frozenset(
    {"tool-call", "toolCall", "tool_call", "tool_use", "server_tool_use", "mcp_tool_use"}
) | frozenset({"function_call", "custom_tool_call", "function"})
HOLDERS = ("function", "custom")
"""Where OpenAI's chat dialect keeps what is called, under the name of its kind."""
RESULT_TYPES = frozenset(
    {"tool-result", "toolResult", "tool_result", "function_call_output", "custom_tool_call_output"}
)
IMAGE_TYPES = frozenset({"image", "image_url", "input_image", "image_file"})
FILE_TYPES = frozenset({"file", "input_file", "document", "audio", "input_audio", "video", "media"})

# OpenAI's `function_call` has an `id` of its own besides the `call_id` its output answers to.
CALL_ID_KEYS = ("call_id", "toolCallId", "tool_call_id", "id")
RESULT_ID_KEYS = ("toolCallId", "tool_call_id", "tool_use_id", "toolUseId", "call_id")
NAME_KEYS = ("name", "toolName", "tool_name")
ARGUMENT_KEYS = ("arguments", "input", "args", "parameters")
RESULT_KEYS = ("content", "output", "result")
_MEDIA_TYPE_KEYS = ("mediaType", "media_type", "mimeType", "mime_type")
_PAYLOAD_KEYS = frozenset({"data", "file_data", "b64_json", "blob"})
OPAQUE_KEYS = frozenset({"thinkingSignature", "thoughtSignature", "textSignature", "encrypted_content"})

_DIALECT = frozenset(
    {
        *("type", "text", "id", "index", "status", "is_error", "isError", "source", "url", "detail", "annotations"),
        *("thinking", "summary", "signature", "cache_control", "filename", "title", "image_url", "file_id"),
        *(*HOLDERS, *CALL_ID_KEYS, *RESULT_ID_KEYS, *NAME_KEYS, *ARGUMENT_KEYS, *RESULT_KEYS),
        *(*_MEDIA_TYPE_KEYS, *_PAYLOAD_KEYS, *OPAQUE_KEYS),
    }
)
"""Keys of the blocks themselves: nobody said them."""

_DATA_URL = re.compile(r"data:([\w.+-]{1,100}+/[\w.+-]{1,100}+)?[^,]{0,200}+,")
_BASE64 = re.compile(r"[A-Za-z0-9+/\r\n]*+={0,2}[\r\n]*")
_HOLDS_STRINGS = (str, dict, list)
_OUTSIDE = " kept outside the log, sha256 "
LOST_PART = ", lost: its file is missing or damaged"
"""Said in a stand-in of what cannot be put back."""
_STAND_IN = re.compile(
    r"\[(?:(?P<media_type>[\w.+/-]{1,201}+), )?(?P<size>[\d,]{1,20}+ (?P<unit>bytes|characters))"
    rf" kept outside the log, sha256 [0-9a-f]{{12}}…(?P<lost>{LOST_PART})?\](?: The beginning:)?"
)
LONGEST_LABEL_CHARS = 230
"""Of a stand-in, before the words that all of them have."""


def text_of(content: Content) -> str:
    """What a person would read: the text, without calls, results, binaries and reasoning."""
    if isinstance(content, str):
        return content
    return "\n".join(text for block in content if (text := block_text(block)))


def own_text(content: Content) -> str:
    """The same without our stand-ins: their words are nobody's. Of what they stand for, the beginning is left."""
    return without_stand_ins(text_of(content))


def without_stand_ins(text: str) -> str:
    kept: list[str] = []
    end_of_last = 0
    at = text.find(_OUTSIDE)
    while at >= 0:
        start = text.rfind("[", max(end_of_last, at - LONGEST_LABEL_CHARS), at)
        stand_in = _STAND_IN.match(text, start) if start >= 0 else None
        if stand_in is not None:
            kept.append(text[end_of_last:start])
            end_of_last = stand_in.end()
        at = text.find(_OUTSIDE, max(end_of_last, at + 1))
    return "".join((*kept, text[end_of_last:])) if kept else text


def binary_stand_in(text: str) -> re.Match[str] | None:
    """What a text begins with, where that is our stand-in for a binary."""
    found = _STAND_IN.match(text)
    return found if found is not None and found["unit"] == "bytes" else None


def block_text(block: Block) -> str | None:
    """The text of a text block; None for every other block."""
    kind, text = block.get("type"), block.get("text")
    is_text = kind in TEXT_TYPES if isinstance(kind, str) else kind is None
    return text if is_text and isinstance(text, str) else None


def is_call(block: Block) -> bool:
    # Hosts name blocks of their own `custom` too.
    return _type(block) in CALL_TYPES or (_type(block) == "custom" and isinstance(block.get("custom"), dict))


def call_fields(block: Block) -> Block:
    """The name and the arguments of a call among its fields, wherever its dialect keeps them."""
    held = next((block[kind] for kind in HOLDERS if isinstance(block.get(kind), dict)), None)
    return block if held is None else {**block, **held}


def is_result(block: Block) -> bool:
    # Anthropic names the results of its server tools after the tool: `web_search_tool_result`.
    return _type(block) in RESULT_TYPES or _type(block).endswith("_tool_result")


def tool_calls(message: Message) -> list[str]:
    """The ids of the calls this message makes, in order."""
    found = (first_of(block, CALL_ID_KEYS) for block in blocks_of(message) if is_call(block))
    return list(dict.fromkeys(call_id for call_id in found if isinstance(call_id, str)))


def tool_results(message: Message) -> list[str]:
    """The ids of the calls this message answers, in order."""
    found: list[Any] = [message.tool_call_id] if message.role == "tool" else []
    found += [first_of(block, RESULT_ID_KEYS) for block in blocks_of(message) if is_result(block)]
    return list(dict.fromkeys(call_id for call_id in found if isinstance(call_id, str)))


def has_nameless_result(message: Message) -> bool:
    """Whether it answers a call without saying which."""
    names = [first_of(block, RESULT_ID_KEYS) for block in blocks_of(message) if is_result(block)]
    if message.role == "tool":
        return message.tool_call_id is None and not any(isinstance(name, str) for name in names)
    return any(not isinstance(name, str) for name in names)


# ── as plain text ─────────────────────────────────────────────────────────────────────────────


def render(message: Message) -> str:
    """Everything of a message as plain text, in its order. Signatures of reasoning are left out: they
    mean nothing in prose, and another model refuses them."""
    parts = [message.content] if isinstance(message.content, str) else []
    blocks = list(blocks_of(message))
    parts += [_render_block(block, 0) for block in blocks]
    text = "\n".join(part for part in parts if part)
    if message.role == "tool" and message.tool_call_id and not any(map(is_result, blocks)):
        return f"[result of {message.tool_call_id}] {text}".rstrip()
    return text


def _render_block(block: Block, nesting: int) -> str:
    text = block_text(block)
    if text is not None:
        return text
    if is_call(block):
        return _render_call(block)
    if is_result(block):
        head = f"result of {first_of(block, RESULT_ID_KEYS) or 'a call'}"
        failed = ", failed" if block.get("is_error") is True or block.get("isError") is True else ""
        return f"[{head}{failed}] {_render_value(first_of(block, RESULT_KEYS), nesting + 1)}".rstrip()
    if _type(block) in REASONING_TYPES:
        return f"[thinking] {_thought(block)}".rstrip()
    if _type(block) in IMAGE_TYPES | FILE_TYPES:
        return _render_media(block)
    return _compact_json(block)


def _render_call(block: Block) -> str:
    holder = call_fields(block)
    name, arguments = first_of(holder, NAME_KEYS) or "?", first_of(holder, ARGUMENT_KEYS)
    if isinstance(arguments, str):  # OpenAI sends them as JSON in a string
        try:
            arguments = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, RecursionError):
            return f"[call {name}({arguments})]"
    shown = "" if arguments is None else _compact_json(arguments)
    return f"[call {name}({shown})]"


def _render_value(value: Any, nesting: int) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if nesting >= MAX_DEPTH:
        return _compact_json(value)
    if isinstance(value, list):
        return "\n".join(part for part in (_render_value(item, nesting + 1) for item in value) if part)
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        return _render_block(value, nesting + 1)
    return _compact_json(value)


def _render_media(block: Block) -> str:
    kind = "image" if _type(block) in IMAGE_TYPES else "file"
    media_type, size, where = "", "", ""
    for path, text in strings(block):
        held = binary_stand_in(text)
        if path[-1] in _MEDIA_TYPE_KEYS:
            media_type = media_type or text
        elif held:
            media_type = media_type or held["media_type"] or ""
            size = held["size"] + (held["lost"] or "")
        elif is_binary_path(block, path):
            media_type = media_type or media_type_of(text)
            size = f"{decoded_bytes(text):,} bytes"
        elif path[-1] == "data":  # a document given as plain text
            return f"[{kind}: {media_type or 'text'}] {text}"
        elif path[-1] in ("url", "image_url", "file_url", "file_id", "filename", "name", "title", "path"):
            where = where or text
    facts = [fact for fact in (where, media_type, size) if fact]
    return f"[{kind}: {', '.join(facts)}]" if facts else f"[{kind}]"


def _compact_json(value: Any) -> str:
    # Keys stay in the order the host sent: that is how its call reads.
    if depth(value) > MAX_DEPTH:
        return "[nested too deeply to show]"
    return msgspec.json.encode(value).decode()


# ── walking ───────────────────────────────────────────────────────────────────────────────────


def strings(value: Any) -> Iterator[tuple[Path, str]]:
    """Every string in nested JSON and its path, in document order. Keys are not walked."""
    waiting: list[tuple[Path, Any]] = [((), value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, str):
            yield path, item
        elif isinstance(item, dict):
            waiting.extend(((*path, key), item[key]) for key in reversed(item) if isinstance(item[key], _HOLDS_STRINGS))
        elif isinstance(item, list):
            places = range(len(item) - 1, -1, -1)
            waiting.extend(((*path, at), item[at]) for at in places if isinstance(item[at], _HOLDS_STRINGS))


def said_in(value: Any, *, is_beside: bool = False) -> Iterator[str]:
    """Whatever can be read in nested JSON, in document order: strings, also those of JSON that came as text, numbers,
    and the keys that are not a dialect's own. Of what a host keeps beside a message (`is_beside`) no numbers and no
    names of fields: they are times and counts, and nobody said them."""
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
            waiting.extend(_json_in(item))
        elif isinstance(item, _Key):
            if item.name not in _DIALECT and not (is_beside and _is_field_name(item.name)):
                yield item.name
        elif isinstance(item, dict):
            for key in reversed(item):
                waiting += (item[key], _Key(key))
        elif isinstance(item, list):
            waiting.extend(reversed(item))
        elif isinstance(item, int | float) and not isinstance(item, bool) and not is_beside:
            yield msgspec.json.encode(item).decode()


class _Key(NamedTuple):
    name: str


def _json_in(text: str) -> list[Any]:
    """What a text holds that is JSON, as OpenAI sends arguments: with other words than the text, if it was escaped."""
    bare = text.strip()
    if bare[:1] not in ("{", "[") or bare[-1:] not in ("}", "]"):
        return []
    for documents in ([bare], bare.splitlines()):  # one, or one a line
        try:
            return [msgspec.json.decode(each) for each in documents if each and not each.isspace()]
        except (msgspec.DecodeError, RecursionError):
            continue
    return []


def replace(value: Any, replacements: Mapping[Path, str]) -> Any:
    """A copy with those strings in place of what lies at those paths. Copies only what lies on the way."""
    if () in replacements:
        return replacements[()]
    copies: dict[Path, Any] = {(): _shallow_copy(value)}
    for path, text in replacements.items():
        holder = copies[()]
        for length in range(1, len(path)):
            step = path[:length]
            if step not in copies:
                copies[step] = holder[path[length - 1]] = _shallow_copy(holder[path[length - 1]])
            holder = copies[step]
        holder[path[-1]] = text
    return copies[()]


def depth(value: Any) -> int:
    """How many lists and objects lie inside one another; 0 for a plain value."""
    deepest = 0
    level = [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        deepest += 1
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    return deepest


def is_binary_path(content: Any, path: Path) -> bool:
    """Whether the string there is an encoded binary: nothing to read, search or redact in it.

    What is not spelled like base64 is text wherever it lies, so that a secret cannot hide under `data`.
    """
    holder: Any = None
    value = content
    for step in path:
        holder, value = value, value[step]
    if not isinstance(value, str):
        return False
    if value.startswith("data:") and (head := _DATA_URL.match(value)):
        return head[0].endswith(";base64,") and _BASE64.fullmatch(value, head.end()) is not None
    if not isinstance(holder, dict):
        return False
    if path[-1] in _PAYLOAD_KEYS:
        kind = holder.get("type", path[-2] if len(path) > 1 else None)
        is_carrier = kind in ("base64", *IMAGE_TYPES, *FILE_TYPES) or first_of(holder, _MEDIA_TYPE_KEYS) is not None
        return is_carrier and kind != "text" and _BASE64.fullmatch(value) is not None
    is_opaque = path[-1] in OPAQUE_KEYS or (path[-1] == "signature" and _type(holder) in REASONING_TYPES)
    # Signatures come in either alphabet; payloads in the standard one, without the `_` and the `-` of a token.
    return is_opaque and _BASE64.fullmatch(value.replace("-", "+").replace("_", "/")) is not None


# ── large parts, kept outside ─────────────────────────────────────────────────────────────────


# ── small readings ────────────────────────────────────────────────────────────────────────────


def blocks_of(message: Message) -> Iterator[Block]:
    """The content's blocks, and the calls OpenAI's chat dialect keeps beside the content."""
    blocks = [] if isinstance(message.content, str) else message.content
    for block in blocks:
        calls = block.get("tool_calls")
        if "type" not in block and isinstance(calls, list):
            yield from (call for call in calls if isinstance(call, dict))
        else:
            yield block
    beside = (message.meta or {}).get("tool_calls")
    if isinstance(beside, list):
        yield from (call for call in beside if isinstance(call, dict))


def _type(block: Block) -> str:
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def first_of(holder: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((holder[key] for key in keys if holder.get(key) is not None), None)


def _thought(block: Block) -> str:
    thought = first_of(block, ("thinking", "text", "reasoning", "summary"))
    if isinstance(thought, list):  # OpenAI's summaries
        thought = "\n".join(str(item["text"]) for item in thought if isinstance(item, dict) and "text" in item)
    return thought if isinstance(thought, str) else ""


def media_type_of(text: str) -> str:
    head = _DATA_URL.match(text)
    return (head[1] or "") if head else ""


def decoded_bytes(text: str) -> int:
    """How many bytes base64 text stands for."""
    head = _DATA_URL.match(text)
    digits = len(text) - (head.end() if head else 0) - text.count("\n") - text.count("\r")
    return max(0, digits * 3 // 4 - text[-2:].count("="))


def _shallow_copy(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else list(value)


def _is_field_name(key: str) -> bool:
    return is_plain_name(key, also="_.$-", first="_$", most_chars=len(key)) and not key[0].isdecimal()
