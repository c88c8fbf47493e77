"""Pairs of messages in pieces, and how they are drawn. Needs no library, so that another machine can fit."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

Relation = Literal["replaces", "repeats", "other"]
RELATIONS: tuple[Relation, ...] = ("replaces", "repeats", "other")
REPLACES, OTHER = RELATIONS.index("replaces"), RELATIONS.index("other")


class Example(NamedTuple):
    """A pair in pieces, without the start and the ends that the model reads around them."""

    earlier: list[int]
    later: list[int]
    relation: int
    """Its place in `RELATIONS`."""
    weight: float = 1.0
    language: str = ""


class Examples(NamedTuple):
    pairs: list[Example]
    cases: list[Example]
    frames: list[Example]
    ordinary: list[Example]
    restated: list[Example]
    """The same sentence with another value; and openings of a correction before what corrects nothing."""
    changes: list[Example]
    """One statement beside several earlier ones, of which it replaces only those of the same matter."""
    unlabelled: list[Example]
    """What was written of a statement, each beside each: `relation_teacher` says what they are."""
    held_out: list[Example]
    """Of the cases."""


def save_examples(examples: Examples, path: Path) -> None:
    path.write_bytes(pickle.dumps({name: [tuple(one) for one in some] for name, some in examples._asdict().items()}))


def load_examples(path: Path) -> Examples:
    """What `save_examples` wrote, and nothing else: it is trusted."""
    kept = pickle.loads(path.read_bytes())
    return Examples(**{name: [Example(*one) for one in some] for name, some in kept.items()})


def strangers(examples: Sequence[Example], share: float) -> list[Example]:
    """Messages that have nothing to do with each other."""
    some = random.sample(examples, int(share * len(examples)))
    return [Example(random.choice(examples).earlier, one.later, OTHER, language=one.language) for one in some]
