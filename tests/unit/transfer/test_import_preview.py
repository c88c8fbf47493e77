"""A dry run says what the import does: the same of every record, and in the same words."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from offbook.api.memory import Memory
from offbook.model.lesson import LessonSource
from offbook.model.receipt import FORGOTTEN
from offbook.model.record import (
    AgentRecord,
    LessonRecord,
    MarkRecord,
    MessageRecord,
    Record,
    RecordedSpan,
    SessionRecord,
    SummaryRecord,
    name_of,
)
from offbook.model.types import Message
from offbook.transfer.held_memory import Held
from offbook.transfer.record_files import batches
from offbook.transfer.record_import import ImportPreview
from tests.unit.small_memory import small_memory, talk, user
from tests.unit.transfer.test_transfer import lived, pages, settled

AT = datetime(2026, 5, 10, 12, 0, 0, 123_456, tzinfo=UTC)
Fate = tuple[int, int, list[tuple[str, str]]]


def foreseen(held: Held, records: Sequence[Record], size: int) -> Fate:
    foreseeing = ImportPreview(held)
    taken, there, refused = 0, 0, []
    for batch in batches(iter(records), most_records=size):
        for record, admission in zip(batch.records, foreseeing.batch(batch), strict=True):
            taken += admission.is_taken
            there += not admission.is_taken and admission.refused is None
            refused += [] if admission.refused is None else [(name_of(record), admission.refused)]
    return taken, there, refused


async def imported(memory: Memory, records: Sequence[Record], size: int, agent_id: str = "main") -> Fate:
    taken, there, refused = 0, 0, []
    for batch in batches(iter(records), most_records=size):
        answer = await memory.import_records(agent_id, batch.records, follows=batch.follows)
        taken, there = taken + answer.taken, there + answer.already_there
        refused += [(each.record, each.reason) for each in answer.refused]
    return taken, there, refused


# ── whole lives ───────────────────────────────────────────────────────────────────────────────


async def nothing(memory: Memory, records: Sequence[Record]) -> None:
    assert records


async def all_of_it(memory: Memory, records: Sequence[Record]) -> None:
    await memory.import_records("main", records)


async def some_of_it(memory: Memory, records: Sequence[Record]) -> None:
    await memory.import_records("main", records[:50])


async def another_first_message(memory: Memory, _: Sequence[Record]) -> None:
    await memory.on_message(memory.scope("chat"), [user("Something else altogether.")])


async def the_same_words_at_another_time(memory: Memory, _: Sequence[Record]) -> None:
    await talk(memory, 35)
    await settled(memory)


async def all_but_what_was_forgotten(memory: Memory, records: Sequence[Record]) -> None:
    await memory.import_records("main", records, done=True)
    await settled(memory)
    await memory.forget("main", matching="module_3.py", reason="test")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    return asyncio.run(lived(tmp_path_factory.mktemp("one")))


@pytest.mark.parametrize(
    ("before", "size"),
    [
        (nothing, 7),
        (all_of_it, 500),
        (some_of_it, 7),
        (another_first_message, 500),
        (the_same_words_at_another_time, 7),
        (all_but_what_was_forgotten, 500),
    ],
)
async def test_a_life_that_meets_another(
    tmp_path: Path,
    records: list[Record],
    before: Callable[[Memory, Sequence[Record]], Awaitable[None]],
    size: int,
) -> None:
    async with small_memory(tmp_path) as memory:
        await before(memory, records)
        held = Held(() if before is nothing else await pages(memory))
        said = foreseen(held, records, size)
        assert said == await imported(memory, records, size)
        assert sum(said[:2]) + len(said[2]) == len(records)
        if before is nothing:
            assert said == (len(records), 0, [])


# ── anything at all ───────────────────────────────────────────────────────────────────────────


def any_records(chance: Random) -> list[Record]:
    """An export such as no provider would make: few words and times, so that much is alike and little fits."""
    found: list[Record] = [AgentRecord(agent_id="x", cross_search=chance.choice([None, None, True, False]))]
    lengths = {name: chance.randint(0, 6) for name in chance.sample(["chat", "子🦉", "third"], chance.randint(1, 3))}
    for name, length in lengths.items():
        if chance.random() < 0.9:
            found.append(SessionRecord(session_id=name, started_at=AT))
        for seq in range(1, length + 1):
            if chance.random() < 0.95:
                found.append(any_message(chance, name, seq))
            if chance.random() < 0.3:
                kind = chance.choice(["end", "start"])
                reason = chance.choice([None, "idle"])
                found.append(MarkRecord(session_id=name, seq=seq, kind=kind, at=AT, reason=reason))
    names = list(lengths)
    found += [any_summary(chance, names, f"L1-{number:04}", []) for number in range(1, chance.randint(1, 5))]
    found += [any_summary(chance, names, "L2-0001", ["L1-0001", "L1-0002"]) for _ in range(chance.randint(0, 1))]
    found += [any_lesson(chance, names, number) for number in range(1, chance.randint(1, 4))]
    return found


def any_message(chance: Random, session_id: str, seq: int) -> MessageRecord:
    secret = f"my token is ghp_{'a1B2c3' * 6}"
    text = chance.choice(["tea", "tea", "tea", "tea", "coffee", secret])
    id_ = chance.choice([None, f"m{seq}", f"m{seq}", f"m{chance.randint(1, 3)}"])
    at = AT + timedelta(minutes=seq + (chance.random() < 0.1))
    is_forgotten = chance.random() < 0.1
    message = Message(role="user", content="" if is_forgotten else text, id=id_, ts=at)
    noise = FORGOTTEN if is_forgotten else None
    return MessageRecord(session_id=session_id, seq=seq, message=message, noise=noise)


def any_summary(chance: Random, sessions: Sequence[str], id_: str, sources: list[str]) -> SummaryRecord:
    spans = []
    for name in chance.sample(sessions, chance.randint(1, min(2, len(sessions)))):
        first = chance.randint(1, 4)
        last = first if chance.random() < 0.3 else first + chance.randint(0, 2)
        times = {"first_at": AT + timedelta(minutes=first), "last_at": AT + timedelta(minutes=last)}
        spans.append(RecordedSpan(session_id=name, first_seq=first, last_seq=last, **times))
    return SummaryRecord(
        id=id_,
        level=int(id_[1]),
        spans=spans,
        text="x",
        rank=[0],
        brief="x",
        source_messages=1,
        source_tokens=1,
        tokens=1,
        first_at=AT,
        last_at=AT,
        summarizer="extractive",
        prompt_version="1",
        fingerprint="f",
        sources=sources,
    )


def any_lesson(chance: Random, sessions: Sequence[str], number: int) -> LessonRecord:
    sources = [
        LessonSource(session_id=chance.choice(sessions), seq=seq, at=AT + timedelta(minutes=seq))
        for seq in chance.sample(range(1, 5), chance.randint(0, 2))
    ]
    key = chance.choice(["tea", "coffee", "milk"])
    return LessonRecord(
        id=f"lesson-{number:04}",
        kind="fact",
        text=key,
        key=key,
        status="learnt",
        confidence=0.5,
        first_seen=AT,
        last_seen=AT,
        times=1,
        learnt_by="rules",
        sources=sources,
    )


async def test_whatever_meets_whatever(tmp_path: Path) -> None:
    """Many agents of one memory: each takes one export, and then another."""
    reasons: set[str] = set()
    async with small_memory(tmp_path) as memory:
        for seed in range(15):
            chance = Random(seed)
            agent_id, held = f"agent {seed}", Held()
            for _ in range(2):
                records, size = any_records(chance), chance.choice([1, 3, 500])
                told = foreseen(held, records, size)
                assert told == await imported(memory, records, size, agent_id), f"seed {seed}"
                reasons |= {re.sub(r"L?\d\S*|'.*?'", "…", reason) for _, reason in told[2]}
                held = Held(await pages(memory, agent_id))
    assert len(reasons) >= 10, reasons  # else it tried too little
