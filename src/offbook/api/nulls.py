"""`null` for a field that may be left out is the field left out, in every verb alike.

Many languages send it for what they have nothing for. The published shapes stay as they are: they say what a field
holds where it is given.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect


def without_nulls(given: Any, shape: type[msgspec.Struct]) -> Any:
    """A request as it was decoded, without such fields. What a host keeps with us (`content`, `meta`) is untouched."""
    return _stripped(given, inspect.type_info(shape))


def _stripped(value: Any, kind: inspect.Type) -> Any:
    kinds = alternatives(kind)
    if isinstance(value, list):
        items = [each.item_type for each in kinds if isinstance(each, inspect.ListType)]
        return [_stripped(item, items[0]) for item in value] if len(items) == 1 else value
    struct = _matching_kind(value, kinds) if isinstance(value, dict) else None
    if struct is None:
        return value
    fields = {field.encode_name: field for field in struct.fields}
    return {
        name: _stripped(each, fields[name].type) if name in fields else each
        for name, each in value.items()
        if not (each is None and name in fields and _is_left_out(fields[name]))
    }


def _is_left_out(field: inspect.Field) -> bool:
    """By a null. Where the shape itself takes one, it says what that means."""
    return not field.required and not any(
        isinstance(each, inspect.NoneType | inspect.AnyType) for each in alternatives(field.type)
    )


def _matching_kind(value: dict[str, Any], kinds: tuple[inspect.Type, ...]) -> inspect.StructType | None:
    """Which of several shapes it is: their tags say it."""
    structs = [each for each in kinds if isinstance(each, inspect.StructType)]
    if len(structs) == 1:
        return structs[0]
    return next(
        (each for each in structs if each.tag is not None and value.get(each.tag_field or "") == each.tag), None
    )


def alternatives(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    """What a value of this type may be, one by one."""
    if isinstance(kind, inspect.Metadata):
        return alternatives(kind.type)
    if isinstance(kind, inspect.UnionType):
        return tuple(each for one in kind.types for each in alternatives(one))
    return (kind,)
