"""Reads what the Responses API answers while it passes. Only looks; never raises.

A stream tells each item as it is done, then all of them again at its end. Some servers leave that out at the end, so
the items are taken as they come.
"""

from __future__ import annotations

from typing import Any

from offbook.proxy.answers import UNREADABLE, Answer, Reader
from offbook.proxy.requests import is_session_name
from offbook.proxy.response_items import said_by

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
            self._created_id = _id(value["response"])
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
        messages, response_id = self._messages(response), _id(response)
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


def _id(response: dict[str, Any]) -> str | None:
    given = response.get("id")
    return given if isinstance(given, str) and is_session_name(given) else None
