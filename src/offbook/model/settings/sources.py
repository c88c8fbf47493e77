"""What a file, the environment and flags say about the settings, and all that is wrong with it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from offbook.model.errors import SettingsError
from offbook.model.plain_names import is_plain_name
from offbook.model.settings.values import ENVIRONMENT_PREFIX, Setting, settings_of, shown

LEAST_LIKENESS = 0.6
LAST_PART_WEIGHT = 0.9
"""A name that is right but for its group is nearly as good a guess as one that is right but for a letter."""


class Given(NamedTuple):
    """A checked value and who gave it."""

    value: Any
    origin: str


class Catalogue:
    """Every setting of a struct, in order, found by either spelling of its name."""

    def __init__(self, root: type[msgspec.Struct], *, short_names: Mapping[str, str], reserved: Iterable[str]) -> None:
        self._by_attributes = {".".join(setting.attributes): setting for setting in settings_of(root)}
        self._groups = {name[:at] for name in self._by_attributes for at, char in enumerate(name) if char == "."}
        self._short = {short: self._by_attributes[snake(name)] for short, name in short_names.items()}
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
        lines_before = data.count(b"\n", 0, error.start)
        raise SettingsError(f"file {path}, line {lines_before + 1}: not UTF-8") from error
    except RecursionError as error:
        raise SettingsError(f"file {path}: nested too deep: mend it, or remove it to have the defaults") from error
    except ValueError as error:  # also of numbers too long for Python, which tomllib does not wrap
        what, at, place = str(error).partition(" (at ")
        number = place.removeprefix("line ").partition(",")[0] if "," in place else len(data.splitlines())
        raise SettingsError(f"file {path}{f', line {number}' if at else ''}: {what}") from error


# ── names ─────────────────────────────────────────────────────────────────────────────────────


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def dotted(path: Iterable[str]) -> str:
    """The name as TOML would write it: a part with anything but letters, digits, `_` and `-` is quoted."""
    return ".".join(
        part if is_plain_name(part, first="_-", most_chars=len(part)) else json.dumps(part) for part in path
    )


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
