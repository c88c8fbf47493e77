"""The OpenAPI document as TypeScript types, for plugins that have no other way to know the contract.

What a type cannot say (lengths, patterns, ranges) is left to the provider, which refuses it with a reason.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

HEADER = "// Made by `make docs` from the wire's shapes. Change those, not this file."
LINE_LENGTH = 120

Schema = Mapping[str, Any]

PRIMITIVES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
WORDS_OF_AN_IDENTIFIER = str.maketrans("", "", "_$")


def typescript(openapi: Mapping[str, Any]) -> str:
    """Verbs with what they take and give, then every value by its name."""
    verbs = {path.removeprefix("/v1/"): methods["post"] for path, methods in openapi["paths"].items()}
    requests = {verb: _content(operation["requestBody"]) for verb, operation in verbs.items()}
    answers = {verb: _content(operation["responses"]["200"]) for verb, operation in verbs.items()}
    parts = [
        HEADER,
        "export type Verb =\n" + "\n".join(f"  | {json.dumps(verb)}" for verb in verbs) + ";",
        _by_verb("Requests", "What each verb takes.", requests),
        _by_verb("Answers", "What each verb gives.", answers),
        *(_declaration(name, schema) for name, schema in openapi["components"]["schemas"].items()),
    ]
    return "\n\n".join(parts) + "\n"


def _content(body: Mapping[str, Any]) -> Schema:
    schema: Schema = body["content"]["application/json"]["schema"]
    return schema


def _by_verb(name: str, told: str, shapes: Mapping[str, Schema]) -> str:
    fields = (f"  {_key(verb)}: {_type(schema)};" for verb, schema in shapes.items())
    return "\n".join([_comment(told, ""), f"export interface {name} {{", *fields, "}"])


def _declaration(name: str, schema: Schema) -> str:
    comment = _comment(schema.get("description", ""), "")
    if "properties" not in schema:
        return "\n".join(filter(None, [comment, f"export type {name} = {_type(schema)};"]))
    fields = "\n".join(_fields(schema))
    body = f"{{\n{fields}\n}}" if fields else "Record<string, never>"
    alternatives = _alternatives(schema)
    if alternatives:
        return "\n".join(filter(None, [comment, f"export type {name} = {body} & (\n{alternatives}\n);"]))
    opened = f"export interface {name} {body}" if fields else f"export type {name} = {body};"
    return "\n".join(filter(None, [comment, opened]))


def _fields(schema: Schema) -> Iterator[str]:
    required = schema.get("required", ())
    for field, each in schema["properties"].items():
        if comment := _comment(_told(each), "  "):
            yield comment
        yield f"  {_key(field)}{'' if field in required else '?'}: {_type(each)};"


def _alternatives(schema: Schema) -> str:
    """Where a shape asks for one of several fields, each way to give one."""
    ways = [each for key in ("oneOf", "anyOf") for each in schema.get(key, ()) if "required" in each]
    fields = schema["properties"]
    given = (" ".join(f"{_key(name)}: {_given(fields[name])};" for name in way["required"]) for way in ways)
    return "\n".join(f"  | {{ {way} }}" for way in given)


def _given(schema: Schema) -> str:
    return _union(_type(each) for each in schema.get("anyOf", [schema]) if each.get("type") != "null")


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return _union(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _union(_type(each) for each in schema[key])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union(_type({**schema, "type": each}) for each in kind)
    if kind == "array":
        items = _type(schema.get("items") or {})
        return f"({items})[]" if " | " in items else f"{items}[]"
    if kind == "object":
        return _object(schema)
    return PRIMITIVES.get(kind or "", "unknown")


def _object(schema: Schema) -> str:
    if "properties" in schema:
        required = schema.get("required", ())
        fields = (
            f"{_key(name)}{'' if name in required else '?'}: {_type(each)};"
            for name, each in schema["properties"].items()
        )
        return "{ " + " ".join(fields) + " }"
    values = schema.get("additionalProperties")
    return f"Record<string, {_type(values) if isinstance(values, Mapping) else 'unknown'}>"


def _union(kinds: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(kinds))
    return "unknown" if "unknown" in distinct else " | ".join(distinct)


def _told(schema: Schema) -> str:
    """A field's description may stand in the one of its alternatives that is not null."""
    alternatives = (each.get("description", "") for each in schema.get("anyOf", ()))
    told = schema.get("description") or next(filter(None, alternatives), "")
    default = schema.get("default")
    if default in (None, "", [], {}):
        return told
    return f"{told} Default: {json.dumps(default, ensure_ascii=False)}.".strip()


def _comment(text: str, indent: str) -> str:
    """A doc comment, on one line where it fits."""
    text = text.strip().replace("*/", "* /")
    if not text:
        return ""
    if "\n" not in text and len(indent) + len(text) + len("/**  */") <= LINE_LENGTH:
        return f"{indent}/** {text} */"
    paragraphs = (textwrap.wrap(line, LINE_LENGTH - len(indent) - 3) or [""] for line in text.split("\n"))
    lines = [f"{indent} * {line}".rstrip() for paragraph in paragraphs for line in paragraph]
    return "\n".join([f"{indent}/**", *lines, f"{indent} */"])


def _key(name: str) -> str:
    plain = name.translate(WORDS_OF_AN_IDENTIFIER)
    return name if plain.isalnum() and not name[0].isdigit() else json.dumps(name, ensure_ascii=False)
