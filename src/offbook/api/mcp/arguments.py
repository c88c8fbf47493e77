"""What each tool takes, from the request of its verb: the source of its schema, and the check of what a model sends.

A schema is read by models and checked by clients of every make, so it holds types, bounds and words only: no
references, no patterns, no unions with null. The verbs check the rest and say what is wrong.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta

from offbook.api import agent_requests, session_requests
from offbook.api.fields import MaxChars, Positive, Reason, Request, described, snake
from offbook.model.errors import WrongShape
from offbook.model.types import AgentId, MessageId, SessionId, Value

MOST_EXPANDED = 100
DEFAULT_CONTEXT_CHARS = 16_000
A_MOMENT = "2026-10-03T14:02:00Z"
PLAIN = ("type", "description", "enum", "default", "minimum", "maximum", "minLength", "maxLength", "items", "format")
"""Of JSON schema, what every client understands."""


class Arguments(Value, frozen=True, kw_only=True):
    agent_id: Annotated[AgentId | None, described("Whose memory; leave it out for your own.")] = None


class Record(Arguments, frozen=True, kw_only=True):
    content: Annotated[
        str, Meta(min_length=1, description="What was said, word for word. Secrets in it are blanked out.")
    ]
    role: Annotated[
        Literal["user", "assistant"], described("`user` where these are the user's own words, `assistant` where yours.")
    ]
    session_id: Annotated[SessionId | None, described("The conversation it belongs to.")] = None
    id: Annotated[MessageId | None, described("Your own id: the same twice is stored once.")] = None


def taken(request: type[Request], *left_out: str, **otherwise: tuple[Any, Any]) -> type[Arguments]:
    """The fields of a request but those left out, and what is of another type or default, or not in it at all."""
    hints = get_type_hints(request, include_extras=True)
    fields: dict[str, Any] = {}
    for field in msgspec.structs.fields(request):
        name = snake(field.encode_name)
        if name not in (*left_out, *Arguments.__struct_fields__):
            fields[name] = (hints[field.name], ...) if field.required else (hints[field.name], field.default)
    fields |= otherwise
    made: Any = msgspec.defstruct(
        request.__name__,
        [(name, kind) if default is ... else (name, kind, default) for name, (kind, default) in fields.items()],
        bases=(Arguments,),
        frozen=True,
        kw_only=True,
    )
    kind: type[Arguments] = made
    return kind


Recall = taken(
    session_requests.Recall,
    "explain",
    "preview",
    session_id=(
        Annotated[SessionId | None, described("The session that asks; the one searched with scope session.")],
        None,
    ),
)
Context = taken(
    session_requests.GetCompressedContext,
    session_id=(Annotated[SessionId | None, described("Which conversation.")], None),
    max_chars=(MaxChars, DEFAULT_CONTEXT_CHARS),
)
Expand = taken(
    agent_requests.Expand,
    "span",
    # Not by its pattern: a model is told what an id looks like.
    summary_id=(
        Annotated[str, Meta(max_length=64, description="A summary or lesson, as in L1-0003 or lesson-0007.")] | None,
        None,
    ),
    session_id=(Annotated[SessionId | None, described("Or a session, with firstSeq.")], None),
    first_seq=(Annotated[Positive | None, described("First message of it.")], None),
    last_seq=(Annotated[Positive | None, described("Last message of it; else only the first.")], None),
    limit=(Annotated[int, Meta(ge=1, le=MOST_EXPANDED, description="Most messages.")], 20),
)
Pin = taken(agent_requests.Pin, unpin=(Annotated[bool, described("Let them age again instead.")], False))
Forget = taken(
    agent_requests.Forget,
    "dry_run",
    "everything",  # for people only: no model is asked for it by a text it reads
    reason=(Annotated[Reason, described("Why; kept in the record. Needed with confirm.")], ""),
    confirm=(
        Annotated[
            bool, described("Erase for good. Only after the user has seen what a call without it tells, and agreed.")
        ],
        False,
    ),
)
Status = taken(agent_requests.GetStatus)


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


def read(kind: type[Arguments], given: dict[str, Any]) -> Any:
    """What a model sent, or the error that names the argument at fault."""
    try:
        meant = msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise WrongShape(f"{error}{_instead(kind, str(error))}") from None
    at = getattr(meant, "at", None)
    if at is not None and at.tzinfo is None:
        # Whoever leaves the zone out means their own, which nobody here knows.
        said = at.isoformat()
        raise WrongShape(f"`at` is {said}, without its zone: write {said}Z if that is UTC, or as in {said}+02:00")
    return meant


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
