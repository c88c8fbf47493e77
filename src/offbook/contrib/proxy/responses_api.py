"""A request of the Responses API read. Pure.

Its history comes with it, as that of a chat request does; or it lies at the API, and the request says what it follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from offbook.contrib.proxy.chat_api import (
    UNREADABLE,
    Answer,
    AnswerReader,
    Item,
    Reader,
    Request,
    is_session_name,
    read_fields,
    read_item,
    read_message,
    read_raws,
    read_request,
)
from offbook.contrib.proxy.conversation import behind_conversation, behind_response
from offbook.model.errors import WrongShape

# ── Items of the Responses API as messages of chat completions, and ours as items. Pure ──

Said = dict[str, Any]

UNSAID: Said = {"role": "system", "content": ""}
"""Stays where it is, as instructions do, and is no part of what was said."""
STAYING = frozenset({"compaction", "compaction_trigger", "additional_tools", "configuration_update", "mcp_list_tools"})
"""What they hold is for the API, and may stand for all before them."""
ROLES = frozenset({"user", "assistant", "system", "developer"})
OUTPUT = "_output"
OUTPUT_FIELDS = ("output", "result", "tools")
NOT_ARGUMENTS = frozenset({"type", "id", "call_id", "status"})


def said_by(item: Mapping[str, Any]) -> Said | None:
    """The message that it is; None where it belongs to the one that follows.

    Raises WrongShape where only the API knows what it says, or nobody does.
    """
    kind = item.get("type")
    if kind is None:
        kind = "message" if "role" in item else "item_reference"
    if kind == "message":
        return _message(item)
    if not isinstance(kind, str) or kind == "item_reference":
        raise WrongShape("what this item says lies at the API")
    if kind in STAYING:
        return UNSAID
    call_id = item.get("call_id")
    if kind.endswith(OUTPUT):
        # A local shell's is named by its `id`.
        answered = call_id if isinstance(call_id, str) else item.get("id")
        return {"role": "tool", "tool_call_id": answered, "content": _output(item)} if answered else None
    return _call(kind, call_id, item) if isinstance(call_id, str) else None


def sent_as(item: Item) -> list[Any]:
    """What stands for it in `input`."""
    if not isinstance(item.sent, dict):
        return [*item.before, item.sent]
    return [*item.before, *_made(item.sent)]


# ── reading ───────────────────────────────────────────────────────────────────────────────────


def _message(item: Mapping[str, Any]) -> Said:
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str) or role not in ROLES:
        raise WrongShape("no role that we know")
    return {"role": role, "content": _words(content) if role == "assistant" else content}


def _words(content: Any) -> Any:
    """An answer without what lies beside its words: notes of its sources, how likely each word was."""
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        return content
    texts = [part.get("text", part.get("refusal")) for part in content]
    return "".join(texts) if all(isinstance(text, str) for text in texts) else content


def _call(kind: str, call_id: str, item: Mapping[str, Any]) -> Said:
    name = item.get("name")
    called: dict[str, Any]
    if kind == "custom_tool_call":
        called = {"type": "custom", "custom": {"name": name, "input": item.get("input")}}
    elif kind == "function_call":
        called = {"type": "function", "function": {"name": name, "arguments": item.get("arguments")}}
    else:  # a tool that the API knows and the client runs: a shell, a computer
        given = {field: value for field, value in item.items() if field not in NOT_ARGUMENTS}
        called = {"type": "function", "function": {"name": name or kind.removesuffix("_call"), "arguments": given}}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": call_id, **called}]}


def _output(item: Mapping[str, Any]) -> Any:
    output = next((item[field] for field in OUTPUT_FIELDS if item.get(field) is not None), "")
    if isinstance(output, dict):
        return [output]
    is_content = isinstance(output, str) or (isinstance(output, list) and all(isinstance(one, dict) for one in output))
    return output if is_content else msgspec.json.encode(output).decode()


# ── making ────────────────────────────────────────────────────────────────────────────────────


def _made(said: Said) -> list[Said]:
    if said.get("role") == "tool":
        return [{"type": "function_call_output", "call_id": said.get("tool_call_id"), "output": said.get("content")}]
    calls = [
        {"type": "function_call", "call_id": call["id"], **call["function"]} for call in said.get("tool_calls") or ()
    ]
    if calls:
        spoken = said.get("content")
        return [*([{"role": said["role"], "content": spoken}] if spoken else []), *calls]
    return [{**said, "content": _parts(said.get("content"))}]


def _parts(content: Any) -> Any:
    """Words that were added beside other parts have the name that chat completions have for them."""
    if not isinstance(content, list):
        return content
    return [{**part, "type": "input_text"} if part.get("type") == "text" else part for part in content]


LIST_FIELD = "input"


def read_responses_request(body: bytes) -> Request | None:
    """None where it is none that we understand, or its answer will not come this way: then it passes as it is."""
    try:
        fields = read_fields(body)
        if _field(fields, "background") is True:
            return None
        said, items = _read_input(fields[LIST_FIELD])
        is_kept = _field(fields, "store") is not False
        previous, conversation = _id(_field(fields, "previous_response_id")), _conversation(fields)
    except (msgspec.DecodeError, KeyError, UnicodeError, WrongShape, RecursionError):
        return None
    if not items:
        return None
    request = Request(fields, said, items, LIST_FIELD, sent_as, is_kept_at_api=is_kept)
    if previous is not None:
        return request._replace(behind=behind_response(previous))
    if conversation is not None:
        return request._replace(behind=behind_conversation(conversation), own_name=conversation)
    return request


def _read_input(given: msgspec.Raw) -> tuple[list[Said], list[Item]]:
    if bytes(memoryview(given)[:1]) == b'"':
        asked: Said = {"role": "user", "content": msgspec.json.decode(given)}
        return [asked], [read_item(asked, asked)]
    said: list[Said] = []
    items: list[Item] = []
    before: list[msgspec.Raw] = []
    for raw in read_raws(given):
        message = said_by(read_message(raw))
        if message is None:
            before.append(raw)
            continue
        said.append(message)
        items.append(read_item(raw, message, before))
        before = []
    if before:  # nothing follows, so they are as good as the client's last word
        *first, last = before
        said.append(UNSAID)
        items.append(read_item(last, UNSAID, first))
    return said, items


def _conversation(fields: dict[str, msgspec.Raw]) -> str | None:
    given = _field(fields, "conversation")
    return _id(given.get("id") if isinstance(given, dict) else given)


def _id(given: Any) -> str | None:
    if given is not None and not is_session_name(given):
        raise WrongShape("no id")
    return given if isinstance(given, str) else None


def _field(fields: dict[str, msgspec.Raw], name: str) -> Any:
    return msgspec.json.decode(fields[name]) if name in fields else None


# ── Reads what the Responses API answers while it passes. Only looks; never raises ──

CREATED = "response.created"
ITEM_DONE = "response.output_item.done"
ENDED = frozenset({"response.completed", "response.incomplete"})
"""Incomplete is what came to its limit: the client has what was said until then."""
READ_EVENTS = frozenset({CREATED, ITEM_DONE, *ENDED, "response.failed", "error"})
FINISHED = frozenset({None, "completed", "incomplete"})
MOST_ITEMS = 1_024


class ResponsesReader(Reader):
    def __init__(self, content_type: str, *, is_plain: bool = True) -> None:
        super().__init__(content_type, is_plain=is_plain)
        self._is_passed_over = False
        self._items: dict[int, dict[str, Any]] = {}
        self._response: dict[str, Any] | None = None
        self._created_id: str | None = None

    def _read_line(self, line: bytes) -> None:
        """Most events are pieces of what comes whole later: their data is not even looked at."""
        if line.startswith(b"event:"):
            self._is_passed_over = line[6:].strip().decode("utf-8", "replace") not in READ_EVENTS
        elif not line.strip():
            self._is_passed_over = False
        elif not self._is_passed_over:
            super()._read_line(line)

    def _take(self, value: dict[str, Any]) -> None:
        kind = value.get("type")
        if not self._is_stream:
            self._response = value
        elif kind == CREATED:
            self._created_id = _response_answers_id(value["response"])
        elif kind == ITEM_DONE:
            if len(self._items) >= MOST_ITEMS:
                raise TypeError("too many items")
            self._items[int(value["output_index"])] = value["item"]
        elif kind in ENDED:
            self._response = value["response"]
        elif kind in READ_EVENTS:
            raise TypeError("no answer")

    def _taken(self) -> Answer | None:
        response = self._response
        if response is None or response.get("error") is not None or response.get("status") not in FINISHED:
            return None
        messages, response_id = self._messages(response), _response_answers_id(response)
        tokens, model = (response.get("usage") or {}).get("input_tokens"), response.get("model")
        if not messages and response_id is None:
            return None
        return Answer(
            messages,
            tokens if isinstance(tokens, int) else None,
            model if isinstance(model, str) else None,
            response_id,
        )

    def _messages(self, response: dict[str, Any]) -> list[dict[str, Any]]:
        """None of them where only the API knows what one says: it can be followed all the same."""
        output = response["output"] or [item for _, item in sorted(self._items.items())]
        try:
            said = [message for item in output if (message := said_by(item)) is not None]
            return [message for message in said if message["content"] or "tool_calls" in message]
        except UNREADABLE:
            return []

    def _left(self) -> Answer | None:
        return Answer((), response_id=self._created_id) if self._is_too_long and self._created_id else None


def _response_answers_id(response: dict[str, Any]) -> str | None:
    given = response.get("id")
    return given if isinstance(given, str) and is_session_name(given) else None


# ── The APIs whose requests get memory ──
# How each is asked, and how it answers. All else of the proxy knows one.


class Dialect(NamedTuple):
    path: bytes
    """Beneath that of the API's base URL."""
    read_request: Callable[[bytes], Request | None]
    reader: type[Reader]


CHAT = Dialect(b"/chat/completions", read_request, AnswerReader)
RESPONSES = Dialect(b"/responses", read_responses_request, ResponsesReader)
DIALECTS = (CHAT, RESPONSES)
