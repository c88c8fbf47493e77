"""How a value written in a file, the environment or a flag becomes a checked setting.

Nothing here knows which settings there are: `offbook.settings` says so, with annotated structs.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from difflib import SequenceMatcher
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import inspect, structs

from offbook.errors import SettingsError

ENVIRONMENT_PREFIX = "OFFBOOK_"
NOTHING_WORDS = frozenset({"", "null", "none"})
TRUTH_WORDS = dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(("false", "0", "no", "off"), False)
UNIT_MILLISECONDS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
LONGEST_DURATION = timedelta(days=36_500)
"""A century: a date minus any setting stays a date."""
LARGEST_WHOLE_NUMBER = 2**63 - 1
"""What a column of a database holds."""
LEAST_LIKENESS = 0.6
LAST_PART_WEIGHT = 0.9
"""A name that is right but for its group is nearly as good a guess as one that is right but for a letter."""
LONGEST_SHOWN_VALUE = 80

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NUMBER_AND_UNIT = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[dhms])\s*")
_DURATION = re.compile(rf"(?:{_NUMBER_AND_UNIT.pattern})+")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_TOML_LINE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)")

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
        if isinstance(self.kind, inspect.TimedeltaType):
            return _bounded(duration(raw), self.at_least)
        value = msgspec.convert(from_text(self.kind, raw) if is_text and isinstance(raw, str) else raw, self.hint)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(value)
        if isinstance(value, int) and abs(value) > LARGEST_WHOLE_NUMBER:
            raise ValueError(value)
        return value


class Given(NamedTuple):
    """A checked value and who gave it."""

    value: Any
    origin: str


class Catalogue:
    """Every setting of a struct, in order, found by either spelling of its name."""

    def __init__(self, root: type[msgspec.Struct], *, short_names: Mapping[str, str], reserved: Iterable[str]) -> None:
        self._by_attributes = {".".join(setting.attributes): setting for setting in _settings_of(root)}
        self._groups = {name[:at] for name in self._by_attributes for at, char in enumerate(name) if char == "."}
        self._short = {short: self._by_attributes[name] for short, name in short_names.items()}
        self.reserved = frozenset(reserved)
        self.by_environment_name = {setting.environment_name: setting for setting in self} | {
            ENVIRONMENT_PREFIX + short.upper(): setting for short, setting in self._short.items()
        }

    def __iter__(self) -> Iterator[Setting]:
        return iter(self._by_attributes.values())

    def find(self, path: Sequence[str]) -> Setting | None:
        setting = self._by_attributes.get(".".join(map(snake, path)))
        return setting if setting is not None and setting.is_spelled(path) else None

    def find_short(self, name: str) -> Setting | None:
        return self._short.get(name)

    def is_group(self, path: Sequence[str]) -> bool:
        return ".".join(map(snake, path)) in self._groups

    def nearest_name(self, wrong: str) -> str | None:
        return nearest(wrong, [setting.name for setting in self])

    def nearest_environment_name(self, wrong: str) -> str | None:
        """Compares with the dotted names, whose last parts are what people leave the groups off."""
        known = {setting.name: setting.environment_name for setting in self}
        known |= {variable.removeprefix(ENVIRONMENT_PREFIX): variable for variable in self.reserved}
        guess = nearest(wrong.removeprefix(ENVIRONMENT_PREFIX), known)
        return None if guess is None else known[guess]


class Reading:
    """What the sources say about one owner's settings, and all that is wrong with it.

    What is read later wins.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        problems: list[str],
        *,
        prefix: str = "",
        shared_groups: frozenset[str] = frozenset(),
    ) -> None:
        self.catalogue = catalogue
        self.problems = problems
        self.prefix = prefix
        self.shared_groups = shared_groups
        self.given: dict[str, Given] = {}
        self.refused: set[str] = set()

    def read_table(self, table: Mapping[str, object], origin: str, path: tuple[str, ...] = ()) -> None:
        """A TOML table: keys in camelCase or snake_case, not both."""
        spellings: dict[str, str] = {}
        for key, raw in table.items():
            here = (*path, key)
            name = self.prefix + dotted(here)
            first = spellings.setdefault(snake(key), key)
            if first != key:
                twin = self.prefix + dotted((*path, first))
                self.problems.append(f"{origin}: {twin} and {name} are the same name; keep one")
            elif not path and snake(key) in self.shared_groups:
                self.problems.append(f"{origin}: {name} cannot be set for one agent; it holds for the whole provider")
            elif (setting := self.catalogue.find(here)) is not None:
                self._take(setting, raw, origin, is_text=False)
            elif isinstance(raw, dict) and raw:
                self.read_table(raw, origin, here)
            elif not self.catalogue.is_group(here):
                guess = self.catalogue.nearest_name(dotted(here))
                self._refuse_name(origin, name, guess and self.prefix + guess)
            elif not isinstance(raw, dict):
                self.problems.append(f"{origin}: {name} = {shown(raw)}: expected a table of settings")

    def read_environment(self, environ: Mapping[str, str]) -> None:
        """`OFFBOOK_` and the name in upper case, its parts joined by underscores."""
        named: dict[str, str] = {}
        for variable, text in environ.items():
            if not variable.startswith(ENVIRONMENT_PREFIX) or variable in self.catalogue.reserved:
                continue
            setting = self.catalogue.by_environment_name.get(variable)
            if setting is None:
                guess = self.catalogue.nearest_environment_name(variable)
                self._refuse_name("environment", variable, guess)
            elif named.setdefault(setting.name, variable) != variable:
                self.problems.append(
                    f"environment: {named[setting.name]} and {variable} are both {setting.name}; keep one"
                )
            else:
                self._take(setting, text, f"environment {variable}", is_text=True)

    def read_flags(self, flags: Mapping[str, object]) -> None:
        """Dotted names, with text or typed values. None is a flag that was not given."""
        named: dict[str, str] = {}
        for name, raw in flags.items():
            if raw is None:
                continue
            setting = self.catalogue.find_short(name) or self.catalogue.find(name.split("."))
            if setting is None:
                self._refuse_name(f"flag --{name}", name, self.catalogue.nearest_name(name))
            elif named.setdefault(setting.name, name) != name:
                self.problems.append(
                    f"flag --{name}: --{named[setting.name]} is the same setting, {setting.name}; keep one"
                )
            else:
                self._take(setting, raw, f"flag --{name}", is_text=True)

    def _take(self, setting: Setting, raw: object, origin: str, *, is_text: bool) -> None:
        try:
            self.given[setting.name] = Given(setting.checked(raw, is_text=is_text), origin)
        except (ValueError, msgspec.ValidationError):
            self.refused.add(setting.name)
            name = self.prefix + setting.name
            self.problems.append(f"{origin}: {name} = {shown(raw)}: expected {setting.expected}")

    def _refuse_name(self, origin: str, name: str, guess: str | None) -> None:
        self.problems.append(f"{origin}: {unknown(name, guess)}")


