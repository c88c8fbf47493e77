"""The product as it is: fed session by session, asked as soon as what may be searched is in and embedded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from benchmarks.quality.data import A_TURN, Conversation, Session, Turn
from benchmarks.quality.metric import MOST, Returned, Score, scored
from offbook.api.embedded import open_memory
from offbook.api.memory import Memory
from offbook.model.memory_entry import MemoryEntry, Recollection
from offbook.model.settings import Settings
from offbook.model.types import Message

POLL_SECONDS = 0.2
LONGEST_WAIT_SECONDS = 1_800.0
MOST_TIMES_ASKED = 50
ONE_SESSION = "everything"


@dataclass(frozen=True)
class Feeding:
    """How a host may feed it, and ask."""

    has_ts: bool = True
    as_roles: bool = False
    """The first speaker as the user, the other as the assistant."""
    has_names: bool = True
    in_one_session: bool = False
    at_the_time: bool = False
    """Asked with `at`: the time of the last turn that may be seen."""


ToldMessage = Callable[[int], None]


async def scores_of(
    conversation: Conversation, home: Path, feedings: list[Feeding], tell: ToldMessage
) -> list[list[Score]]:
    """For each of the feedings, which may differ in how is asked only; `tell` hears of each question."""
    feeding = feedings[0]
    agent = conversation.id
    scores: list[list[Score]] = [[] for _ in feedings]
    async with open_memory(home, settings=Settings(), environ={}) as memory:
        fed = Fed(memory, conversation, feeding)
        for seen, questions in conversation.questions_by_sight():
            await fed.through(seen)
            for question in questions:
                for which, one in enumerate(feedings):
                    at = fed.last_ts if one.at_the_time else None
                    found, milliseconds = await recalled(memory, agent, question.question, at)
                    answer = [fed.returned(entry) for entry in found.entries]
                    scores[which].append(scored(answer, question.evidence, question.category, milliseconds))
                tell(1)
    return scores


async def recalled(memory: Memory, agent: str, question: str, at: datetime | None) -> tuple[Recollection, float]:
    """Asked again where the model had no time: what is measured is what it finds, not how busy the machine is."""
    for _ in range(MOST_TIMES_ASKED):
        started = time.perf_counter()
        found = await memory.recall(memory.scope("asking", agent), question, limit=MOST, at=at)
        milliseconds = (time.perf_counter() - started) * 1_000
        if not found.degraded:
            return found, milliseconds
        await asyncio.sleep(0.1)
    raise RuntimeError(f"{agent}, {question!r}: {found.degraded}")


class Fed:
    """What of a conversation is in, and which turn each message is."""

    def __init__(self, memory: Memory, conversation: Conversation, feeding: Feeding) -> None:
        self._memory = memory
        self._conversation = conversation
        self._feeding = feeding
        self._turns: dict[str, list[str]] = {}
        self._sessions_in = 0
        self._began = conversation.began()
        self._user = conversation.sessions[0].turns[0].speaker
        self.last_ts = self._began[0]

    async def through(self, sessions: int) -> None:
        for session, began in list(zip(self._conversation.sessions, self._began, strict=True))[
            self._sessions_in : sessions
        ]:
            await self._feed(session, began)
        self._sessions_in = sessions
        await self._embedded()

    def returned(self, entry: MemoryEntry) -> Returned:
        turns = self._turns[entry.session_id][entry.span.first_seq - 1 : entry.span.last_seq]
        return Returned(tuple(turns), len(entry.text))

    async def _feed(self, session: Session, began: datetime) -> None:
        name = ONE_SESSION if self._feeding.in_one_session else session.id
        scope = self._memory.scope(name, self._conversation.id)
        messages = [self._message(turn, began + number * A_TURN) for number, turn in enumerate(session.turns)]
        if messages:
            receipt = await self._memory.on_message(scope, messages)
            assert receipt.accepted == len(messages), receipt
            self._turns.setdefault(name, []).extend(turn.id for turn in session.turns)
            self.last_ts = began + (len(messages) - 1) * A_TURN

    def _message(self, turn: Turn, at: datetime) -> Message:
        role = turn.speaker.casefold().partition(":")[0]
        is_role = role in ("user", "assistant", "tool")
        if is_role:
            pass
        elif self._feeding.as_roles:
            role = "user" if turn.speaker == self._user else "assistant"
        else:
            role = "user"
        return Message(
            id=turn.id,
            role=role,
            content=turn.text,
            name=None if is_role or not self._feeding.has_names else turn.speaker,
            ts=at if self._feeding.has_ts else None,
        )

    async def _embedded(self) -> None:
        """`backlog` is 0 also while news are gathered, so the index is asked as well."""
        until = time.monotonic() + LONGEST_WAIT_SECONDS
        while True:
            if not (await self._memory.ping()).backlog:
                index = (await self._memory.status(self._conversation.id)).index
                if index.entries and index.model and not index.waiting:
                    return
                if index.trouble:
                    raise RuntimeError(f"not embedded: {index.trouble}")
            if time.monotonic() > until:
                raise RuntimeError("not embedded in time")
            await asyncio.sleep(POLL_SECONDS)
