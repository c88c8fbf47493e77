"""A request read, and written again with what was added to it. Pure.

Every field and every message that is not ours to change stays as the bytes it came in. Whatever the API calls its
messages, they are read as those of chat completions, and what we add is made as such: one dialect for all the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from offbook.client.messages import message_of
from offbook.client.placement import placed
from offbook.contrib.proxy.fingerprints import Known, fingerprint
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
