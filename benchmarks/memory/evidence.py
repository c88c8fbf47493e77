"""How much of what an answer needs `prepareTurn` tells: the messages that the questions of the development data go
back to, each asked when only the sessions before it were there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from statistics import fmean

import msgspec
import uvloop

from benchmarks.memory.public import WINDOW, holds, messages_of
from benchmarks.memory.turns import prepared, store, tell
from benchmarks.quality.data import Conversation, load
from offbook.api.embedded import open_memory
from offbook.api.memory import Memory
from offbook.model.settings import Settings
from offbook.model.settings.sections import Search, TurnSettings
from offbook.model.turn import PreparedTurn

SETS = {"LoCoMo": 5, "RealMem": 2}
"""And how many conversations of each: a persona takes five minutes."""
UNANSWERABLE = "adversarial"
PATIENT = timedelta(seconds=60)
"""What is measured is what is told, not how fast this machine is."""
POLL_SECONDS = 0.05


def told_evidence(data: Path, home: Path) -> dict[str, float]:
    return uvloop.run(_figures(data, home))


async def _figures(data: Path, home: Path) -> dict[str, float]:
    patient = {"turn": TurnSettings(deadline=PATIENT), "search": Search(deadline=PATIENT)}
    found: dict[str, float] = {}
    async with open_memory(home, settings=msgspec.structs.replace(Settings(), **patient), environ={}) as memory:
        for name, count in SETS.items():
            asked: list[tuple[Sequence[str], PreparedTurn]] = []
            for conversation in load(data, name)[:count]:
                asked += await _asked(memory, conversation)
                tell(f"{name}, {conversation.id}: {len(asked)} questions asked")
            found |= _about(name, asked)
    return found


async def _asked(memory: Memory, conversation: Conversation) -> list[tuple[Sequence[str], PreparedTurn]]:
    """The texts that each question goes back to, and the turn that was prepared for it."""
    texts = {turn.id: turn.text for session in conversation.sessions for turn in session.turns}
    sessions = iter(messages_of(conversation))
    fed, asked = 0, []
    for seen, questions in conversation.questions_by_sight():
        for session_id, messages in (next(sessions) for _ in range(fed, seen)):
            if messages:
                await store(memory, conversation.id, session_id, messages)
        fed = max(fed, seen)
        while (await memory.ping()).backlog:
            await asyncio.sleep(POLL_SECONDS)
        for question in questions:
            evidence = [texts[one] for one in question.evidence if one in texts]
            if evidence and question.category != UNANSWERABLE:
                turn = await prepared(memory, conversation.id, question.question, has_model=True, window=WINDOW)
                asked.append((evidence, turn))
    return asked


def _about(name: str, asked: Sequence[tuple[Sequence[str], PreparedTurn]]) -> dict[str, float]:
    recalled = [[holds(turn.recall, one) for one in evidence] for evidence, turn in asked]
    told = [[holds(f"{turn.recall}\n{turn.memory}", one) for one in evidence] for evidence, turn in asked]
    return {
        f"{name}: questions asked": len(asked),
        "… some of what they go back to in the recall text": fmean(map(any, recalled)),
        "… mean share of it": fmean(map(fmean, recalled)),
        "… some of it in the recall text or on the page": fmean(map(any, told)),
        "… mean characters of the recall text": round(fmean(len(turn.recall) for _, turn in asked)),
    }
