"""The tables: numbered migrations, the same for every database, each applied once and never changed after a release."""

from __future__ import annotations

import secrets
from importlib import resources


def migrations(package: str = "offbook.log.sql") -> list[tuple[int, str]]:
    """Every numbered migration and its SQL, in order."""
    found = []
    for item in resources.files(package).joinpath("migrations").iterdir():
        number, _, rest = item.name.partition("_")
        if number.isdecimal() and rest.endswith(".sql"):
            found.append((int(number), item.read_text()))
    return sorted(found)


def latest_version() -> int:
    return migrations()[-1][0]


def new_installation() -> tuple[str, tuple[bytes, bytes]]:
    """What the first migration ends with: the key that signs what we inject, and what tells this store from others."""
    return (
        "INSERT INTO installation (name, value) VALUES ('key', ?), ('id', ?)",
        (secrets.token_bytes(32), secrets.token_hex(8).encode()),
    )
