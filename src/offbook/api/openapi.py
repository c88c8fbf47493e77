"""The OpenAPI document, made from the wire shapes and the errors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from inspect import cleandoc
from typing import Any

import msgspec
from msgspec import inspect

from offbook.api.nulls import alternatives
from offbook.api.verbs import VERBS
from offbook.model import errors
from offbook.model.answers import Problem
from offbook.model.version import VERSION

REFERENCE = "#/components/schemas/{name}"
PROBLEMS: tuple[type[errors.OffbookError], ...] = (
    errors.InvalidInput,
    errors.Unauthorized,
    errors.Forbidden,
    errors.UnknownVerb,
    errors.WrongMethod,
    errors.TooLarge,
    errors.WrongShape,
    errors.OffbookError,
    errors.StoreBusy,
    errors.StoreFull,
)
CAPTURE_HEADER = {
    "name": "Offbook-Capture",
    "in": "header",
    "required": False,
    "description": "What the client says it has sent: `client=<id>; first=<n>; last=<n>; sent=<n>`. "
    "`first` to `last` count the messages of this request. `status` compares it with what arrived.",
    "schema": {"type": "string", "pattern": "^client=[^;]{1,128}; first=[0-9]+; last=[0-9]+; sent=[0-9]+$"},
}


@cache
def openapi_document() -> dict[str, Any]:
    shapes = [shape for verb in VERBS.values() for shape in (verb.request, verb.answer)]
    schemas, components = msgspec.json.schema_components([*shapes, Problem], ref_template=REFERENCE)
    components = _cleaned(components)
    _name_times(components, [*shapes, Problem])
    pairs = list(zip(schemas[:-1:2], schemas[1:-1:2], strict=True))
    components["OnMessage"]["oneOf"] = _given(message="object", messages="array")
    components["Expand"]["oneOf"] = _given(summaryId="string", span="object")
    components["JudgeLesson"]["oneOf"] = _judged()
    components["Forget"]["oneOf"] = _meant(components["Forget"]["properties"])
    for name in ("Pin", "Unpin"):
        components[name]["anyOf"] = _pinned()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Offbook memory provider",
            "version": VERSION,
            "description": "The provider contract, v1. POST a JSON object to /v1/<verb>; the answer is JSON. "
            "A field that may be left out may be null, which is the same. Errors are RFC 9457 problem documents.",
        },
        "security": [{"token": []}],
        "paths": {
            f"/v1/{name}": _path(name, verb.request, request, answer)
            for (name, verb), (request, answer) in zip(VERBS.items(), pairs, strict=True)
        },
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _given(**kinds: str) -> list[dict[str, Any]]:
    """Alternatives: each of these fields, and not as null."""
    return [{"required": [field], "properties": {field: {"type": kind}}} for field, kind in kinds.items()]


def _meant(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Alternatives: one of the ways to say what is forgotten, and none of the others."""
    ways: dict[str, dict[str, Any]] = {
        "entryIds": {"type": "array"},
        "sessionId": {"type": "string"},
        "matching": {"type": "string"},
    }
    ways |= {name: {"const": True} for name in ("secrets", "everything")}
    unsaid = {name: {"const": False} if fields[name].get("type") == "boolean" else {"type": "null"} for name in ways}
    return [{"required": [name], "properties": unsaid | {name: said}} for name, said in ways.items()]


def _judged() -> list[dict[str, Any]]:
    """An edit says what the lesson should say; the other verdicts say nothing more."""
    edited = {"verdict": {"const": "edit"}, "text": {"type": "string"}}
    return [
        {"required": ["text"], "properties": edited},
        {"properties": {"verdict": {"enum": ["accept", "reject"]}, "text": {"type": "null"}}},
    ]


def _pinned() -> list[dict[str, Any]]:
    """Message ids are those of a session, and not named beside entries."""
    by_keyword, of_session, by_entries = _given(keyword="string", sessionId="string", entryIds="array")
    of_session["properties"]["entryIds"] = {"type": "null"}
    for way in (by_keyword, by_entries):
        way["properties"]["messageIds"] = {"type": "null"}
    return [by_keyword, of_session, by_entries]


def _cleaned(value: Any) -> Any:
    """Descriptions are docstrings: without their indentation, which depends on the version of Python."""
    if isinstance(value, dict):
        return {
            key: cleandoc(each) if key == "description" and isinstance(each, str) else _cleaned(each)
            for key, each in value.items()
        }
    return [_cleaned(each) for each in value] if isinstance(value, list) else value


def _name_times(components: dict[str, Any], shapes: list[Any]) -> None:
    """msgspec leaves out the format of a time that may come without a zone; those of answers never do."""
    for struct in _structs(inspect.multi_type_info(shapes)):
        properties = components[struct.cls.__name__]["properties"]
        for field in struct.fields:
            if any(isinstance(kind, inspect.DateTimeType) for kind in alternatives(field.type)):
                schema = properties[field.encode_name]
                for each in schema.get("anyOf", [schema]):
                    if each.get("type") == "string":
                        each["format"] = "date-time"


def _structs(kinds: Any) -> Iterator[inspect.StructType]:
    waiting, seen = list(kinds), set()
    while waiting:
        kind = waiting.pop()
        waiting.extend(each for each in alternatives(kind) if each is not kind)
        if isinstance(kind, inspect.StructType) and kind.cls not in seen:
            seen.add(kind.cls)
            waiting.extend(field.type for field in kind.fields)
            yield kind
        elif isinstance(kind, inspect.CollectionType):
            waiting.append(kind.item_type)


def _path(verb: str, request_type: type[Any], request: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": verb.replace("/", "-"),
        "summary": (request_type.__doc__ or "").strip().split("\n")[0],
        "requestBody": {"required": verb != "ping", "content": {"application/json": {"schema": request}}},
        "responses": {
            "200": {"description": "Done.", "content": {"application/json": {"schema": answer}}},
            **{str(error.status): _problem(error) for error in PROBLEMS},
        },
    }
    if verb == "onMessage":
        operation["parameters"] = [CAPTURE_HEADER]
    path = {"post": operation}
    if verb == "ping":
        path["get"] = {key: value for key, value in operation.items() if key != "requestBody"} | {
            "operationId": "ping-get"
        }
    return path


def _problem(error: type[errors.OffbookError]) -> dict[str, Any]:
    return {
        "description": (error.__doc__ or "").strip().split("\n")[0],
        "content": {"application/problem+json": {"schema": {"$ref": REFERENCE.format(name="Problem")}}},
    }
