"""Figures on the development data: silence for another's questions, the room that the memory takes, what is cut short.

The public part of it is for measuring only: nothing is fitted to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import msgspec
import uvloop

from benchmarks.memory.turns import prepared, settle, store, tell
from benchmarks.quality.data import A_TURN, Conversation, load
from offbook.api.embedded import open_memory
from offbook.api.memory import Memory
from offbook.model.sentences import sentences
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding
from offbook.model.turn import PreparedTurn
from offbook.model.types import Message, Role

WINDOW = 32_000
MOST_SHARE = 0.06
PERSONAS = 3
PROMPTS = 20
"""Of each persona."""
STRANGERS = 5
"""Questions of another conversation that each of our own is asked."""
LEAST_WORDS = 4
"""Of a sentence that says something."""
_WORD = re.compile(r"[^\W_]+")
CUTS = ("“…", "…”")
"""A quote that begins or ends within a text."""


def public_figures(data: Path, home: Path, *, has_model: bool) -> dict[str, float]:
    return uvloop.run(_figures(data, home, has_model=has_model))


async def _figures(data: Path, home: Path, *, has_model: bool) -> dict[str, float]:
    own, personas = load(data, "own"), load(data, "RealMem")[:PERSONAS]
    settings = Settings() if has_model else msgspec.structs.replace(Settings(), embedding=Embedding(model="none"))
    async with open_memory(home, settings=settings, environ={}) as memory:
        for conversation in (*own, *personas):
            await _feed(memory, conversation)
        tell(f"{len(own)} conversations and {len(personas)} personas fed")
        await settle(memory, [one.id for one in (*own, *personas)], has_model=has_model)
        strangers = await _strangers(memory, own, has_model=has_model)
        tell("the questions of others asked")
        pages = [(one, await prepared(memory, one.id, "", has_model=has_model, window=WINDOW)) for one in own]
        turns = [
            await prepared(memory, one.id, question.question, has_model=has_model, window=WINDOW)
            for one in personas
            for question in one.questions[:: max(1, len(one.questions) // PROMPTS)][:PROMPTS]
        ]
    return _about_strangers(strangers) | _about_pages(pages) | _about_personas(turns)


async def _strangers(memory: Memory, own: Sequence[Conversation], *, has_model: bool) -> list[PreparedTurn]:
    """The questions of each conversation, asked of the memory of the next."""
    return [
        await prepared(memory, other.id, question.question, has_model=has_model)
        for one, other in zip(own, [*own[1:], own[0]], strict=True)
        for question in one.questions[:: max(1, len(one.questions) // STRANGERS)][:STRANGERS]
    ]


def _about_strangers(turns: Sequence[PreparedTurn]) -> dict[str, float]:
    kinds = [{part.kind for part in turn.parts if part.section == "recall"} for turn in turns]
    return {
        "own-dev, another's questions: asked": len(turns),
        "… silent": fmean(not turn.entries for turn in turns),
        "… something recalled": fmean("recalled" in kind for kind in kinds),
        "… only the newest told": fmean("newest" in kind for kind in kinds),
    }


def _about_pages(pages: Sequence[tuple[Conversation, PreparedTurn]]) -> dict[str, float]:
    """How much of what is asked later stands on the page of a new session, before anything is asked."""
    told: list[bool] = []
    for conversation, turn in pages:
        texts = {turn.id: turn.text for session in conversation.sessions for turn in session.turns}
        said = [texts[one] for question in conversation.questions for one in question.evidence if one in texts]
        told += [holds(turn.memory, text) for text in said]
    return {
        "own-dev: messages that are asked about": len(told),
        "… a sentence of it on the memory page": fmean(told),
        "… mean of a 32k window that the page takes": fmean(turn.tokens.memory for _, turn in pages) / WINDOW,
    }


def holds(told: str, text: str) -> bool:
    """Whether a sentence of the text is told."""
    page, said = _plain(told), [_plain(one.text) for one in sentences(text)]
    return any(len(one.split()) >= LEAST_WORDS and one in page for one in said)


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def _about_personas(turns: Sequence[PreparedTurn]) -> dict[str, float]:
    lines = [line for turn in turns for part in turn.parts if part.kind == "recalled" for line in _lines(part.text)]
    return {
        "RealMem: turns prepared": len(turns),
        "… most of a 32k window that the memory takes": max(turn.tokens.memory for turn in turns) / WINDOW,
        "… mean of it": fmean(turn.tokens.memory for turn in turns) / WINDOW,
        "… lines recalled": len(lines),
        "… of these cut short": fmean(any(cut in line for cut in CUTS) for line in lines) if lines else 0.0,
        "… of the recall budget used": fmean(turn.tokens.recall / turn.tokens.budget for turn in turns),
    }


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("- ")]


async def _feed(memory: Memory, conversation: Conversation) -> None:
    for session_id, messages in messages_of(conversation):
        if messages:
            await store(memory, conversation.id, session_id, messages)


def messages_of(conversation: Conversation) -> list[tuple[str, list[Message]]]:
    """By session, as a host would send them."""
    return [
        (
            session.id,
            [
                Message(
                    id=turn.id,
                    role=_role(turn.speaker),
                    content=turn.text,
                    name=turn.speaker if _role(turn.speaker) == "user" and turn.speaker != "user" else None,
                    ts=began + number * A_TURN,
                )
                for number, turn in enumerate(session.turns)
            ],
        )
        for session, began in zip(conversation.sessions, conversation.began(), strict=True)
    ]


def _role(speaker: str) -> Role:
    named: dict[str, Role] = {"assistant": "assistant", "tool": "tool"}
    return named.get(speaker.casefold().partition(":")[0], "user")
