"""Messages at an even pace while something else goes on, each beside a row of bare SQLite."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import NamedTuple

from benchmarks.bare_sqlite import BareSqlite
from benchmarks.exchange import BlockingConnection, request


class Samples(NamedTuple):
    """Milliseconds."""

    provider: list[float]
    bare: list[float]

    def add(self, other: Samples) -> None:
        self.provider.extend(other.provider)
        self.bare.extend(other.bare)


class PacedWriter:
    """What the machine and the disk do to anybody shows in both: the message, and the row right after it."""

    def __init__(
        self,
        socket: Path,
        bare: BareSqlite,
        *,
        agent_id: str,
        content: str,
        per_second: int,
        timeout_seconds: float | None = None,
    ) -> None:
        self._connection = (
            BlockingConnection(socket)
            if timeout_seconds is None
            else BlockingConnection(socket, timeout_seconds=timeout_seconds)
        )
        self._bare = bare
        self._agent_id = agent_id
        self._content = content
        self._per_second = per_second
        self._numbers = count()

    def write_while(self, is_wanted: Callable[[], bool]) -> Samples:
        """At least one."""
        taken = Samples([], [])
        due = time.perf_counter()
        while is_wanted() or not taken.provider:
            message = {"id": f"paced-{next(self._numbers)}", "role": "user", "content": self._content}
            sent = request("onMessage", {"sessionId": "paced", "agentId": self._agent_id, "message": message})
            due = max(due + 1 / self._per_second, time.perf_counter())
            time.sleep(max(0.0, due - time.perf_counter()))
            started = time.perf_counter()
            answer = self._connection.exchange(sent)
            taken.provider.append((time.perf_counter() - started) * 1_000)
            taken.bare.extend(micros / 1_000 for micros in self._bare.insert(1, self._content))
            assert answer.status == 200, answer
        return taken

    def write_for(self, seconds: float) -> Samples:
        until = time.monotonic() + seconds
        return self.write_while(lambda: time.monotonic() < until)

    def close(self) -> None:
        self._connection.close()
