"""The OpenAPI document, made from the wire shapes and the errors."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from offbook import errors
from offbook.surfaces.wire import SHAPES, Problem
from offbook.version import VERSION

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
    shapes = [shape for request, answer in SHAPES.values() for shape in (request, answer)]
    schemas, components = msgspec.json.schema_components([*shapes, Problem], ref_template=REFERENCE)
    pairs = list(zip(schemas[:-1:2], schemas[1:-1:2], strict=True))
    components["OnMessage"]["oneOf"] = [
        {"required": [field], "properties": {field: {"type": kind}}}
        for field, kind in (("message", "object"), ("messages", "array"))
    ]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Offbook memory provider",
            "version": VERSION,
            "description": "The provider contract, v1. POST a JSON object to /v1/<verb>; the answer is JSON. "
            "Errors are RFC 9457 problem documents.",
        },
        "security": [{"token": []}],
        "paths": {
            f"/v1/{verb}": _path(verb, SHAPES[verb][0], request, answer)
            for verb, (request, answer) in zip(SHAPES, pairs, strict=True)
        },
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


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
