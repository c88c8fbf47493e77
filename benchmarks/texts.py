"""Text such as agents exchange, the same in every run."""

from __future__ import annotations

import random

KILOBYTE = 1_000
LARGE_CHARS = 100_000
"""Over the 65,536 characters from which a string is stored apart."""

_WORDS = """
the a we you it this that please could should before after release meeting invoice server branch
deploy customer Lisbon Tuesday budget review update failing test config retry timeout database migration summary
draft reply calendar flight hotel because although however probably 42 17:30 2031 v2.4 €1,200 check again look
write read open close merge revert approve question answer next step plan owner deadline risk note remember
"""


def text(seed: str, chars: int) -> str:
    """Sentences of exactly `chars` characters, told by the seed."""
    chance = random.Random(seed)
    words_known = _WORDS.split()
    words: list[str] = []
    length = -1
    while length < min(chars, 4 * KILOBYTE):
        words.append(chance.choice(words_known) + (". " if chance.random() < 0.1 else ""))
        length += len(words[-1]) + 1
    passage = " ".join(words) + " "
    return (passage * (chars // len(passage) + 1))[:chars]
