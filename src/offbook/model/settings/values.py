"""One setting: where it lies in the structs, what it may hold, and how text becomes that.

Nothing here knows which settings there are: `offbook.model.settings` says so, with annotated structs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import reduce
from typing import Any, TypeVar, get_origin

import msgspec
from msgspec import inspect, structs

ENVIRONMENT_PREFIX = "OFFBOOK_"
NOTHING_WORDS = frozenset({"", "null", "none"})
TRUTH_WORDS = dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(("false", "0", "no", "off"), False)
UNIT_MILLISECONDS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
LONGEST_DURATION = timedelta(days=36_500)
"""A century: a date minus any setting stays a date."""
LARGEST_WHOLE_NUMBER = 2**63 - 1
"""What a column of a database holds."""
LONGEST_SHOWN_VALUE = 80

_NUMBER_AND_UNIT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|[dhms])\s*")

StructT = TypeVar("StructT", bound=msgspec.Struct)


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting: where it lies in the structs, and what it may hold."""

    name: str
    attributes: tuple[str, ...]
    hint: Any
    kind: inspect.Type
    is_optional: bool
    default: Any
    description: str
    at_least: timedelta = timedelta()

    @property
    def environment_name(self) -> str:
        return ENVIRONMENT_PREFIX + "_".join(self.attributes).upper()

    @property
    def expected(self) -> str:
        """What a value of this setting must be, in words."""
        return _expected(self.kind, self.at_least) + (", or null" if self.is_optional else "")

    def value_in(self, root: msgspec.Struct) -> Any:
        return reduce(getattr, self.attributes, root)

    def is_spelled(self, path: Sequence[str]) -> bool:
        """Whether each part of `path` is the camelCase or the snake_case spelling of ours."""
        ours = zip(self.name.split("."), self.attributes, strict=True)
        return len(path) == len(self.attributes) and all(
            part in spellings for part, spellings in zip(path, ours, strict=True)
        )

    def checked(self, raw: object, *, is_text: bool) -> Any:
        """The value that `raw` stands for; ValueError or ValidationError where it stands for none."""
        if self.is_optional and (raw is None or (isinstance(raw, str) and raw.strip().lower() in NOTHING_WORDS)):
            return None
        if isinstance(self.kind, inspect.TimeDeltaType):
            return _bounded(duration(raw), self.at_least)
        value = msgspec.convert(from_text(self.kind, raw) if is_text and isinstance(raw, str) else raw, self.hint)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(value)
        if isinstance(value, int) and abs(value) > LARGEST_WHOLE_NUMBER:
            raise ValueError(value)
        return value


# ── settings and structs ──────────────────────────────────────────────────────────────────────


def settings_of(
    root: type[msgspec.Struct], names: tuple[str, ...] = (), attributes: tuple[str, ...] = ()
) -> Iterator[Setting]:
    """The annotated fields, and those of the structs inside. A dict holds what is not a setting."""
    for field in structs.fields(root):
        here, path = (*names, field.encode_name), (*attributes, field.name)
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from settings_of(field.type, here, path)
            continue
        if get_origin(field.type) is dict:
            continue
        info = inspect.type_info(field.type)
        assert isinstance(info, inspect.Metadata), f"{field.name} has no description"
        kinds = info.type.types if isinstance(info.type, inspect.UnionType) else (info.type,)
        yield Setting(
            name=".".join(here),
            attributes=path,
            hint=field.type,
            kind=next(kind for kind in kinds if not isinstance(kind, inspect.NoneType)),
            is_optional=len(kinds) > 1,
            default=field.default,
            description=(info.extra_json_schema or {})["description"],
            at_least=(info.extra or {}).get("at_least", timedelta()),
        )


def replaced(root: StructT, setting: Setting, value: object) -> StructT:
    return _replaced(root, setting.attributes, value)


def _replaced(root: StructT, attributes: Sequence[str], value: object) -> StructT:
    first, *rest = attributes
    return structs.replace(root, **{first: _replaced(getattr(root, first), rest, value) if rest else value})


# ── values and text ───────────────────────────────────────────────────────────────────────────


