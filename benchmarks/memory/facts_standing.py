"""Facts standing: what can still be understood in one line of the summaries that the product makes without a model.

A fact stands in a line of at least five words that holds all words of the fact and another content word of the message
that says it. Words scattered over fragments do not count. LoCoMo's answers are short: their content words are the
fact. RealMem's are whole replies: of the sentence that the reply draws on most, the rarest words that it takes up.
Facts that do not stand in the message itself are left out.

    python -m benchmarks.memory.facts_standing --data ../shared/data [--conversations 1] [--show persona-0]
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import logging
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from math import log
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import msgspec
import structlog

from benchmarks.quality.data import A_TURN, SETS, Conversation, Session, Turn
from offbook.api.embedded import open_parts
from offbook.api.memory import Memory
from offbook.context.time_text import day_of_heading
from offbook.log.store import Store
from offbook.model.home import Home
from offbook.model.sentences import sentences
from offbook.model.settings import Settings
from offbook.model.settings.sections import Embedding
from offbook.model.summary import Summary
from offbook.model.types import Message
from offbook.search.words import STOP_WORDS

ADVERSARIAL = "adversarial"
LEAST_WORDS = 5
SHORT_WORDS = 3
FACT_WORDS = 4
"""Of a reply: the rarest words it takes up of one sentence."""
LEVELS = (1, 2, 3)
USER = "They: "
POLL_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 1_800.0

_WORD = re.compile(r"[^\W_]+")


class AskedQuestion(msgspec.Struct, frozen=True):
    category: str
    evidence: list[str]
    answer: str | int | float | None = None


class Told(msgspec.Struct, frozen=True):
    """A conversation with the answers to what is asked about it."""

    id: str
    sessions: list[Session]
    questions: list[AskedQuestion]


class Fact(NamedTuple):
    words: frozenset[str]
    around: frozenset[str]
    """The other content words of the message that says it."""
    session_id: str


class Standing(NamedTuple):
    """Of one level: how many of the facts stand, of all and of those that its summaries stand for; how it reads."""

    facts: int
    standing: int
    covered: int
    standing_covered: int
    lines: int
    short_lines: int
    chars: int
    user_chars: int


# ── facts ─────────────────────────────────────────────────────────────────────────────────────


def content_words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) - STOP_WORDS


def facts_of(told: Told, *, is_reply: bool) -> list[Fact]:
    turns = {turn.id: (session.id, turn) for session in told.sessions for turn in session.turns}
    counts = Counter(word for _, turn in turns.values() for word in content_words(turn.text))
    found: list[Fact] = []
    for question in told.questions:
        if question.category == ADVERSARIAL or question.answer is None:
            continue
        for session_id, turn in (turns[id_] for id_ in question.evidence if id_ in turns):
            answer = content_words(str(question.answer))
            words = _taken_up(answer, turn, counts, len(turns)) if is_reply else answer
            around = content_words(turn.text) - words
            if words and words <= content_words(turn.text) and around:
                found.append(Fact(words, around, session_id))
                break
    return found


def _taken_up(answer: frozenset[str], turn: Turn, counts: Counter[str], messages: int) -> frozenset[str]:
    def rarity(word: str) -> float:
        return log(messages / counts[word]) if word in counts else 0.0

    taken = [answer & content_words(one.text) for one in sentences(turn.text)]
    best = max(taken, key=lambda words: sum(map(rarity, words)), default=frozenset[str]())
    rarest = sorted(best, key=lambda word: (-rarity(word), word))[:FACT_WORDS]
    return frozenset(rarest) if len(rarest) >= 3 else frozenset()


# ── summaries ─────────────────────────────────────────────────────────────────────────────────


async def summaries_of(told: Told, home: Path) -> list[Summary]:
    """All that the product makes of it, sessions long past, without a model and without embeddings."""
    settings = Settings(embedding=Embedding(model="none"))
    async with open_parts(Home(home), settings) as (memory, store):
        began = Conversation(told.id, told.sessions, []).began()
        for session, at in zip(told.sessions, began, strict=True):
            messages = [message_of(turn, at + number * A_TURN) for number, turn in enumerate(session.turns)]
            if messages:
                await memory.on_message(memory.scope(session.id, told.id), messages)
        await _settled(memory, store, told.id)
        found: list[Summary] = []
        for level in LEVELS:
            before: str | None = None
            while page := await store.summaries(told.id, level=level, before=before):
                before = page[-1].id
                found += page
        return sorted(found, key=lambda one: (one.draft.level, one.draft.first_at, one.id))


def message_of(turn: Turn, at: datetime) -> Message:
    is_tool = turn.speaker.startswith("tool:")
    is_role = is_tool or turn.speaker in ("user", "assistant")
    return Message(
        id=turn.id,
        role="tool" if is_tool else "assistant" if turn.speaker == "assistant" else "user",
        content=turn.text,
        name=turn.speaker.removeprefix("tool:") if is_tool or not is_role else None,
        ts=at,
    )


async def _settled(memory: Memory, store: Store, agent_id: str) -> None:
    """Until nothing waits and no summary has come for a while."""
    until = time.monotonic() + LONGEST_WAIT_SECONDS
    counts: dict[int, int] = {}
    still = 0
    while still < 15:
        await asyncio.sleep(POLL_SECONDS)
        status = await memory.status(agent_id)
        now = await store.summary_counts(agent_id)
        is_idle = not status.summaries.waiting and not (await memory.ping()).backlog
        still = still + 1 if is_idle and now == counts and now else 0
        counts = now
        if time.monotonic() > until:
            raise RuntimeError(f"not summarised: {status.summaries}")


# ── measuring ─────────────────────────────────────────────────────────────────────────────────


def lines_of(texts: Iterable[str]) -> list[str]:
    """Without the headings of days."""
    rows = (row for text in texts for row in text.split("\n") if row)
    return [row for row in rows if day_of_heading(row, date.min) is None]


def standing(facts: Sequence[Fact], summaries: Sequence[Summary], level: int) -> Standing:
    """Measures one level."""
    drafts = [one.draft for one in summaries if one.draft.level == level]
    lines = lines_of(draft.text for draft in drafts)
    held = [content_words(line) for line in lines if len(line.split()) >= LEAST_WORDS]
    by_word: dict[str, set[int]] = {}
    for at, words in enumerate(held):
        for word in words:
            by_word.setdefault(word, set()).add(at)
    covered = {span.session_id for draft in drafts for span in draft.spans}
    stands = [_stands(fact, held, by_word) for fact in facts]
    is_covered = [fact.session_id in covered for fact in facts]
    return Standing(
        facts=len(facts),
        standing=sum(stands),
        covered=sum(is_covered),
        standing_covered=sum(one and two for one, two in zip(stands, is_covered, strict=True)),
        lines=len(lines),
        short_lines=sum(len(line.split(": ", 1)[-1].split()) <= SHORT_WORDS for line in lines),
        chars=sum(map(len, lines)),
        user_chars=sum(len(line) for line in lines if line.startswith(USER)),
    )


def _stands(fact: Fact, held: Sequence[frozenset[str]], by_word: dict[str, set[int]]) -> bool:
    together = set.intersection(*(by_word.get(word, set()) for word in fact.words))
    return any(held[at] & fact.around for at in together)


def load(folder: Path, name: str) -> list[Told]:
    with gzip.open(folder / SETS[name]) as file:
        return msgspec.json.decode(file.read(), type=list[Told])


def measured(
    folder: Path, name: str, conversations: int, show: Path | None = None
) -> dict[int, tuple[float, float, float, float]]:
    """By level: the share of facts standing, of those its summaries cover, the user's share, that of short lines."""
    found: dict[int, list[Standing]] = {level: [] for level in LEVELS}
    for told in load(folder, name)[:conversations]:
        with tempfile.TemporaryDirectory() as home:
            summaries = asyncio.run(summaries_of(told, Path(home)))
        facts = facts_of(told, is_reply=name == "RealMem")
        for level in LEVELS:
            found[level].append(standing(facts, summaries, level))
        if show is not None:
            show.mkdir(parents=True, exist_ok=True)
            for one in summaries:
                (show / f"{told.id}-{one.id}.txt").write_text(one.draft.text)
    return {level: _shares(all_) for level, all_ in found.items()}


def _shares(found: Sequence[Standing]) -> tuple[float, float, float, float]:
    return (
        fmean(one.standing / max(1, one.facts) for one in found),
        sum(one.standing_covered for one in found) / max(1, sum(one.covered for one in found)),
        sum(one.user_chars for one in found) / max(1, sum(one.chars for one in found)),
        sum(one.short_lines for one in found) / max(1, sum(one.lines for one in found)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--conversations", type=int, default=100)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--show", type=Path, help="a folder to write the summaries to")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    for name in given.sets:
        started = time.process_time()
        for level, shares in measured(given.data, name, given.conversations, given.show).items():
            standing_, covered, user, short = shares
            print(
                f"{name} L{level}: facts standing {standing_:.3f}, of those covered {covered:.3f}, "
                f"the user's characters {user:.3f}, lines of at most {SHORT_WORDS} words {short:.3f}"
            )
        print(f"{name}: {time.process_time() - started:.0f} s of CPU")


if __name__ == "__main__":
    main()
