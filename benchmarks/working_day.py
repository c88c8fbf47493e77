"""A working day of an agent: what is said in it, and the same day with an agent that compacts by itself."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from benchmarks.large_memory import Language
from offbook.client.slot import tokens_of
from offbook.context.digest import SpokenMessage, analyse, digest, written
from offbook.model.content import render
from offbook.model.settings.sections import Compaction, MemoryCompaction
from offbook.model.types import Message
from offbook.models.tokens import CHARS_PER_TOKEN

WINDOW = 200_000
THRESHOLD = MemoryCompaction().threshold
MODEL_SECONDS = 5.0
READ_TOKENS_PER_SECOND, WRITTEN_TOKENS_PER_SECOND = 10_000, 80
"""Of the model that is asked to compact: what it takes besides its first word."""
SUMMARY_TOKENS = 2_000
KEPT_MESSAGES = Compaction().fallback_messages
PRINTED_CHARS = (600, 5_500)


class Fact(NamedTuple):
    """Said once. `question` asks for it in other words than it was told in."""

    turn: int
    identifier: str
    told: str
    question: str


class Compacted(NamedTuple):
    """One compaction, or swap."""

    turn: int
    tokens_before: int
    tokens_after: int
    waited_seconds: float
    known: float
    """The share of the facts told so far that is in the context right after."""


# ── what is said ──────────────────────────────────────────────────────────────────────────────


def facts_of(turns: int, count: int) -> list[Fact]:
    chance = random.Random("facts")
    words = Language(11).rare_words(2 * count)
    facts = []
    for number in range(count):
        first, second = words[2 * number : 2 * number + 2]
        name, identifier = f"{first} {second}", f"{chance.choice('BKQRTZ')}{chance.randrange(10**5, 10**6)}-{number}"
        told = f"The booking reference of the {name} delivery is {identifier}."
        question = f"What is the booking reference of the {name} delivery?"
        facts.append(Fact(1 + number * (turns - 1) // count, identifier, told, question))
    return facts


def turns_of(turns: int, facts: Sequence[Fact]) -> Iterator[list[Message]]:
    """What comes in each turn: a question, sometimes a tool's call and what it printed, an answer."""
    language = Language(5)
    chance = random.Random("turns")
    told = {fact.turn: fact.told for fact in facts}
    texts: list[str] = []
    for turn in range(1, turns + 1):
        if len(texts) < 40:
            texts += [text.text for text in language.texts(2_000)]
        asked = f"{texts.pop()} {told.get(turn, '')}".strip()
        yield [Message(role="user", content=asked), *_worked(turn, texts, chance), _answered(texts, chance)]


def _worked(turn: int, texts: list[str], chance: random.Random) -> list[Message]:
    if chance.random() > 0.4:
        return []
    call = {"type": "toolCall", "id": f"call-{turn}", "name": "exec", "arguments": {"command": f"look {turn}"}}
    room = chance.randint(*PRINTED_CHARS)
    printed = ""
    while len(printed) < room:
        printed += texts.pop() + "\n" if texts else "…" * room
    return [
        Message(role="assistant", content=[call]),
        Message(role="tool", name="exec", content=printed[:room], tool_call_id=f"call-{turn}"),
    ]


def _answered(texts: list[str], chance: random.Random) -> Message:
    said = " ".join(texts.pop() for _ in range(min(len(texts), chance.choice((1, 2, 4)))))
    return Message(role="assistant", content=said or "Done.")


def known_share(messages: Sequence[Message], facts: Sequence[Fact]) -> float:
    """Of these facts, how many are in a context."""
    text = "\n".join(map(render, messages))
    return fmean(fact.identifier in text for fact in facts) if facts else 1.0


# ── compacting by itself ──────────────────────────────────────────────────────────────────────


def first_sentences(messages: Sequence[Message], max_chars: int) -> str:
    """The first sentence of as many messages as there is room for, evenly spread."""
    sentences = [re.split(r"(?<=[.!?])\s", render(message), maxsplit=1)[0][:200] for message in messages]
    every = max(1, -(-sum(map(len, sentences)) // max_chars))
    return "\n".join(sentences[::every])[:max_chars]


def our_digest(messages: Sequence[Message], max_chars: int) -> str:
    """As our own extractive summarizer would write it: the best there is here without a model."""
    said = [SpokenMessage(number, message.role, render(message), None) for number, message in enumerate(messages, 1)]
    return written(digest([analyse(one) for one in said]), max_chars).text


def compaction_seconds(tokens: int) -> float:
    """The agent stands still while its model reads everything and writes the summary."""
    return MODEL_SECONDS + tokens / READ_TOKENS_PER_SECOND + SUMMARY_TOKENS / WRITTEN_TOKENS_PER_SECOND


def by_itself(
    turns: int, facts: Sequence[Fact], summarised: Callable[[Sequence[Message], int], str]
) -> tuple[list[Compacted], float]:
    """Every compaction, and the share of all facts that is in the context at the end."""
    context: list[Message] = []
    tokens = 0
    compactions: list[Compacted] = []
    for turn, messages in enumerate(turns_of(turns, facts), 1):
        context += messages[:-1]
        tokens += tokens_of(messages[:-1])
        if tokens >= WINDOW * THRESHOLD:
            before = tokens
            older, newest = context[:-KEPT_MESSAGES], context[-KEPT_MESSAGES:]
            summary = summarised(older, SUMMARY_TOKENS * CHARS_PER_TOKEN)
            context = [Message(role="user", content=summary), *newest]
            tokens = tokens_of(context)
            known = known_share(context, [fact for fact in facts if fact.turn <= turn])
            compactions.append(Compacted(turn, before, tokens, compaction_seconds(before), known))
        context.append(messages[-1])
        tokens += tokens_of(messages[-1:])
    return compactions, known_share(context, facts)
