"""What each tool takes: the source of its schema, and the check of what a model sends.

A schema is read by models and checked by clients of every make, so it holds types, bounds and words only: no
references, no patterns, no unions with null. The verbs check the rest and say what is wrong.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from offbook.api import requests
from offbook.model.errors import WrongShape
from offbook.model.memory_entry import Reach
from offbook.model.types import MAX_AGENT_BYTES, MAX_KEY_BYTES, Moment, Value

MOST_EXPANDED = 100
DEFAULT_CONTEXT_CHARS = 16_000
A_MOMENT = "2026-10-03T14:02:00Z"
PLAIN = ("type", "description", "enum", "default", "minimum", "maximum", "minLength", "maxLength", "items", "format")
"""Of JSON schema, what every client understands."""

Session = Annotated[str, Meta(min_length=1, max_length=MAX_KEY_BYTES)]
EntryIds = Annotated[
    list[requests.EntryId], Meta(min_length=1, max_length=1_000, description="Entry ids, as memory_recall gives them.")
]
OfASession = Annotated[Session, Meta(description="All of this session.")]
T = TypeVar("T", bound="Arguments")


class Arguments(Value, frozen=True, kw_only=True):
    agent_id: (
        Annotated[
            str,
            Meta(min_length=1, max_length=MAX_AGENT_BYTES, description="Whose memory; leave it out for your own."),
        ]
        | None
    ) = None


class Recall(Arguments, frozen=True, kw_only=True):
    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=requests.LONGEST_QUERY,
            description="A question, a few words or a whole message. Times in it are understood (“last Tuesday”).",
        ),
    ]
    limit: Annotated[int, Meta(ge=1, le=requests.MOST_ENTRIES, description="Most entries.")] = 5
    scope: Annotated[
        Reach,
        Meta(description="One session, all of this agent's, or those of other agents too that opened their memory."),
    ] = "agent"
    session_id: Annotated[Session, Meta(description="The session that asks; the one searched with scope session.")] | (
        None
    ) = None
    at: Annotated[Moment, Meta(description="Answer as it was known then: an ISO 8601 time with its zone.")] | None = (
        None
    )
    include_superseded: Annotated[bool, Meta(description="Also what was corrected since.")] = False

    def __post_init__(self) -> None:
        # Whoever leaves the zone out means their own, which nobody here knows.
        if self.at is not None and self.at.tzinfo is None:
            given = self.at.isoformat()
            raise ValueError(
                f"`at` is {given}, without its zone: write {given}Z if that is UTC, or as in {given}+02:00"
            )


class Record(Arguments, frozen=True, kw_only=True):
    content: Annotated[
        str, Meta(min_length=1, description="What was said, word for word. Secrets in it are blanked out.")
    ]
    role: Annotated[
        Literal["user", "assistant"],
        Meta(description="`user` where these are the user's own words, `assistant` where they are yours."),
    ]
    session_id: Annotated[Session, Meta(description="The conversation it belongs to.")] | None = None
    id: (
        Annotated[
            str,
            Meta(min_length=1, max_length=MAX_KEY_BYTES, description="Your own id: the same twice is stored once."),
        ]
        | None
    ) = None


class Context(Arguments, frozen=True, kw_only=True):
    session_id: Annotated[Session, Meta(description="Which conversation.")] | None = None
    max_chars: Annotated[
        int, Meta(ge=1, le=requests.LARGEST_INTEGER, description="The context has at most this many characters.")
    ] = DEFAULT_CONTEXT_CHARS


class Expand(Arguments, frozen=True, kw_only=True):
    summary_id: Annotated[str, Meta(max_length=64, description="A summary, as in L1-0003.")] | None = None
    session_id: Annotated[Session, Meta(description="Or a session, with firstSeq.")] | None = None
    first_seq: Annotated[int, Meta(ge=1, le=requests.LARGEST_INTEGER, description="First message of it.")] | None = None
    last_seq: (
        Annotated[int, Meta(ge=1, le=requests.LARGEST_INTEGER, description="Last message of it; else only the first.")]
        | None
    ) = None
    after: Annotated[str, Meta(max_length=64, description="To go on: `next` of the page before.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_EXPANDED, description="Most messages.")] = 20


class Pin(Arguments, frozen=True, kw_only=True):
    entry_ids: EntryIds | None = None
    keyword: Annotated[str, Meta(min_length=1, max_length=512, description="All that holds this word.")] | None = None
    session_id: OfASession | None = None
    unpin: Annotated[bool, Meta(description="Let them age again instead.")] = False


class Forget(Arguments, frozen=True, kw_only=True):
    entry_ids: EntryIds | None = None
    matching: (
        Annotated[str, Meta(min_length=1, max_length=10_000, description="All that holds this text, in whatever case.")]
        | None
    ) = None
    session_id: OfASession | None = None
    reason: Annotated[str, Meta(max_length=512, description="Why; kept in the record. Needed with confirm.")] = ""
    confirm: Annotated[
        bool,
        Meta(description="Erase for good. Only after the user has seen what a call without it tells, and agreed."),
    ] = False


class Status(Arguments, frozen=True, kw_only=True):
    pass


def schema_of(kind: type[Arguments]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments."""
    document = msgspec.json.schema(kind)["$defs"][kind.__name__]
    properties, required = document["properties"], document.get("required", [])
    # What is needed first: models read from the beginning.
    names = [*required, *(name for name in properties if name not in required)]
    return {
        "type": "object",
        "properties": {name: _plain(properties[name]) for name in names},
        "required": required,
        "additionalProperties": False,
    }


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    chosen: dict[str, Any] = next((each for each in field.get("anyOf", ()) if each.get("type") != "null"), {})
    plain = {name: value for name, value in {**chosen, **field}.items() if name in PLAIN}
    if plain.get("default", ...) is None:
        del plain["default"]
    if "enum" in plain:
        plain["type"] = "string"
    if "items" in plain:
        plain["items"] = _plain(plain["items"])
    return plain


def read(kind: type[T], given: dict[str, Any]) -> T:
    """What a model sent, or the error that names the argument at fault."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise WrongShape(f"{error}{_instead(kind, str(error))}") from None


def _instead(kind: type[Arguments], error: str) -> str:
    """What could be written, where the check does not say it."""
    field = schema_of(kind)["properties"].get(error.rpartition("`$.")[2].rstrip("`"), {})
    if error.startswith("Invalid enum value"):
        return f": use one of {', '.join(field.get('enum', ()))}"
    return f": write it as in {A_MOMENT}" if error.startswith("Invalid RFC3339") else ""


def sent(arguments: Arguments, *left_out: str) -> dict[str, Any]:
    """The arguments as fields of a request, but those left out: what was not given is not sent."""
    fields: dict[str, Any] = msgspec.to_builtins(arguments)
    return {name: value for name, value in fields.items() if value is not None and name not in left_out}
