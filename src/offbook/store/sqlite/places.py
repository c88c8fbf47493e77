"""Where a message lies in the table: its session in the high 32 bits, its sequence number in the low ones."""

from __future__ import annotations

MOST_MESSAGES = 2**32 - 1
"""In one session."""


def place_of(session: int, seq: int) -> int:
    return session << 32 | seq
