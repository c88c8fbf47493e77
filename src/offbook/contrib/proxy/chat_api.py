"""Chat completions: a request read, and written again with what was added to it; and what is answered. Pure.

Every field and every message that is not ours to change stays as the bytes it came in. Whatever the API calls its
messages, they are read as those of chat completions, and what we add is made as such: one dialect for all the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from offbook.client.messages import message_of
from offbook.client.placement import placed
from offbook.contrib.proxy.conversation import Known, fingerprint, words_of
from offbook.model.errors import WrongShape
from offbook.model.turn import PreparedTurn
from offbook.model.types import MAX_KEY_BYTES, Message

SESSION_FIELDS = ("offbook_session", "session_id", "conversation_id", "thread_id")
"""Of `metadata`: names that clients give to one conversation."""
SEED_FIELDS = ("user", "prompt_cache_key", "safety_identifier")
"""They name a person or a program, who may have many conversations at once."""

read_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
read_raws = msgspec.json.Decoder(list[msgspec.Raw]).decode
read_message = msgspec.json.Decoder(dict[str, Any]).decode


class Item(NamedTuple):
    """One message of a request: as it is sent, as we read it, and where it is in its conversation."""

    sent: msgspec.Raw | dict[str, Any]
    """The client's as it came; ours as a message of chat completions."""
    message: Message
    fingerprint: str
    place: Known | None = None
    """None for what is no part of the conversation."""
    before: tuple[msgspec.Raw, ...] = ()
    """What belongs to it and stands right before it, such as the thoughts that it came of."""


def _as_it_is(item: Item) -> Sequence[Any]:
    return (item.sent,)


class Request(NamedTuple):
    fields: dict[str, msgspec.Raw]
    said: list[dict[str, Any]]
    """The messages as the client has them."""
    items: list[Item]
    list_field: str = "messages"
    """Where they lie among the fields."""
    shape: Callable[[Item], Sequence[Any]] = _as_it_is
    """How one of them is written there."""
    behind: str | None = None
    """What these messages follow, where all before them lies at the API."""
    own_name: str | None = None
    """Of the conversation at the API."""
    is_kept_at_api: bool = True
    """Whether another request may follow its answer by its id."""

    @property
    def model(self) -> str:
        return (self._text("model") or "")[:MAX_KEY_BYTES]

    @property
    def seed(self) -> str:
        named = {name: self._text(name) for name in SEED_FIELDS}
        return msgspec.json.encode([named]).decode() if any(named.values()) else ""

    @property
    def session_id(self) -> str | None:
        """Where the client names the conversation: in `metadata`, or at the API."""
        try:
            metadata = msgspec.json.decode(self.fields["metadata"])
        except (KeyError, msgspec.DecodeError):
            return self.own_name
        if not isinstance(metadata, dict):
            return self.own_name
        names = (metadata.get(name) for name in SESSION_FIELDS)
        return next((name for name in names if is_session_name(name)), self.own_name)

    def _text(self, name: str) -> str | None:
        raw = self.fields.get(name)
        value = None if raw is None else msgspec.json.decode(raw)
        return value if isinstance(value, str) else None


def is_session_name(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name.encode("utf-8", "replace")) <= MAX_KEY_BYTES and "\x00" not in name


def read_request(body: bytes) -> Request | None:
    """A chat request; None where it is none whose messages we understand: then it passes as it is."""
    try:
        fields = read_fields(body)
        raws = read_raws(fields["messages"])
        said = [read_message(raw) for raw in raws]
        items = [read_item(raw, message) for raw, message in zip(raws, said, strict=True)]
    except (msgspec.DecodeError, KeyError, UnicodeError, WrongShape, RecursionError):
        return None
    return Request(fields, said, items) if items else None


def read_item(sent: msgspec.Raw | dict[str, Any], said: dict[str, Any], before: Sequence[msgspec.Raw] = ()) -> Item:
    """Raises WrongShape where it says nothing that we understand."""
    return Item(sent, message_of(_without_id(said)), fingerprint(said), before=tuple(before))


def made_item(message: dict[str, Any]) -> Item:
    return Item(message, message_of(message), fingerprint(message))


def written(request: Request, items: Sequence[Item]) -> bytes:
    sent = [one for item in items for one in request.shape(item)]
    return msgspec.json.encode({**request.fields, request.list_field: sent})


def with_turn(items: Sequence[Item], turn: PreparedTurn) -> list[Item]:
    """Memory and recall in their places (`placed`), all else the very same.

    Recall without a question to stand behind is left out: a model that is to go on with its own words, or is at work
    with its tools, would take it for the next thing it is told.
    """
    numbered = [msgspec.structs.replace(item.message, id=str(number)) for number, item in enumerate(items)]
    found: list[Item] = []
    for message in placed(numbered, turn):
        if message.id is None:
            if message.role == "user":
                continue
            found.append(made_item({"role": message.role, "content": message.content}))
            continue
        item = items[int(message.id)]
        found.append(item if message.content == item.message.content else _ending(item, message))
    return found


def _ending(item: Item, message: Message) -> Item:
    sent = item.sent if isinstance(item.sent, dict) else read_message(item.sent)
    return item._replace(sent={**sent, "content": message.content}, message=message)


def _without_id(message: dict[str, Any]) -> dict[str, Any]:
    """Ids are ours: a client's own need not be one for each message. An answer may say nothing at all."""
    said = {name: value for name, value in message.items() if name not in ("id", "ts")}
    return said if said.get("content") is not None else {**said, "content": ""}


# ── Reads what a model answers while it passes ──
# A stream of events, or one document. Only looks; never raises.
# What cannot be read is not an answer, and nothing is lost by that: the client brings it back with its next
# request.


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
