"""The development data as it lies in `shared/data`; its README gives the shape and the metric."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

import msgspec

from benchmarks.run import Skipped

SETS = {"LoCoMo": "locomo-dev.json.gz", "RealMem": "realmem-dev.json.gz", "own": "own-dev.json.gz"}
MORE = {"own": Path(__file__).with_name("conversations.json.gz")}
"""42 conversations more of our own, three quarters of them agent work, half in five other languages."""
APART = timedelta(hours=3)
"""Between the beginnings of two sessions, where the data says only the day: longer than the silence that ends one."""
A_TURN = timedelta(minutes=1)


class Turn(msgspec.Struct, frozen=True):
    id: str
    speaker: str
    text: str


class Session(msgspec.Struct, frozen=True):
    id: str
    date: datetime
    turns: list[Turn]


class Question(msgspec.Struct, frozen=True):
    id: str
    question: str
    category: str
    evidence: list[str]
    visible_sessions: int


class Conversation(msgspec.Struct, frozen=True):
    id: str
    sessions: list[Session]
    questions: list[Question]
    kind: str = ""
    """Of our own: friends, assistant, agent-work."""
    language: str = "en"

    def began(self) -> list[datetime]:
        """When each session began: on its day, and after the one before it."""
        moments: list[datetime] = []
        for session in self.sessions:
            day = session.date.replace(tzinfo=UTC)
            moments.append(max(day, moments[-1] + APART) if moments else day)
        return moments

    def turns_through(self, visible_sessions: int) -> int:
        return sum(len(session.turns) for session in self.sessions[:visible_sessions])

    def questions_by_sight(self) -> list[tuple[int, list[Question]]]:
        """How many sessions may be searched, and the questions asked then."""
        in_order = sorted(self.questions, key=lambda question: question.visible_sessions)
        return [(seen, list(asked)) for seen, asked in groupby(in_order, lambda question: question.visible_sessions)]


def load(folder: Path, name: str) -> list[Conversation]:
    path = folder / SETS[name]
    if not path.exists():
        raise Skipped(f"the development data is not here: no {path} (say where it is with --data)")
    conversations = [one for file in (path, MORE.get(name)) if file for one in msgspec.json.decode(_unpacked(file))]
    for conversation in conversations:
        for one in (*conversation["sessions"], *conversation["questions"]):
            one["id"] = str(one["id"])  # in our own they are numbers
    return msgspec.convert(conversations, type=list[Conversation])


def _unpacked(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


def some_of(conversations: list[Conversation], *, questions: int) -> list[Conversation]:
    """The first conversation, with as many of its questions, spread evenly."""
    first = conversations[0]
    step = max(1, len(first.questions) // questions)
    chosen = first.questions[::step][:questions]
    last = max(question.visible_sessions for question in chosen)
    return [msgspec.structs.replace(first, sessions=first.sessions[:last], questions=chosen)]
