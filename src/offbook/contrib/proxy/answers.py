"""Reads what a model answers while it passes: a stream of events, or one document. Only looks; never raises.

What cannot be read is not an answer, and nothing is lost by that: the client brings it back with its next request.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from offbook.contrib.proxy.fingerprints import words_of
from offbook.model.errors import WrongShape

EVENT_STREAM = "text/event-stream"
JSON = "application/json"
MOST_BYTES = 16 * 1024 * 1024
"""Of an answer, what of it is read; what is longer passes unread."""
MOST_CALLS = 1_024
MOST_CHOICES = 128
"""As many as OpenAI gives."""
UNREADABLE = (
    msgspec.DecodeError,
    UnicodeDecodeError,
    TypeError,
    AttributeError,
    KeyError,
    ValueError,
    WrongShape,
    RecursionError,
)
"""Anything may come from anywhere: whatever is wrong with it, it is not an answer that we can read."""
_DONE = b"[DONE]"


class Answer(NamedTuple):
    messages: Sequence[dict[str, Any]]
    """As a client would put them into its next request. None of them where nothing was said, or several answers."""
    prompt_tokens: int | None = None
    model: str | None = None
    response_id: str | None = None
    """By which a request may follow it, where the API keeps it."""
    choices: Sequence[Sequence[dict[str, Any]]] = ()
    """Where several answers were asked for: only the client knows which one it will go on with."""

    @property
    def message(self) -> dict[str, Any]:
        return self.messages[0]


class Reader(ABC):
    """`feed` it what passes, then ask for the `answer`."""

    def __init__(self, content_type: str, *, is_plain: bool = True) -> None:
        kind = content_type.partition(";")[0].strip().lower()
        self._is_stream = kind == EVENT_STREAM
        self._is_given_up = not is_plain or kind not in (EVENT_STREAM, JSON)
        self._unread = bytearray()
        self._size = 0
        """Of what was read, without what was passed over."""
        self._is_too_long = False
        self._is_at_end = not self._is_stream
        """A document is whole where it can be read; a stream says it by its last event."""
        self._prompt_tokens: int | None = None
        self._model: str | None = None

    @abstractmethod
    def _take(self, value: dict[str, Any]) -> None:
        """A document, or an event of a stream. May raise whatever it raises where it is not as it should be."""

    @abstractmethod
    def _taken(self) -> Answer | None: ...

    def feed(self, data: bytes) -> None:
        if self._is_given_up:
            return
        if self._size + len(self._unread) + len(data) > MOST_BYTES:
            self._is_too_long = True
            self._give_up()
            return
        self._unread += data
        if self._is_stream and b"\n" in data:
            *lines, rest = self._unread.split(b"\n")
            self._unread = bytearray(rest)
            for line in lines:
                self._read_line(bytes(line))

    def answer(self, *, is_whole: bool = True) -> Answer | None:
        """None where it did not come to its end, or says nothing. `is_whole`: it was not broken off."""
        if self._is_stream:
            if is_whole:
                self._read_line(bytes(self._unread))
        elif not self._is_given_up:
            self._read(bytes(self._unread))
        self._unread.clear()
        try:
            return self._left() if self._is_given_up else self._taken()
        except UNREADABLE:
            return None

    def _left(self) -> Answer | None:
        """What is known of an answer that is not read."""
        return None

    def _read_line(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            data = line[5:].strip()
            if data == _DONE:
                self._is_at_end = True
            elif data:
                self._read(data)

    def _read(self, document: bytes) -> None:
        self._size += len(document)
        try:
            value = msgspec.json.decode(document)
            if not isinstance(value, dict) or value.get("error") is not None:
                raise TypeError("no answer")
            self._take(value)
        except UNREADABLE:
            self._give_up()

    def _give_up(self) -> None:
        self._is_given_up = True
        self._unread.clear()


class AnswerReader(Reader):
    """Of chat completions."""

    def __init__(self, content_type: str, *, is_plain: bool = True) -> None:
        super().__init__(content_type, is_plain=is_plain)
        self._choices: dict[int, _Choice] = {}

    def _take(self, value: dict[str, Any]) -> None:
        for choice in value.get("choices") or ():
            index = choice.get("index", 0)
            if index not in self._choices:
                if len(self._choices) >= MOST_CHOICES:
                    raise TypeError("too many answers")
                self._choices[index] = _Choice()
            self._choices[index].take(choice)
        usage = value.get("usage") or {}
        tokens, model = usage.get("prompt_tokens"), value.get("model")
        self._prompt_tokens = tokens if isinstance(tokens, int) else self._prompt_tokens
        self._model = model if isinstance(model, str) else self._model

    def _taken(self) -> Answer | None:
        # Not every server gives a reason why it ended.
        whole = [choice for choice in self._choices.values() if self._is_at_end or choice.is_finished]
        messages = [message for choice in whole if (message := choice.message()) is not None]
        if not messages:
            return None
        if len(self._choices) == 1:
            return Answer(messages, self._prompt_tokens, self._model)
        return Answer((), self._prompt_tokens, self._model, choices=[[message] for message in messages])


class _Choice:
    def __init__(self) -> None:
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._newest: dict[int, int] = {}
        """By the server's index: which of the calls its pieces are of."""
        self.is_finished = False

    def take(self, choice: dict[str, Any]) -> None:
        said = choice.get("delta") or choice.get("message") or {}
        for texts, name in ((self._texts, "content"), (self._refusals, "refusal")):
            text = words_of(said.get(name))
            if not isinstance(text, str):
                raise TypeError(f"`{name}` is not a text")
            if text:
                texts.append(text)
        for number, call in enumerate(said.get("tool_calls") or ()):
            index = call.get("index")
            self._take_call(index if isinstance(index, int) else number, call)
        self.is_finished = self.is_finished or choice.get("finish_reason") is not None

    def _take_call(self, index: int, piece: dict[str, Any]) -> None:
        if len(self._calls) >= MOST_CALLS:
            raise TypeError("too many calls")
        kind, given = ("custom", "input") if piece.get("custom") is not None else ("function", "arguments")
        called = piece.get(kind) or {}
        at = self._newest[index] = self._number(index, piece.get("id"), is_named=bool(called.get("name")))
        call = self._calls.setdefault(at, {"id": "", "type": kind, kind: {"name": "", given: ""}})
        call["id"] = piece.get("id") or call["id"]
        call[kind]["name"] += called.get("name") or ""
        call[kind][given] += called.get(given) or ""

    def _number(self, index: int, call_id: str | None, *, is_named: bool) -> int:
        """Which call a piece is of. Some servers give all of them one index, or none: then a call begins with an id and
        a name of its own. Not with an id alone, which others make anew for every piece."""
        at = self._newest.get(index, index)
        if not call_id or at not in self._calls or self._calls[at]["id"] in ("", call_id):
            return at
        known = next((number for number, call in self._calls.items() if call["id"] == call_id), None)
        if known is not None:
            return known
        return max(self._calls) + 1 if is_named else at

    def message(self) -> dict[str, Any] | None:
        if not (self._texts or self._calls or self._refusals):
            return None
        said: dict[str, Any] = {"role": "assistant", "content": "".join(self._texts or self._refusals) or None}
        if self._calls:
            said["tool_calls"] = [call for _, call in sorted(self._calls.items())]
        return said
