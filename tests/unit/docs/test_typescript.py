from __future__ import annotations

import re
from typing import Any

import pytest
from docs.generate.typescript import HEADER, LINE_LENGTH, typescript

from offbook.api.openapi import openapi_document
from offbook.api.verbs import VERBS


def document(schema: dict[str, Any], name: str = "Thing", verb: str = "thing") -> dict[str, Any]:
    body = {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}}
    return {
        "paths": {f"/v1/{verb}": {"post": {"requestBody": body, "responses": {"200": body}}}},
        "components": {"schemas": {name: schema}},
    }


def declared(schema: dict[str, Any]) -> str:
    """What is made of one value, without the verbs above it."""
    return typescript(document(schema)).partition("What each verb gives. */")[2].partition("}\n\n")[2].strip()


def field(schema: dict[str, Any], *, is_required: bool = True) -> str:
    made = declared(
        {"type": "object", "properties": {"it": schema}, "required": ["it"] if is_required else []},
    )
    return made.removeprefix("export interface Thing {\n").removesuffix("\n}").strip()


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string", "format": "date-time"}, "string"),
        ({"type": "integer", "minimum": 1}, "number"),
        ({"type": "number"}, "number"),
        ({"type": "boolean"}, "boolean"),
        ({}, "unknown"),
        ({"type": "object"}, "Record<string, unknown>"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "Record<string, number>"),
        ({"type": "array", "items": {"$ref": "#/components/schemas/Other"}}, "Other[]"),
        ({"type": "array"}, "unknown[]"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        ({"enum": ["new", "first"]}, '"new" | "first"'),
        ({"const": "L1"}, '"L1"'),
        ({"anyOf": [{"$ref": "#/components/schemas/Other"}, {"type": "null"}]}, "Other | null"),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, "number"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"anyOf": [{}, {"type": "null"}]}, "unknown"),
        (
            {"type": "object", "properties": {"a-b": {"type": "string"}, "c": {}}, "required": ["c"]},
            '{ "a-b"?: string; c: unknown; }',
        ),
    ],
)
def test_a_schema_as_a_type(schema: dict[str, Any], kind: str) -> None:
    assert field(schema) == f"it: {kind};"


def test_what_is_not_required_may_be_left_out() -> None:
    assert field({"type": "string"}, is_required=False) == "it?: string;"


def test_a_field_is_told_with_its_default() -> None:
    told = {"anyOf": [{"type": "integer", "description": "How many."}, {"type": "null"}], "default": 3}
    assert field(told, is_required=False) == "/** How many. Default: 3. */\n  it?: number | null;"
    assert field({"type": "boolean", "default": False}).startswith("/** Default: false. */")
    assert field({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}) == "it: string | null;"


def test_a_description_never_ends_its_comment() -> None:
    made = declared({"type": "string", "description": "Not */ the end"})
    assert made == "/** Not * / the end */\nexport type Thing = string;"


def test_a_long_description_is_broken() -> None:
    made = declared({"type": "string", "description": "word " * 60 + "\n\nand more"})
    assert made.startswith("/**\n * word")
    assert made.count(" *\n") == 1
    assert max(map(len, made.splitlines())) <= LINE_LENGTH


def test_one_of_several_fields_must_be_given() -> None:
    made = declared(
        {
            "type": "object",
            "properties": {
                "one": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                "many": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
            },
            "required": [],
            "oneOf": [{"required": ["one"]}, {"required": ["many"]}],
        }
    )
    assert made == (
        "export type Thing = {\n  one?: string | null;\n  many?: string[] | null;\n} & (\n"
        "  | { one: string; }\n  | { many: string[]; }\n);"
    )


def test_a_value_without_fields_takes_none() -> None:
    assert (
        declared({"type": "object", "properties": {}, "required": []}) == "export type Thing = Record<string, never>;"
    )


def test_a_verb_with_a_slash_is_quoted() -> None:
    made = typescript(document({"type": "string"}, verb="hooks/thing"))
    assert 'export type Verb =\n  | "hooks/thing";' in made
    assert made.count('  "hooks/thing": Thing;') == 2


def test_the_whole_contract_is_there() -> None:
    made = typescript(openapi_document())
    assert made.startswith(HEADER)
    for verb in VERBS:
        assert f'  | "{verb}"' in made
    names = re.findall(r"^export (?:interface|type) (\w+)", made, re.MULTILINE)
    schemas = openapi_document()["components"]["schemas"]
    assert sorted(names) == sorted([*schemas, "Verb", "Requests", "Answers"])
    code = re.sub(r'/\*\*.*?\*/|"[^"]*"|//[^\n]*', "", made, flags=re.DOTALL)
    used = set(re.findall(r"\b[A-Z]\w+", code))
    assert used == {*schemas, "Verb", "Requests", "Answers", "Record"}