# ── names ─────────────────────────────────────────────────────────────────────────────────────


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def dotted(path: Iterable[str]) -> str:
    """The name as TOML would write it: a part with anything but letters, digits, `_` and `-` is quoted."""
    return ".".join(part if _BARE_KEY.fullmatch(part) else json.dumps(part) for part in path)


def nearest(wrong: str, names: Iterable[str]) -> str | None:
    """The name most like `wrong`, as a whole or in its last part; None where none is much like it."""

    def likeness(name: str) -> tuple[float, float]:
        whole = _likeness(wrong, name)
        last = _likeness(wrong.rpartition(".")[2], name.rpartition(".")[2])
        return max(whole, last * LAST_PART_WEIGHT), whole

    best = max(names, key=likeness)
    return best if likeness(best)[0] >= LEAST_LIKENESS else None


def unknown(name: str, guess: str | None) -> str:
    return f"unknown setting {name}" + (f"; did you mean {guess}?" if guess else "")


def _likeness(one: str, other: str) -> float:
    letters = str.maketrans("", "", "._-")
    return SequenceMatcher(None, one.translate(letters).lower(), other.translate(letters).lower()).ratio()


# ── values ────────────────────────────────────────────────────────────────────────────────────


def duration(raw: object) -> timedelta:
    """A number of milliseconds, or text such as `250ms`, `30s`, `5m`, `1h30m`, `1d`."""
    if isinstance(raw, timedelta):
        return raw
    if isinstance(raw, str):
        text = raw.strip()
        if _NUMBER.fullmatch(text):
            return duration(float(text))
        if not _DURATION.fullmatch(text):
            raise ValueError(raw)
        return duration(sum(float(n) * UNIT_MILLISECONDS[unit] for n, unit in _NUMBER_AND_UNIT.findall(text)))
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise ValueError(raw)
    try:
        return timedelta(milliseconds=raw)
    except OverflowError as error:
        raise ValueError(raw) from error


def from_text(kind: inspect.Type, text: str) -> object:
    """What text of the environment or of a flag stands for, by the kind of the setting; may raise ValueError."""
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
        case inspect.TimedeltaType():
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
    return f" of at least {low:g}" if high is None else f" from {low:g} to {high:g}"


# ── structs and files ─────────────────────────────────────────────────────────────────────────


def replaced(root: StructT, setting: Setting, value: object) -> StructT:
    return _replaced(root, setting.attributes, value)


def read_toml(path: Path) -> dict[str, Any]:
    """The file's table, empty where there is no file. Its errors name the file and the line."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"file {path}: cannot be read: {error.strerror}") from error
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"file {path}, line {line}: not UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        place = _TOML_LINE.search(str(error))
        line = int(place[1]) if place and place[1] else len(data.splitlines())
        raise SettingsError(f"file {path}, line {line}: {_TOML_LINE.sub('', str(error))}") from error


def _replaced(root: StructT, attributes: Sequence[str], value: object) -> StructT:
    first, *rest = attributes
    return structs.replace(root, **{first: _replaced(getattr(root, first), rest, value) if rest else value})


def _settings_of(
    root: type[msgspec.Struct], names: tuple[str, ...] = (), attributes: tuple[str, ...] = ()
) -> Iterator[Setting]:
    """Annotated fields are settings, fields that are structs are groups; others are neither."""
    for field in structs.fields(root):
        here, path = (*names, field.encode_name), (*attributes, field.name)
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from _settings_of(field.type, here, path)
            continue
        info = inspect.type_info(field.type)
        if not isinstance(info, inspect.Metadata):
            continue
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
