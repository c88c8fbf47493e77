"""How much of what a backfill sends to a model is a beginning that the model has just read (C4)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from benchmarks.quality.data import SETS, load
from benchmarks.results import Bar, Cell, Findings
from benchmarks.run import Run
from offbook.context.summary_prompts import (
    Remembered,
    chunk_prompt,
    memory_room,
    merge_prompt,
    prompt_tokens,
    shared_share,
    visible,
)
from offbook.model.settings import Settings
from offbook.model.types import Message
from offbook.models.protocols import Prompt
from offbook.models.tokens import estimate_tokens

TITLE = "The share of a backfill's prompts that its call before had just sent, in the same order, from the start"

LEAST_SHARE = 0.8
CACHED_PRICE = 0.1
"""Of what is read from a provider's cache, against what is read anew: the usual one."""
BAR_CONTEXT = 128_000
CONTEXTS = (128_000, 64_000, 32_000, 16_000)
IDENTIFIERS = [f"ticket-{number}" for number in range(20)]


class Backfill:
    """Chunks into memories, six of them into one of the next level, as the worker does. What a model would write is
    stood in for by every third line of its source, to the target."""

    def __init__(self, context_tokens: int, settings: Settings) -> None:
        self._settings = settings
        self._room = memory_room(
            context_tokens - 2 * settings.summary_target_tokens, chunk_tokens=settings.chunk_tokens
        )
        self._memories: list[Remembered] = []
        self._counts: dict[int, int] = {}

    def prompts(self, chunks: list[list[Message]]) -> Iterator[Prompt]:
        for chunk in chunks:
            shown = visible(self._memories, self._room, target_tokens=self._target)
            yield chunk_prompt(
                "main", shown, list(enumerate(chunk, 1)), target_tokens=self._target, identifiers=IDENTIFIERS
            )
            self._remember(1, [str(message.content) for message in chunk], ())
            for level in range(2, self._settings.max_levels + 1):
                if self._counts[level - 1] % self._settings.merge_threshold:
                    break
                yield self._merge(level)

    def _merge(self, level: int) -> Prompt:
        below = [memory for memory in self._memories if memory.level == level - 1]
        merged = below[-self._settings.merge_threshold :]
        merging = [memory.id for memory in merged]
        shown = visible(self._memories, self._room, target_tokens=self._target, merging=merging)
        prompt = merge_prompt("main", shown, merged, target_tokens=self._target, identifiers=IDENTIFIERS)
        lines = [line for memory in merged for line in memory.text.split("\n")]
        self._remember(level, lines, tuple(memory.id for memory in merged))
        return prompt

    def _remember(self, level: int, lines: list[str], sources: tuple[str, ...]) -> None:
        number = self._counts[level] = self._counts.get(level, 0) + 1
        text = ""
        for line in [*lines[::3], *lines[1::3], *lines[2::3]]:
            if estimate_tokens(text) >= self._target:
                break
            text += line + "\n"
        self._memories.append(
            Remembered(
                id=f"L{level}-{number:04}",
                level=level,
                text=text.strip(),
                tokens=estimate_tokens(text),
                order=len(self._memories),
                sources=sources,
            )
        )

    @property
    def _target(self) -> int:
        return self._settings.summary_target_tokens


def measure(run: Run) -> Findings:
    settings = Settings()
    all_chunks = _chunks(run, settings.chunk_tokens)
    counts = [count for count in ([24] if run.is_quick else [60, 120, 240]) if count <= len(all_chunks)]
    rows = []
    bars = []
    for context_tokens in CONTEXTS:
        for count in counts:
            row, share = _measured(context_tokens, all_chunks[:count], settings)
            rows.append(row)
            if context_tokens == BAR_CONTEXT:
                what = f"prompt tokens of a backfill of {count} chunks that the call before had just sent"
                is_met = None if run.is_quick else share >= LEAST_SHARE
                bars.append(Bar(what, f"≥ {LEAST_SHARE:.0%}", f"{share:.1%}", is_met))
            run.progress("backfills", len(rows), len(CONTEXTS) * len(counts))
    return Findings(
        bars=bars,
        rows=rows,
        notes=[
            f"Conversations of {' and '.join(SETS)} one after the other, in chunks of {settings.chunk_tokens:,} tokens "
            f"or a little more; memories of {settings.summary_target_tokens:,} tokens; every sixth chunk has a merge.",
            f"Price: what a chunk costs against reading its prompts without a cache, at {CACHED_PRICE:g} of the price "
            "for what is shared. Under half shared: the first few, and those whose memories had just given way to "
            "coarser ones.",
            "A chunk of 6,000 tokens is new each time, so a model that reads 16,000 has little to share.",
        ],
    )


def _measured(context_tokens: int, chunks: list[list[Message]], settings: Settings) -> tuple[dict[str, Cell], float]:
    prompts = list(Backfill(context_tokens, settings).prompts(chunks))
    sizes = [prompt_tokens(prompt) for prompt in prompts]
    shares = [0.0, *(shared_share(one, following) for one, following in pairwise(prompts))]
    shared = sum(share * size for share, size in zip(shares, sizes, strict=True))
    share = shared / sum(sizes)
    row: dict[str, Cell] = {
        "model reads": context_tokens,
        "chunks": len(chunks),
        "prompts": len(prompts),
        "mean prompt tokens": sum(sizes) / len(sizes),
        "longest": max(sizes),
        "shared %": 100 * share,
        "prompts under half shared": sum(share < 0.5 for share in shares),
        "read anew a chunk": (sum(sizes) - shared) / len(chunks),
        "price": 1 - share * (1 - CACHED_PRICE),
    }
    return row, share


def _chunks(run: Run, chunk_tokens: int) -> list[list[Message]]:
    chunks: list[list[Message]] = [[]]
    size = 0
    for message in _messages(run):
        if size >= chunk_tokens:
            chunks.append([])
            size = 0
        chunks[-1].append(message)
        size += estimate_tokens(str(message.content))
    return chunks[:-1]


def _messages(run: Run) -> Iterator[Message]:
    for name in SETS:
        for conversation in load(run.data, name):
            first = conversation.sessions[0].turns[0].speaker
            for session in conversation.sessions:
                for turn in session.turns:
                    yield Message(role="user" if turn.speaker == first else "assistant", content=turn.text)
