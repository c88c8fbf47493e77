"""The names by which entries are known outside: a place of the store, as text."""

from __future__ import annotations

import re

ENTRY_ID = "^m(?:[1-9a-f][0-9a-f]{0,14}|[1-7][0-9a-f]{15})$"
"""A place is between 1 and 2^63 - 1."""
_ENTRY_ID = re.compile(ENTRY_ID)


def entry_id(place: int) -> str:
    return f"m{place:x}"


def place_named(name: str) -> int | None:
    """None for what is no entry's id."""
    return int(name[1:], 16) if _ENTRY_ID.fullmatch(name) else None
