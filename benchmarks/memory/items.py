"""The items of a set: what was said in which sessions, a prompt much later, and what it should bring to mind."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks.run import Skipped
from offbook.model.types import Message, Role

SETS = Path(__file__).with_name("sets")
NAMES = ("corrections", "several", "near", "mind", "lessons")
A_TURN = timedelta(minutes=1)


class Turn(NamedTuple):
    role: Role
    text: str


class ItemSession(msgspec.Struct, frozen=True):
    date: datetime
    turns: list[Turn]

    def messages(self) -> list[Message]:
        """A minute apart."""
        return [
            Message(role=turn.role, content=turn.text, ts=self.date + number * A_TURN)
            for number, turn in enumerate(self.turns)
        ]


class Item(msgspec.Struct, frozen=True):
    """One person's conversations. Of the lists below a set uses those that it is about."""

    id: str
    lang: str
    sessions: list[ItemSession]
    prompt: str
    kind: str = ""
    old: list[str] = []
    """What held once: no longer to be asserted."""
    new: list[str] = []
    """What holds since."""
    holds: list[str] = []
    """What looks corrected and still holds."""
    must: list[str] = []
    """What the prompt should bring to mind; none where nothing of it was ever said."""
    keep: list[list[str]] = []
    """Words of what is to be kept for good, each group in one line."""
    traps: list[list[str]] = []
    """Words of what must not be: jokes, role play, what others wrote."""

    @property
    def turns(self) -> list[Turn]:
        return [turn for session in self.sessions for turn in session.turns]


def load(folder: Path, name: str) -> list[Item]:
    path = folder / f"{name}.jsonl"
    if not path.exists():
        raise Skipped(f"there is no {path}: say with --sets where the sets are")
    lines = path.read_text().splitlines()
    return [msgspec.json.decode(line, type=Item) for line in lines if line.strip()]