def duration(raw: object) -> timedelta:
    """A number of milliseconds, or text such as `250ms`, `30s`, `5m`, `1h30m`, `1d`; else ValueError."""
    if isinstance(raw, timedelta):
        return raw
    try:
        if isinstance(raw, int | float) and not isinstance(raw, bool):
            return timedelta(milliseconds=raw)
        text = raw.strip() if isinstance(raw, str) else ""
        if all(part.isdecimal() for part in text.split(".", 1)) and text.isascii():
            return timedelta(milliseconds=float(text))
        if text and not _NUMBER_AND_UNIT.sub("", text):
            parts = _NUMBER_AND_UNIT.findall(text)
            return sum((float(n) * timedelta(milliseconds=UNIT_MILLISECONDS[u]) for n, u in parts), timedelta())
    except OverflowError as error:
        raise ValueError(raw) from error
    raise ValueError(raw)


def from_text(kind: inspect.Type, text: str) -> object:
    """What text of the environment or of a flag stands for in a setting of this kind, else ValueError."""
    match kind:
        case inspect.BoolType():
            if text.strip().lower() not in TRUTH_WORDS:
                raise ValueError(text)
            return TRUTH_WORDS[text.strip().lower()]
        case inspect.IntType():
            return int(text)
        case inspect.FloatType():
            return float(text)
        case inspect.VarTupleType():
            return [item.strip() for item in text.split(",") if item.strip()]
        case _:
            return text


def as_text(value: object) -> str:
    """A setting's value as the environment would take it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) <= LARGEST_WHOLE_NUMBER:
            return str(int(value))
        case timedelta():
            return _duration_text(value)
        case tuple():
            return ",".join(map(str, value))
        case _:
            return str(value)


def shown(raw: object) -> str:
    """A value as a message shows it: on one line, and short."""
    text = repr(raw)
    return text if len(text) <= LONGEST_SHOWN_VALUE else text[: LONGEST_SHOWN_VALUE - 1] + "…"


def _bounded(value: timedelta, at_least: timedelta) -> timedelta:
    if not at_least <= value <= LONGEST_DURATION:
        raise ValueError(value)
    return value


def _duration_text(value: timedelta) -> str:
    microseconds, parts = value // timedelta(microseconds=1), []
    for unit, milliseconds in UNIT_MILLISECONDS.items():
        whole, microseconds = divmod(microseconds, milliseconds * 1000)
        if unit == "ms" and microseconds:
            parts.append(f"{whole}.{microseconds:03}ms")
        elif whole:
            parts.append(f"{whole}{unit}")
    return "".join(parts) or "0ms"


def _expected(kind: inspect.Type, at_least: timedelta) -> str:
    match kind:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType(ge=low, le=high):
            return "a whole number" + _range(low, high)
        case inspect.FloatType(ge=low, le=high):
            return "a number" + _range(low, high)
        case inspect.TimeDeltaType():
            least = f" of at least {_duration_text(at_least)}" if at_least else ""
            return f'a duration{least}: milliseconds, or text such as "5m"'
        case inspect.LiteralType(values=values):
            return "one of " + ", ".join(map(str, values))
        case inspect.VarTupleType():
            return "a list of texts"
        case _:
            return "text" + (" that is not empty" if getattr(kind, "min_length", None) else "")


def _range(low: float | None, high: float | None) -> str:
    if low is None:
        return ""
    return f" of at least {as_text(low)}" if high is None else f" from {as_text(low)} to {as_text(high)}"


# ── what is shown of a URL ────────────────────────────────────────────────────────────────────

HIDDEN = "***"
_PASSWORD = re.compile(r"(?<=://)([^:]*):.*@|(?<=[?&])(password|sslpassword)=[^&]*", re.DOTALL)
"""Up to the last `@`: whoever did not percent-encode a password has any character in it."""


def without_password(value: Any) -> Any:
    """A URL with its password hidden; whatever else as it is."""
    if not isinstance(value, str) or "://" not in value:
        return value
    return _PASSWORD.sub(lambda found: f"{found[2]}={HIDDEN}" if found[2] else f"{found[1]}:{HIDDEN}@", value)
