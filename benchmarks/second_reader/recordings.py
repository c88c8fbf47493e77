"""What a large model answered to the second reader's prompts, and how a prompt is made again from the data.

Texts of the data are not ours to keep, so a recording holds ids of turns; `tasks` gives them their words back.
"""

from __future__ import annotations

import gzip
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks.quality.data import A_TURN, Conversation
from offbook.models.protocols import Passage, ReadingTask
from offbook.search.results import CUT, passages

FILE = Path(__file__).with_name("recordings.json.gz")


class Candidate(msgspec.Struct, frozen=True, array_like=True):
    turn: str
    part: int | None = None
    """The passage of a long turn that was shown; None: all of it."""


class Recording(msgspec.Struct, frozen=True):
    set: str
    conversation: str
    question: str
    """Its id."""
    candidates: list[Candidate]
    """In the first order."""
    request: str
    """SHA-256 of the body that was answered."""
    answer: msgspec.Raw
    """As chat completions are sent."""


class Said(NamedTuple):
    text: str
    speaker: str
    ts: datetime


def load_recordings(path: Path = FILE) -> list[Recording]:
    return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=list[Recording])


def said_in(conversation: Conversation) -> dict[str, Said]:
    """Every turn, as the product tells of it."""
    found = {}
    for session, began in zip(conversation.sessions, conversation.began(), strict=True):
        for number, turn in enumerate(session.turns):
            role = turn.speaker.casefold().partition(":")[0]
            speaker = role if role in ("user", "assistant", "tool") else turn.speaker
            found[turn.id] = Said(turn.text.strip(), speaker, began + number * A_TURN)
    return found


def asked_at(conversation: Conversation, visible_sessions: int) -> datetime:
    """The time of the last turn that may be seen."""
    seen = list(zip(conversation.sessions, conversation.began(), strict=True))[:visible_sessions]
    session, began = next(pair for pair in reversed(seen) if pair[0].turns)
    return began + (len(session.turns) - 1) * A_TURN


def shown(text: str, part: int | None) -> str:
    if part is None:
        return text
    found = passages(text)
    return f"{f'{CUT} ' if part else ''}{found[part]}{f' {CUT}' if part < len(found) - 1 else ''}"


def task_of(recording: Recording, conversation: Conversation) -> ReadingTask:
    (question,) = [one for one in conversation.questions if one.id == recording.question]
    said = said_in(conversation)
    return ReadingTask(
        agent_id=conversation.id,
        query=question.question,
        asked_at=asked_at(conversation, question.visible_sessions),
        passages=tuple(
            Passage(text=shown(said[one.turn].text, one.part), speaker=said[one.turn].speaker, ts=said[one.turn].ts)
            for one in recording.candidates
        ),
    )


def digest(body: bytes) -> str:
    return sha256(body).hexdigest()
