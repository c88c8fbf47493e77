"""What of a prompt a model's provider has read before, accounted as two of them document it.

OpenAI keeps every prompt of 1,024 tokens or more by itself, and serves the longest beginning that another one had, in
steps of 128 tokens. Anthropic keeps a prompt up to each block that is marked, four at most, where that is 1,024 tokens
or more; from each mark it looks back over 20 blocks, the marked one included, for a place where something was kept.

Both forget after minutes or an hour of silence; an agent at work comes back sooner, so here nothing is forgotten.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from statistics import fmean
from typing import NamedTuple

from benchmarks.prompt_prefix import CACHED_PRICE
from offbook.client.slot import MESSAGE_TOKENS
from offbook.context.provider_shapes import to_anthropic, to_openai
from offbook.model.types import Message
from offbook.models.tokens import estimate_tokens

LEAST_TOKENS = 1_024
STEP_TOKENS = 128
MOST_MARKS = 4
LOOKED_BACK = 20


class Block(NamedTuple):
    """A message, or a part of one: what is compared as a whole first."""

    role: str
    text: str

    @property
    def tokens(self) -> int:
        return _tokens(self.text) + MESSAGE_TOKENS


class Read(NamedTuple):
    """What a prompt took, and how much of it was in the cache."""

    prompt: int
    cached: int


class OpenAICache:
    """The longest beginning that any prompt before had: block by block, and by characters in the first that differs."""

    def __init__(self) -> None:
        self._seen: dict[bytes, list[Block]] = {}
        """After each beginning, the blocks that have followed it, sorted: what is most alike stands side by side."""

    def read(self, blocks: Sequence[Block]) -> Read:
        shared, is_shared = 0, True
        for before, block in zip(_beginnings(blocks), blocks, strict=False):
            followed = self._seen.setdefault(before, [])
            at = bisect_left(followed, block)
            is_known = followed[at : at + 1] == [block]
            if is_shared:
                shared += block.tokens if is_known else _most_shared(block, followed[max(0, at - 1) : at + 1])
            is_shared = is_shared and is_known
            if not is_known:
                followed.insert(at, block)
        cached = shared - shared % STEP_TOKENS if shared >= LEAST_TOKENS else 0
        return Read(sum(block.tokens for block in blocks), cached)


class AnthropicCache:
    """Beginnings that end where a block was marked."""

    def __init__(self) -> None:
        self._kept: set[bytes] = set()

    def read(self, blocks: Sequence[Block], marks: Sequence[int]) -> Read:
        """`marks` are the positions of the marked blocks."""
        if len(set(marks)) > MOST_MARKS or any(not 0 <= mark < len(blocks) for mark in marks):
            raise ValueError(f"at most {MOST_MARKS} blocks of {len(blocks)} can be marked, not {marks}")
        beginnings = _beginnings(blocks)
        sizes = [0, *accumulate(block.tokens for block in blocks)]
        looked_at = {at for mark in marks for at in range(mark, max(-1, mark - LOOKED_BACK), -1)}
        cached = max((sizes[at + 1] for at in looked_at if beginnings[at + 1] in self._kept), default=0)
        self._kept.update(beginnings[mark + 1] for mark in marks if sizes[mark + 1] >= LEAST_TOKENS)
        return Read(sizes[-1], cached)


def _beginnings(blocks: Sequence[Block]) -> list[bytes]:
    """What stands for nothing, for the first block, for the first two, and so on."""
    return list(accumulate(blocks, _longer, initial=b""))


def _longer(beginning: bytes, block: Block) -> bytes:
    return hashlib.sha256(beginning + _digest(block)).digest()


@lru_cache(maxsize=50_000)
def _digest(block: Block) -> bytes:
    return hashlib.sha256(f"{block.role}\n{block.text}".encode("utf-8", "surrogatepass")).digest()


def _most_shared(block: Block, others: Sequence[Block]) -> int:
    """In tokens, with any of the others, from the start."""
    texts = [other.text for other in others if other.role == block.role]
    return _tokens(block.text[: max((_shared_chars(block.text, text) for text in texts), default=0)])


def _shared_chars(one: str, other: str) -> int:
    """By halves: a comparison of slices is far quicker than one of characters."""
    shared, beyond = 0, min(len(one), len(other)) + 1
    while beyond - shared > 1:
        middle = (shared + beyond) // 2
        if one[:middle] == other[:middle]:
            shared = middle
        else:
            beyond = middle
    return shared


@lru_cache(maxsize=50_000)
def _tokens(text: str) -> int:
    return estimate_tokens(text)


# ── prompts ───────────────────────────────────────────────────────────────────────────────────


class Given(NamedTuple):
    """What goes to the model in one turn."""

    system: list[str]
    messages: list[Message]
    memory: str


class Account:
    """A model's provider, as far as its cache goes."""

    def __init__(self) -> None:
        self._openai = OpenAICache()
        self._anthropic = AnthropicCache()
        self.openai: list[Read] = []
        self.anthropic: list[Read] = []

    def take(self, given: Given) -> int:
        """The tokens of the prompt."""
        self.openai.append(self._openai.read(openai_blocks(given)))
        blocks = anthropic_blocks(given)
        self.anthropic.append(self._anthropic.read(blocks, marks(blocks, given.memory)))
        return self.openai[-1].prompt


def openai_blocks(given: Given) -> list[Block]:
    system = [Message(role="system", content=part) for part in given.system]
    return [Block(shaped["role"], shaped["content"]) for shaped in to_openai([*system, *given.messages])]


def anthropic_blocks(given: Given) -> list[Block]:
    """Its system prompt takes blocks too: what is added to it each turn stands behind what is always the same."""
    shaped = to_anthropic(given.messages)["messages"]
    said = [Block(message["role"], block["text"]) for message in shaped for block in message["content"]]
    return [*(Block("system", part) for part in given.system), *said]


def marks(blocks: Sequence[Block], memory: str) -> list[int]:
    """Where a careful host marks: after the instructions, the memory, and the history, which is all but the newest."""
    remembered = [at for at, block in enumerate(blocks) if memory and block.text == memory]
    return sorted({0, *remembered[:1], max(0, len(blocks) - 2)})[:MOST_MARKS]


def share(reads: Sequence[Read]) -> float:
    return sum(read.cached for read in reads) / sum(read.prompt for read in reads)


def cost(reads: Sequence[Read]) -> float:
    """Of a turn, in tokens at full price."""
    return fmean(read.prompt - read.cached * (1 - CACHED_PRICE) for read in reads)
