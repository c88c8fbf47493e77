"""`python -m benchmarks.second_reader.collect DATA FOLDER`: the prompts of 100 development questions, as the product
sends them, for whoever answers them. What is found is that of a real, deep recall; the evidence is not looked at.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import structlog
import uvloop

from benchmarks.quality import APART
from benchmarks.quality.data import Conversation, Question, load
from benchmarks.quality.product import Fed, Feeding
from benchmarks.second_reader.endpoint import MOST, answering, completion, settings_for
from benchmarks.second_reader.recordings import Candidate, asked_at, digest, said_in, shown
from offbook.api.embedded import open_memory
from offbook.api.memory import Memory
from offbook.model.memory_entry import MemoryEntry, Recollection
from offbook.model.types import Scope
from offbook.search.results import passages

SEED = 23
WANTED = {"own": (12, 3), "LoCoMo": (3, 12), "RealMem": (2, 10)}
"""Of each set, from how many conversations, and how many questions of each."""
MOST_SESSIONS = {"RealMem": 80}
"""Before a question that may be drawn: a persona has 200 sessions, which take long to embed."""
POLL_SECONDS = 0.2
NOTHING_NAMED = '{"order": []}'


def sampled(name: str, conversations: list[Conversation]) -> list[tuple[Conversation, list[Question]]]:
    chance = random.Random(SEED)
    count, each = WANTED[name]
    found = []
    for conversation in chance.sample(conversations, count):
        asked = [question for question in conversation.questions if question.category != APART]
        asked = [question for question in asked if question.visible_sessions <= MOST_SESSIONS.get(name, 1_000)]
        found.append((conversation, chance.sample(asked, each)))
    return found


class FedSoon(Fed):
    """Asked as soon as all is embedded."""

    async def _embedded(self) -> None:
        while True:
            index = (await self._memory.status(self._conversation.id)).index
            if index.entries and index.model and not index.waiting:
                return
            await asyncio.sleep(POLL_SECONDS)


async def recalled(memory: Memory, scope: Scope, query: str, at: datetime) -> Recollection:
    """Asked again where the index had no time: what is collected does not depend on how busy the machine is."""
    while True:
        found = await memory.recall(scope, query, limit=MOST, at=at, depth="deep", preview=True)
        if not any(note.startswith("text:") for note in found.degraded):
            return found
        await asyncio.sleep(POLL_SECONDS)


async def collect(name: str, conversation: Conversation, questions: list[Question], folder: Path) -> list[Any]:
    made = []
    said = said_in(conversation)
    with answering(lambda _: (200, completion(NOTHING_NAMED))) as (url, bodies):
        async with open_memory(folder / f"home-{conversation.id}", settings=settings_for(url), environ={}) as memory:
            fed = FedSoon(memory, conversation, Feeding())
            for question in sorted(questions, key=lambda one: one.visible_sessions):
                await fed.through(question.visible_sessions)
                at = asked_at(conversation, question.visible_sessions)
                assert at == fed.last_ts
                scope = memory.scope("asking", conversation.id)
                found = await recalled(memory, scope, question.question, at)
                if not found.degraded and len(found.entries) < 2:
                    print(name, conversation.id, question.id, "nothing to order", flush=True)
                    continue
                if found.degraded:
                    raise RuntimeError(f"{conversation.id}, {question.id}: {found.degraded}")
                candidates = [_candidate(entry, fed, said) for entry in found.entries]
                content = msgspec.json.decode(bodies[-1])["messages"][0]["content"]
                made.append(
                    {
                        "set": name,
                        "conversation": conversation.id,
                        "question": question.id,
                        "candidates": candidates,
                        "request": digest(bodies[-1]),
                        "prompt": content,
                    }
                )
                (folder / f"{name}-{conversation.id}.json").write_bytes(msgspec.json.encode(made))
                print(name, conversation.id, question.id, len(candidates), len(content), flush=True)
    return made


def _candidate(entry: MemoryEntry, fed: Fed, said: Any) -> Candidate:
    (turn,) = fed.returned(entry).turns
    text = said[turn].text
    if entry.text == text:
        return Candidate(turn)
    for part in range(len(passages(text))):
        if shown(text, part) == entry.text:
            return Candidate(turn, part)
    raise RuntimeError(f"{turn}: what was shown is no passage of it: {entry.text!r}")


def main() -> None:
    data, folder = Path(sys.argv[1]), Path(sys.argv[2])
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    for name in WANTED:
        if len(sys.argv) > 3 and name not in sys.argv[3:]:
            continue
        for conversation, questions in sampled(name, load(data, name)):
            if (folder / f"{name}-{conversation.id}.json").exists():
                continue
            uvloop.run(collect(name, conversation, questions, folder))


if __name__ == "__main__":
    main()
