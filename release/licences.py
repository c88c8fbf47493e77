"""The licences of what Offbook needs, as the installed packages state them, against `licences.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from email.message import Message
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CHECKOUT = Path(__file__).parent.parent
NOT_SHIPPED = frozenset({"dev", "docs"})
LONGEST_NAME = 60
"""Of a licence: some packages have all of its text in that field."""
CLASSIFIER = "License :: OSI Approved :: "
OPERATORS = frozenset({"AND", "OR", "WITH"})


@cache
def rules() -> dict[str, Any]:
    return tomllib.loads((CHECKOUT / "release" / "licences.toml").read_text())


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    return table


def wanted(extras: Iterable[str]) -> list[str]:
    """The requirements of Offbook with these extras."""
    optional = project()["optional-dependencies"]
    return [*project()["dependencies"], *(each for extra in extras for each in optional[extra])]


def installed(extras: Iterable[str] | None = None) -> dict[str, Message]:
    """The metadata of all that Offbook needs with these extras, or with all that users can choose: by name, and as far
    as it is installed."""
    chosen = sorted(project()["optional-dependencies"].keys() - NOT_SHIPPED) if extras is None else extras
    found: dict[str, Message] = {}
    seen = set()
    left = [Requirement(each) for each in wanted(chosen)]
    while left:
        requirement = left.pop()
        name = canonicalize_name(requirement.name)
        asked = (name, *sorted(requirement.extras))
        if asked in seen or not _applies(requirement, {""}):
            continue
        seen.add(asked)
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        found[name] = package.metadata  # type: ignore[assignment]
        for each in map(Requirement, package.requires or ()):
            if _applies(each, {"", *requirement.extras}):
                each.marker = None
                left.append(each)
    return found


def _applies(requirement: Requirement, extras: set[str]) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": each}) for each in extras)


def licence_of(name: str, metadata: Message) -> str:
    """An SPDX expression, or what the package says in words of its own; empty where it says nothing."""
    spellings: Mapping[str, str] = rules()["spellings"]
    if stated := rules()["packages"].get(name) or metadata.get("License-Expression"):
        return str(stated)
    field = (metadata.get("License") or "").strip()
    if field and len(field) <= LONGEST_NAME:
        return spellings.get(field.lower(), field)
    classes = [each.removeprefix(CLASSIFIER) for each in metadata.get_all("Classifier") or () if CLASSIFIER in each]
    return " OR ".join(spellings.get(each.lower(), each) for each in classes)


def not_allowed(licence: str) -> Iterator[str]:
    """Each licence of an expression that is not in the list; all of them have to be, also of those to choose from."""
    named = [each for each in re.findall(r"[^\s()]+", licence) if each not in OPERATORS]
    yield from (each for each in named or ["none is stated"] if each not in rules()["allowed"])
