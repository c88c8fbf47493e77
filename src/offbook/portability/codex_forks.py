"""What a forked session of Codex took over from the one that it was forked from.

It begins with that one's lines, written again all at once, and nothing says where they end. So a message is taken for a
copy only where it was written with the first line, before a turn of the fork's own began, and where the other session
held the same before there was a fork. Whatever else it is, it is kept.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any
from uuid import UUID

from offbook.portability.claude_code_lines import Said, Skipped

WRITTEN_SECONDS = 10
"""What is copied is written within a tenth of a second. A long history on a busy disk takes longer."""
_TURN_BEGINS = ("task_started", "turn_started")


class Copies:
    """Asked of each line in turn. `before` gives what the other session held at that time, and is asked once, when a
    line may be a copy: of a fork that goes on, nothing is read but its own."""

    def __init__(self, forked: datetime, written: datetime, before: Callable[[], Iterable[Said]]) -> None:
        self._forked = forked
        self._latest = written + timedelta(seconds=WRITTEN_SECONDS)
        self._before = before
        self._left: Counter[bytes] | None = None
        self._is_over = False

    def has(self, kind: Any, payload: dict[str, Any], at: datetime | None, said: Said | Skipped) -> bool:
        if not self._is_over:
            self._is_over = at is None or at > self._latest or _begins_turn(kind, payload, self._forked)
        if self._is_over or isinstance(said, Skipped):
            return False
        if self._left is None:
            self._left = Counter(filter(None, map(_digest, self._before())))
        digest = _digest(said)
        if digest is None or self._left[digest] == 0:
            return False
        self._left[digest] -= 1
        return True


def _begins_turn(kind: Any, payload: dict[str, Any], forked: datetime) -> bool:
    """Whether a turn begins that is younger than the fork: the ids of turns hold the time they were made at."""
    if kind != "turn_context" and not (kind == "event_msg" and payload.get("type") in _TURN_BEGINS):
        return False
    try:
        turn = UUID(payload["turn_id"])
    except (KeyError, ValueError, AttributeError, TypeError):
        return False
    return turn.version == 7 and turn.int >> 80 >= forked.timestamp() * 1000


def _digest(said: Said) -> bytes | None:
    try:
        told = json.dumps([said.role, said.content, said.labels], sort_keys=True)  # also of half a character
    except RecursionError:
        return None
    return blake2b(told.encode(), digest_size=16).digest()
