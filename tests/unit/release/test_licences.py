"""The licences of what is installed here, and of what is locked."""

from __future__ import annotations

import json
from email.message import Message

import pytest
from release.licences import installed, licence_of, not_allowed
from release.sbom import SBOM


def stating(**fields: str) -> Message:
    made = Message()
    for name, value in fields.items():
        made[name.replace("_", "-")] = value
    return made


def test_what_we_need_is_installed_under_a_licence_that_we_allow() -> None:
    """Where it is not: look at the licence, then name it, its spelling or the package in release/licences.toml."""
    locked = {each["name"] for each in json.loads(SBOM.read_text())["components"]}
    found = {name: licence_of(name, metadata) for name, metadata in installed().items() if name in locked}
    assert {"apsw-sqlite3mc", "numpy", "mcp", "typing-extensions"} <= found.keys()
    assert {name: licence for name, licence in found.items() if list(not_allowed(licence))} == {}


def test_all_that_is_locked_is_under_a_licence_that_we_allow() -> None:
    for each in json.loads(SBOM.read_text())["components"]:
        assert list(not_allowed(each["licenses"][0]["expression"])) == [], each["name"]


@pytest.mark.parametrize(
    ("fields", "licence", "refused"),
    [
        ({"License_Expression": "MIT OR Apache-2.0", "License": "else"}, "MIT OR Apache-2.0", []),
        ({"License_Expression": "MPL-2.0 AND (Apache-2.0 OR GPL-3.0-only)"}, None, ["GPL-3.0-only"]),
        ({"License": "Apache License, Version 2.0"}, "Apache-2.0", []),
        ({"License": "GPLv3"}, "GPLv3", ["GPLv3"]),
        ({"License": "the whole text " * 20, "Classifier": "License :: OSI Approved :: MIT License"}, "MIT", []),
        ({"Classifier": "License :: OSI Approved :: GNU Affero General Public License v3"}, None, None),
        ({"Classifier": "Programming Language :: Python"}, "", ["none is stated"]),
    ],
)
def test_a_licence_is_read_and_judged(fields: dict[str, str], licence: str | None, refused: list[str] | None) -> None:
    found = licence_of("some-package", stating(**fields))
    assert licence in (None, found)
    assert list(not_allowed(found)) == refused if refused is not None else list(not_allowed(found))
