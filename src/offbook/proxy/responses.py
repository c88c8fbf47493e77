"""A request of the Responses API read. Pure.

Its history comes with it, as that of a chat request does; or it lies at the API, and the request says what it follows.
"""

from __future__ import annotations

from typing import Any

import msgspec

from offbook.errors import WrongShape
from offbook.proxy.conversation import behind_conversation, behind_response
from offbook.proxy.requests import Item, Request, is_session_name, read_fields, read_item, read_message, read_raws
from offbook.proxy.response_items import UNSAID, Said, said_by, sent_as

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
