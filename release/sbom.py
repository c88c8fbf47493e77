"""The bill of materials (CycloneDX 1.6) and the page of licences, from the lock and from what the packages state."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from release.licences import CHECKOUT, installed, licence_of, project
from release.lock import LOCK, read

SBOM = CHECKOUT / "release" / "sbom.cdx.json"
PAGE = CHECKOUT / "docs" / "reference" / "dependencies.md"
INTRODUCTION = """\
<!-- Made by `make lock`. -->

# Dependencies and their licences

What `requirements.lock` holds: Offbook with the extra `mcp`. The same as a CycloneDX bill of materials:
`release/sbom.cdx.json`. `make test` reads the licences of all that is installed, also for the other extras, and
compares them with `release/licences.toml`.

| package | version | licence |
|---|---|---|
"""
OTHERS = """
## With the other extras

Not locked: they are for the environment of an agent, which has versions of its own. As they were installed when the
lock was made; `local` was not.

| package | licence |
|---|---|
"""


def write() -> None:
    lock = LOCK.read_text()
    stated = {name: licence_of(name, metadata) for name, metadata in installed().items()}
    document = bill(lock, {name: stated.get(name, "") for name in read(lock)})
    SBOM.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(page(document) + OTHERS + _rows({name: stated[name] for name in stated.keys() - read(lock).keys()}))


def bill(lock: str, licences: dict[str, str]) -> dict[str, Any]:
    """The same bytes from the same lock: its number is made of it, and it bears no time."""
    own = {"type": "application", "name": "offbook", "version": project()["version"], "bom-ref": "offbook"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, sha256(lock.encode()).hexdigest())}",
        "version": 1,
        "metadata": {"component": {**own, "licenses": [{"expression": project()["license"]}]}},
        "components": [
            {
                "type": "library",
                "bom-ref": f"pkg:pypi/{name}@{version}",
                "purl": f"pkg:pypi/{name}@{version}",
                "name": name,
                "version": version,
                **({"licenses": [{"expression": licences[name]}]} if licences[name] else {}),
            }
            for name, (version, _) in sorted(read(lock).items())
        ],
    }


def page(document: dict[str, Any]) -> str:
    """Of what is locked."""
    licences = {f"{each['name']} | {each['version']}": _licence(each) for each in document["components"]}
    return INTRODUCTION + _rows(licences)


def _licence(component: dict[str, Any]) -> str:
    stated: str = component.get("licenses", [{"expression": ""}])[0]["expression"]
    return stated


def _rows(licences: dict[str, str]) -> str:
    return "".join(f"| {name} | {licence} |\n" for name, licence in sorted(licences.items()))
