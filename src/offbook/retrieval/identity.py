"""The names by which entries are known outside: a place of the store, as text."""

from __future__ import annotations

import re

_ENTRY_ID = re.compile(r"m([0-9a-f]{1,16})\Z")
LARGEST_PLACE = 2**63 - 1


def entry_id(place: int) -> str:
    return f"m{place:x}"


def place_named(name: str) -> int | None:
    """None for what is no entry's id."""
    match = _ENTRY_ID.match(name)
    place = int(match[1], 16) if match else 0
    return place if 0 < place <= LARGEST_PLACE else None
