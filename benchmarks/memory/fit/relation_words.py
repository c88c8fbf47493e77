"""Fits the first look at a pair (`offbook.models.relation_words`): which of what was said before may be replaced.

    python -m benchmarks.memory.fit.relation_words ../shared/data       needs scikit-learn; a minute

Of the pairs and frames that tune the model (`relation`), those that replace against all others; and as what nearly all
pairs are: messages of ordinary conversations, each with those before it that share most words, and strangers.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from math import log
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.memory.fit.relation import combined, rows_of
from benchmarks.quality.data import load
from offbook.models.relation_words import SIZE, WEIGHTS, Said, earlier_words, later_words, marks, new_words
from offbook.models.sentence_fit import labelled_messages
from offbook.projections.link_pairs import Read, compared, read_as
from offbook.search.words import terms

ORDINARY = {"LoCoMo": (2, 3), "RealMem": (1,)}
"""Which conversations; what is measured on is not among them."""
FRAMES, STRANGE_MESSAGES, LOOKED_AT, CANDIDATES = 12_000, 500, 30, 4
OF_PAIR, OF_FRAME, OF_STRANGER, OF_ORDINARY = 1.0, 0.4, 0.5, 0.4
STRENGTH = 1.0
SAYS_MORE = 0.5
"""Share of the written messages that another is put beside."""


class Example(NamedTuple):
    earlier: Said
    later: Said
    replaces: bool
    weight: float

    def rows(self) -> list[int]:
        first, second = self.earlier.text, self.later.text
        return [*later_words(second), *earlier_words(first), *new_words(first, second)]

    def marks(self) -> list[float]:
        shared = set(terms(self.earlier.text)) & set(terms(self.later.text))
        return marks(self.earlier, self.later, len(shared))


def main(data: Path) -> None:
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    random.seed(0)
    examples = [*written(), *strangers(), *ordinary(data)]
    rows = [one.rows() for one in examples]
    values = np.concatenate([np.full(len(row), max(1, len(row)) ** -0.5) for row in rows])
    starts = np.cumsum([0, *map(len, rows)])
    words = csr_matrix((values, np.concatenate(rows).astype(int), starts), shape=(len(rows), SIZE))
    features = hstack([csr_matrix(np.array([one.marks() for one in examples])), words]).tocsr()
    model = LogisticRegression(C=STRENGTH, max_iter=200)
    model.fit(features, [one.replaces for one in examples], sample_weight=[one.weight for one in examples])
    weights = model.coef_[0]
    count = len(weights) - SIZE
    scale = np.abs(weights[count:]).max() / 127
    np.savez_compressed(
        Path(str(files("offbook.models").joinpath(WEIGHTS))),
        words=np.round(weights[count:] / scale).astype(np.int8),
        scale=np.float32(scale),
        marks=weights[:count].astype(np.float32),
        offset=np.float32(model.intercept_[0]),
    )
    print(f"{len(examples)} pairs, {sum(one.replaces for one in examples)} replace; marks {weights[:count].round(2)}")


def written() -> Iterator[Example]:
    """The pairs, each later one with a stranger as well, and some made from frames."""
    pairs = rows_of("pairs")
    said: dict[str, list[str]] = {}
    for one in pairs:
        said.setdefault(one["lang"], []).append(one["earlier"])
    for one in pairs:
        others = said[one["lang"]]
        earlier, later = _with_more(one["earlier"], others), _with_more(one["later"], others)
        yield from _examples(earlier, later, one["relation"] == "replaces", OF_PAIR)
        yield from _examples(_with_more(random.choice(others), others), later, False, OF_STRANGER)
    frames = combined(rows_of("frames"))
    for earlier, later, relation in random.sample(frames, FRAMES):
        yield from _examples(earlier, later, relation == "replaces", OF_FRAME)


def _with_more(text: str, others: list[str]) -> str:
    """Who writes to an agent often says several things at once."""
    if random.random() > SAYS_MORE:
        return text
    return " ".join(random.sample([text, random.choice(others)], 2))


def strangers() -> Iterator[Example]:
    """Messages that have nothing to do with each other: of a few, the two that share most words."""
    by_language: dict[str, list[str]] = {}
    for row in labelled_messages():
        if row["who"] == "user":
            by_language.setdefault(row["lang"], []).append(row["message"])
    for texts in by_language.values():
        for text in random.sample(texts, min(STRANGE_MESSAGES, len(texts))):
            words = set(terms(text))
            others = [one for one in random.sample(texts, LOOKED_AT) if one != text]
            yield from _examples(max(others, key=lambda one: len(set(terms(one)) & words)), text, False, OF_STRANGER)


def ordinary(data: Path) -> Iterator[Example]:
    """What people say to each other, with what they said before that shares most rare words."""
    for name, numbers in ORDINARY.items():
        conversations = load(data, name)
        for number in numbers:
            turns = [turn for session in conversations[number].sessions for turn in session.turns]
            said = [(turn.speaker, turn.text, set(terms(turn.text))) for turn in turns]
            held = Counter(word for _, _, words in said for word in words)
            for at, (speaker, text, words) in enumerate(said):
                if speaker == "assistant":
                    continue
                before = [one for one in said[:at] if one[0] in (speaker, "assistant")]
                nearest = sorted(before, key=lambda one: -_overlap(words & one[2], held, len(said)))[:CANDIDATES]
                for one in nearest:
                    yield from _examples(one[1], text, False, OF_ORDINARY)


@cache
def _read(text: str) -> Read:
    return read_as(text)


def _overlap(words: set[str], held: Counter[str], messages: int) -> float:
    return sum(log(messages / held[word]) for word in words)


def _examples(earlier: str, later: str, replaces: bool, weight: float) -> Iterator[Example]:
    """As the links compare them: what states nothing is never compared, unless it was written as a pair."""
    before, since = _read(earlier), _read(later)
    if not before.sentences or not since.sentences or not (since.statements or replaces):
        return
    first, second = compared(before.sentences, since.statements or since.sentences)
    yield Example(
        Said(first, before.keep, before.is_replacing), Said(second, since.keep, since.is_replacing), replaces, weight
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
