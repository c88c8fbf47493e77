"""The pairs of messages that `relation` fits to, as the numbers that the model reads.

Written one by one: alone (`pairs.jsonl.gz`), and several for one statement, which differ in little and say the opposite
(`cases.jsonl.gz`). Put together from sentences with gaps: `frames.jsonl.gz`. And out of ordinary conversations, where
nearly nothing is replaced: each message with the earlier ones of its speaker that share most rare words with it.

    python -m benchmarks.memory.fit.relation_data ../shared/data PAIRS        writes what `relation` reads
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchmarks.memory.fit.examples import RELATIONS, Example, Examples, Relation, save_examples
from benchmarks.quality.data import Conversation, Turn, load
from benchmarks.run import Skipped
from offbook.models.minilm import MAX_PIECES, WordPiece
from offbook.models.relation import MOST_PIECES
from offbook.projections.link_pairs import Read, compared, read_as
from offbook.search.words import STOP_WORDS, terms

RELATION_SHARES = (0.46, 0.1, 0.44)
"""Of the pairs that are made from a frame."""
PAIRS_OF_FRAME = 150
HELD_OUT_STEP = 8
OWN = "own-dev.json.gz"
FIRST_LOCOMO, FIRST_REALMEM = 2, 1
"""The first conversation that is fitted to: those before it are measured on."""
CANDIDATES = 2
STRANGER_SHARE = 0.3
FIRST_LATER, FIRST_WITH_STRANGER = 3, 6
"""A message is compared once so many were said before it; and with one of them, whichever it is, once so many were."""


class Pair(NamedTuple):
    earlier: str
    later: str
    relation: Relation


class Said(NamedTuple):
    """A message of an ordinary conversation."""

    speaker: str
    read: Read
    words: frozenset[str]


class OwnSession(msgspec.Struct, frozen=True):
    turns: list[Turn]


class OwnConversation(msgspec.Struct, frozen=True):
    """As `Conversation`, whose names are numbers here: only what is said is read."""

    sessions: list[OwnSession]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder of the ordinary conversations")
    parser.add_argument("out", type=Path, help="the file to write")
    parser.add_argument("--hold-out", action="store_true", help="leave out every eighth case, to judge by")
    given = parser.parse_args()
    examples = read_examples(given.data, hold_out=given.hold_out)
    save_examples(examples, given.out)
    print(", ".join(f"{len(some)} {name}" for name, some in examples._asdict().items()))


def read_examples(data: Path, *, hold_out: bool) -> Examples:
    """`data`: the folder of the ordinary conversations. `hold_out`: leave out every eighth case."""
    wordpiece = WordPiece(MAX_PIECES)
    cases = rows_of("cases")
    held_out = cases[::HELD_OUT_STEP] if hold_out else []
    kept = [case for at, case in enumerate(cases) if not hold_out or at % HELD_OUT_STEP]

    def examples(pairs: Sequence[Pair]) -> list[Example]:
        return [_example(wordpiece, pair) for pair in pairs]

    return Examples(
        pairs=examples([Pair(row["earlier"], row["later"], row["relation"]) for row in rows_of("pairs")]),
        cases=examples(case_pairs(kept)),
        frames=examples(frame_pairs(rows_of("frames"), random.Random(1))),
        ordinary=examples(ordinary_pairs(data, random.Random(1))),
        held_out=examples(case_pairs(held_out)),
    )


def case_pairs(cases: Sequence[dict[str, Any]]) -> list[Pair]:
    return [
        Pair(case["earlier"], later, relation)
        for case in cases
        for relation in RELATIONS
        for later in case.get(relation, ())
    ]


def frame_pairs(frames: Sequence[dict[str, Any]], rng: random.Random) -> list[Pair]:
    """Pairs of sentences with values put in: another one in the later, where the frame says so."""
    found = []
    for frame in frames:
        for _ in range(PAIRS_OF_FRAME):
            old, new = rng.sample(frame["values"], 2)
            other = rng.choice(frame.get("others") or [""])
            relation = rng.choices(RELATIONS, RELATION_SHARES)[0]
            if not frame.get(relation):
                continue
            texts = [rng.choice(frame["earlier"]), rng.choice(frame[relation])]
            first, second = (one.replace("{A}", old).replace("{B}", new).replace("{O}", other) for one in texts)
            found.append(Pair(first[:1].upper() + first[1:], second[:1].upper() + second[1:], relation))
    return found


def ordinary_pairs(data: Path, rng: random.Random) -> list[Pair]:
    """What people say, with what they said before."""
    own, locomo, realmem = own_conversations(data), load(data, "LoCoMo"), load(data, "RealMem")
    found: list[Pair] = []
    for conversations, most_messages, most_pairs in (
        ([_turns(one) for one in own], 300, 3_000),
        ([_turns(one) for one in locomo[FIRST_LOCOMO:]], 250, 1_500),
        ([_of_user(_turns(one)) for one in realmem[FIRST_REALMEM:]], 150, 2_000),
    ):
        pairs = [pair for turns in conversations for pair in _compared_pairs(turns[:most_messages], rng)]
        rng.shuffle(pairs)
        found += pairs[:most_pairs]
    return found


def rows_of(name: str) -> list[dict[str, Any]]:
    packed = files("benchmarks.memory.fit").joinpath(f"{name}.jsonl.gz").read_bytes()
    return [json.loads(line) for line in gzip.decompress(packed).decode().splitlines()]


def _compared_pairs(turns: Sequence[Turn], rng: random.Random) -> Iterator[Pair]:
    """Each message that states something with the few before it that share most rare words, now and then with any:
    of each what the links compare."""
    said = [Said(turn.speaker, read_as(turn.text), frozenset(terms(turn.text)) - STOP_WORDS) for turn in turns]
    holding = Counter(word for one in said for word in one.words)
    for at, later in enumerate(said):
        if not later.read.statements or at < FIRST_LATER:
            continue
        before = [place for place, one in enumerate(said[:at]) if one.speaker == later.speaker and one.read.sentences]
        overlaps = {place: sum(1 / holding[word] for word in later.words & said[place].words) for place in before}
        nearest = sorted(before, key=lambda place: (overlaps[place], place), reverse=True)[:CANDIDATES]
        if rng.random() < STRANGER_SHARE and at >= FIRST_WITH_STRANGER:
            nearest.append(rng.randrange(at))
        for earlier in (said[place] for place in nearest):
            if not earlier.read.sentences:
                continue
            first, second = compared(earlier.read.sentences, later.read.statements)
            if first.lower() != second.lower():
                yield Pair(first, second, "other")


def _example(wordpiece: WordPiece, pair: Pair) -> Example:
    earlier, later = (wordpiece.pieces(text)[1:-1][:MOST_PIECES] for text in (pair.earlier, pair.later))
    return Example(earlier, later, RELATIONS.index(pair.relation))


def _turns(conversation: Conversation | OwnConversation) -> list[Turn]:
    return [turn for session in conversation.sessions for turn in session.turns]


def _of_user(turns: Sequence[Turn]) -> list[Turn]:
    return [turn for turn in turns if turn.speaker == "user"]


def own_conversations(data: Path) -> list[OwnConversation]:
    path = data / OWN
    if not path.exists():
        raise Skipped(f"the development data is not here: no {path}")
    with gzip.open(path) as file:
        return msgspec.json.decode(file.read(), type=list[OwnConversation])


if __name__ == "__main__":
    main()
