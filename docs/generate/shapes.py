"""Shapes in words: a struct as a Markdown table of its fields, a type as a few words. For the reference pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from inspect import cleandoc
from typing import Any

import msgspec
from msgspec import inspect

from offbook.model.settings.values import as_text

LARGEST_INTEGER = 2**53 - 1
_PLAIN_TYPES: dict[type[inspect.Type], str] = {
    inspect.AnyType: "any JSON",
    inspect.BoolType: "true or false",
    inspect.DateTimeType: "time (ISO 8601)",
    inspect.FloatType: "number",
    inspect.NoneType: "null",
}
_INNER_TYPES = ("type", "item_type", "value_type")


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table. Columns without a name that are empty in every row are left out."""
    rows = list(rows)
    kept = [at for at, name in enumerate(columns) if name or any(row[at] for row in rows)]
    lines = [[columns[at] for at in kept], ["---"] * len(kept)]
    lines += [[row[at].replace("|", "\\|").replace("\n", " ") for at in kept] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def struct_info(struct: type[Any]) -> inspect.StructType:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return info


def fields_table(struct: type[Any], *, is_request: bool = False) -> str:
    is_sparse = bool(struct.__struct_config__.omit_defaults)
    return table(
        ["field", "is", "when", ""],
        [
            [
                code(field.encode_name),
                type_in_words(field.type, names_null=field.required),
                _when(field, is_request=is_request, is_sparse=is_sparse),
                _description(field.type),
            ]
            for field in struct_info(struct).fields
        ],
    )


def type_in_words(kind: inspect.Type, *, names_null: bool = True) -> str:
    """A struct is a link to the heading of its table."""
    match kind:
        case inspect.Metadata(type=inner):
            return type_in_words(inner)
        case inspect.UnionType(types=types):
            told = [each for each in types if names_null or not isinstance(each, inspect.NoneType)]
            return " or ".join(map(type_in_words, told))
        case inspect.StructType(cls=cls):
            return f"[{cls.__name__}](#{cls.__name__.lower()})"
        case inspect.LiteralType(values=values):
            return ", ".join(f'`"{value}"`' for value in values)
        case inspect.StrType(min_length=least, max_length=most):
            return "text" + _bounds(least, most, " characters")
        case inspect.IntType(ge=least, le=most):
            return "whole number" + _bounds(least, most)
        case inspect.ListType(item_type=item, min_length=least, max_length=most):
            items = "objects" if isinstance(item, inspect.DictType) else type_in_words(item)
            return f"list of {items}" + _bounds(least, most)
        case inspect.DictType(value_type=value):
            return "object" if isinstance(value, inspect.AnyType) else f"object, each value a {type_in_words(value)}"
        case _:
            return _PLAIN_TYPES[type(kind)]


def structs_of(shapes: Iterable[Any]) -> list[type[Any]]:
    """The structs of these shapes and those inside them, each once, outer ones first."""
    found: dict[type[Any], None] = {}

    def walk(kind: inspect.Type) -> None:
        if isinstance(kind, inspect.StructType) and kind.cls not in found:
            found[kind.cls] = None
            for field in kind.fields:
                walk(field.type)
        for inner in (*getattr(kind, "types", ()), *(getattr(kind, name, None) for name in _INNER_TYPES)):
            if isinstance(inner, inspect.Type):
                walk(inner)

    for shape in shapes:
        walk(inspect.type_info(shape))
    return list(found)


def wire_description(struct: type[Any]) -> str:
    """The docstring, with the fields it names spelled as in JSON; empty where the struct has none of its own."""
    text = cleandoc(vars(struct).get("__doc__") or "")
    return re.sub(r"`[a-z_.]+`", lambda name: re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name[0]), text)


def _when(field: inspect.Field, *, is_request: bool, is_sparse: bool) -> str:
    if field.required or not (is_request or is_sparse):
        return "always"
    return "optional" if is_sparse or field.default in (None, msgspec.NODEFAULT) else f"else `{as_text(field.default)}`"


def _description(kind: inspect.Type) -> str:
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    schemas = [each.extra_json_schema or {} for each in kinds if isinstance(each, inspect.Metadata)]
    return str(next((schema["description"] for schema in schemas if "description" in schema), ""))


def _bounds(least: float | None, most: float | None, unit: str = "") -> str:
    if least is None and most is None:
        return ""
    if most is None or most >= LARGEST_INTEGER:
        return f", at least {least:,}{unit}"
    return f", at most {most:,}{unit}" if least is None else f", {least:,} to {most:,}{unit}"
