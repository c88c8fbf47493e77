"""What a benchmark is given: where to work, how thorough to be, whom to tell how far it is."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

TELL_SECONDS = 2.0
"""Seldom: telling takes time from what is measured."""


class Skipped(Exception):
    """What a benchmark needs is not here; the message says what."""


@dataclass
class Run:
    folder: Path
    is_quick: bool
    console: Console
    data: Path = Path()
    """The development data."""
    cache: Path = Path()
    """What is costly to make and the same in every run: vectors, large stores."""
    _told_at: float = field(default=0.0)

    def choose(self, quick: int, thorough: int) -> int:
        return quick if self.is_quick else thorough

    def say(self, what: str) -> None:
        self.console.print(f"  [dim]{what}[/]", highlight=False)

    def progress(self, what: str, done: int, total: int) -> None:
        if done >= total or time.monotonic() - self._told_at >= TELL_SECONDS:
            self._told_at = time.monotonic()
            line = f"  {what}: {done:,} of {total:,}"
            if self.console.is_terminal:
                self.console.print(f"[dim]{line:<76}[/]", end="\n" if done >= total else "\r", highlight=False)
            elif done >= total:
                self.console.print(line, highlight=False)
