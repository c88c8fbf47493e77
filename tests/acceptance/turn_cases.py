"""The cases of tests/data/turns: what they are made of, and how one memory answers them all.

A case has an agent of its own; `others` are the agents beside it, and whatever they say holds a word of theirs that
must turn up in no answer. `copies` of a message are so many messages, `lines` of it one message of so many lines; `{n}`
is their number.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from offbook.api.embedded import open_parts
from offbook.api.memory import Memory
from offbook.model.home import Home
from offbook.model.settings import Settings
from offbook.model.turn import Intent, PreparedTurn
from offbook.model.types import Content, Message, Role, Value, now
from tests.unit.small_memory import caught_up

FOLDER = Path(__file__).parent.parent / "data" / "turns"
Kind = Literal["hostile", "sparse", "contradictory", "multilingual", "budget", "isolation"]

# ── what a case is ──


class Past(Value, frozen=True):
    session: str
    role: Role
    ago: str
    text: str | None = None
    content: Content | None = None
    name: str | None = None
    origin: str | None = None
    tool_call_id: str | None = None
    lines: int = 1
    copies: int = 1


class Other(Past, frozen=True, kw_only=True):
    """Of an agent beside that of the case: `<case>-<agent>`, or `as_agent` by that very name."""

    agent: str
    sentinel: str
    as_agent: str | None = None
    opened: bool = False
    """Its memory is open to others; that of the case's own agent is not."""


class Expect(Value, frozen=True):
    recalls: tuple[str, ...] = ()
    absent: tuple[str, ...] = msgspec.field(default=(), name="not")
    order: tuple[str, str] | None = None
    """What was said first, and what corrected it: where the first is shown, the second comes after it."""
    entries: Literal["some", "none", "fallback", "any"] = "any"
    intent: Intent | None = None


class Case(Value, frozen=True):
    id: str
    kind: Kind
    history: list[Past]
    session: str
    prompt: str
    expect: Expect
    others: tuple[Other, ...] = ()
    current_tokens: int | None = None
    context_window: int | None = None
    agent: str | None = None

    @property
    def agent_id(self) -> str:
        return self.agent or self.id


def read_cases() -> list[Case]:
    decoder = msgspec.json.Decoder(Case)
    files = sorted(FOLDER.glob("*.jsonl"))
    return [decoder.decode(line) for file in files for line in file.read_text("utf-8").splitlines()]


# ── how it is answered ──


class Answer(NamedTuple):
    case: Case
    turn: PreparedTurn
    key: bytes


def messages_of(past: Sequence[Past], at: datetime) -> Iterator[tuple[Past, Message]]:
    """In the order given; those of one moment a second apart."""
    seconds: Counter[str] = Counter()
    for one, copy in [(each, copy) for each in past for copy in range(1, each.copies + 1)]:
        content = one.content
        if one.text is not None:
            content = "\n".join(one.text.replace("{n}", str(copy + line)) for line in range(one.lines))
        assert content is not None
        seconds[one.ago] += 1
        yield (
            one,
            Message(
                role=one.role,
                content=content,
                ts=at - ago(one.ago) + timedelta(seconds=seconds[one.ago]),
                name=one.name,
                origin=one.origin,
                tool_call_id=one.tool_call_id,
            ),
        )


def chars_of(case: Case) -> int:
    return sum(len(str(message.content)) for _, message in messages_of(case.history, now()))


def ago(said: str) -> timedelta:
    unit = {"d": "days", "h": "hours", "m": "minutes"}[said[-1]]
    return timedelta(**{unit: int(said[:-1])})


async def told(memory: Memory, agent_id: str, past: Sequence[Past], at: datetime) -> None:
    for session, group in itertools.groupby(messages_of(past, at), key=lambda pair: pair[0].session):
        await memory.on_message(memory.scope(session, agent_id), [message for _, message in group])


async def answered(home: Path, cases: Sequence[Case], settings: Settings, *, patience: float = 540.0) -> list[Answer]:
    at = now()
    async with open_parts(Home(home), settings) as (memory, store):
        key = await store.installation_key()
        for case in cases:
            await told(memory, case.agent_id, case.history, at)
            for other in case.others:
                agent_id = other.as_agent or f"{case.id}-{other.agent}"
                await told(memory, agent_id, [other], at)
                if other.opened:
                    await memory.cross(agent_id, enabled=True)
        await caught_up(memory, patience)
        return [
            Answer(
                case,
                await memory.prepare_turn(
                    memory.scope(case.session, case.agent_id),
                    case.prompt,
                    current_tokens=case.current_tokens,
                    context_window=case.context_window,
                    explain=True,
                ),
                key,
            )
            for case in cases
        ]
