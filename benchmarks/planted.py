"""A history with random facts in it, and the search for them through every byte of every file."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

SESSIONS = 20
AT_ONCE_FACTS = 500
AT_ONCE = "the label"
ONE_BY_ONE = "the badge"
BATCH = 250
LARGE_CHARS = 70_000
"""Over the 65,536 characters from which a string is stored apart."""
FACT_CHARS = 18
READ_BYTES = 16 * 1024 * 1024
_WORDS = """
kitchen garden river mountain planet engine server budget report meeting coffee train ticket flight dentist
invoice kernel parser window holiday library station summer bicycle harbour concert painting contract
"""

_HEX_RUN = re.compile(rb"[0-9a-f]{%d,}" % FACT_CHARS)


def history(messages: int, facts: list[str]) -> Iterator[tuple[int, list[dict[str, str]]]]:
    """Batches, each with the number of its session. Some facts are decisions and preferences that become lessons, some
    are in texts large enough to lie outside the log."""
    chance, words = random.Random(messages), _WORDS.split()
    places = dict(zip(chance.sample(range(messages), len(facts)), enumerate(facts), strict=True))
    for first in range(0, messages, BATCH):
        batch = []
        for at in range(first, first + BATCH):
            content = f"{' '.join(chance.choices(words, k=20))}, number {at}."
            if at in places:
                number, fact = places[at]
                said = ("", " I prefer", " We decided to use", " From now on always use")[number % 4]
                content += f"{said} {AT_ONCE if number < AT_ONCE_FACTS else ONE_BY_ONE} {fact}."
                content += " padding" * (LARGE_CHARS // 8) if number % 97 == 0 else ""
            batch.append({"id": f"m{at}", "role": "assistant" if at % 2 else "user", "content": content})
        yield first * SESSIONS // messages, batch


# ── every byte of every file ──────────────────────────────────────────────────────────────────


def facts_by_place(folder: Path, facts: Iterable[str]) -> dict[str, set[str]]:
    """By the first part of the path; packed files are unpacked."""
    found: dict[str, set[str]] = {}
    for path in folder.rglob("*"):
        try:
            there = facts_in(path, facts) if path.is_file() else set()
        except FileNotFoundError:
            continue  # a provider that runs takes away what it no longer needs
        if there:
            found.setdefault(path.relative_to(folder).parts[0], set()).update(there)
    return found


def facts_in(path: Path, facts: Iterable[str]) -> set[str]:
    wanted = {fact.encode() for fact in facts}
    found: set[bytes] = set()
    with _opened(path) as file:
        rest = b""
        while piece := file.read(READ_BYTES):
            data = rest + piece
            for run in _HEX_RUN.findall(data):
                found |= wanted.intersection(run[at : at + FACT_CHARS] for at in range(len(run) - FACT_CHARS + 1))
            rest = data[-FACT_CHARS + 1 :]
    return {each.decode() for each in found}


def _opened(path: Path) -> BinaryIO:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]
