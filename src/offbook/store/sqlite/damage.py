"""Rows that somebody damaged: what reading them raises, and how it is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import msgspec

from offbook.errors import StoreCorrupt

UNREADABLE = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, AttributeError, RecursionError)
"""No UTF-8, no JSON, JSON of another shape, a time out of all time."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        raise StoreCorrupt(f"{unreadable(what, error)}: `offbook audit --verify` finds what else is damaged") from error


def unreadable(what: str, error: Exception) -> str:
    return f"{what} cannot be read ({type(error).__name__}: {error})"


def only_row(connection: apsw.Connection, query: str, bindings: tuple[str | int, ...]) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = connection.execute(query, bindings).fetchone()
    if row is None:
        raise ValueError("it is gone")
    return row
