"""Fits the reader of sentences to the labelled ones that ship with the package: seconds, on one core.

python -m benchmarks.memory.fit.sentences        writes data/sentence-kinds.npz from data/sentences.jsonl.gz
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from offbook.model.sentences import Sentence, is_question, sentences
from offbook.model.statement import KINDS, StatementKind
from offbook.models.sentence_kinds import SIZE, features, surroundings

if TYPE_CHECKING:
    from numpy.typing import NDArray

LABELLED, WEIGHTS = "data/sentences.jsonl.gz", "data/sentence-kinds.npz"
STEPS, RATE, DECAY = 220, 0.4, 4e-6
CASES, SHORT, WORK = "cases", "short", "work"
"""Sets of messages: those that were written to fit `relation`, where more is to be kept than in what people say, and
facts stand in the sentence that asks for something, so that they are not read for kinds; short ones, which are few;
and what people say about a draft, read only for keeping: nearly all is in their own voice, and whether praise is a
feeling, no two readers agree."""
WEIGHTS_OF_SETS = {CASES: 0.5, SHORT: 2.0}
OWN, KEPT, UNDERTAKEN = (len(KINDS) + at for at in range(3))
COLUMNS = len(KINDS) + 3
"""A column for each kind, one for the speaker's own voice, one for what is to be kept, and one for a task that the
speaker takes on rather than gives."""
WEIGHT_OF_TASKS = 8
"""Of that last one: there are few."""


class Labelled(NamedTuple):
    """A sentence in its message, and what two readers said it is."""

    message: Sequence[Sentence]
    at: int
    is_user: bool
    language: str
    kind: StatementKind | None
    """None where it was read for its voice and for keeping only."""
    is_own: bool | None
    """None where it was not read for that."""
    is_kept: bool
    is_undertaken: bool | None
    """None where it is no task."""
    group: str
    """Sentences of one group are never parted between fitting and judging."""
    weight: float


def labelled() -> list[Labelled]:
    """What ships, one for each label given."""
    found: list[Labelled] = []
    for number, row in enumerate(labelled_messages()):
        message = sentences(row["message"])
        for said, labels in row["sentences"]:
            at = next((at for at, one in enumerate(message) if one.text == said), None)
            if at is None:
                continue
            weight = WEIGHTS_OF_SETS.get(row.get("set", ""), 1.0) / len(labels)
            for told, voice, keep in labels:
                kind = None if row.get("set") in (CASES, WORK) else told
                place = (message, at, row["who"] == "user", row["lang"])
                is_own = None if row.get("set") == WORK else voice == "own"
                undertaken = _is_undertaken(row, said) if kind == "task" else None
                found.append(Labelled(*place, kind, is_own, bool(keep), undertaken, str(number), weight))
    return found


def _is_undertaken(row: dict[str, Any], task: str) -> bool:
    """Who does it was told of users' tasks; the agent's are its own, but for what it asks."""
    return task in row.get("undertaken", ()) if row["who"] == "user" else not is_question(task)


def labelled_messages() -> list[dict[str, Any]]:
    text = gzip.decompress(files("offbook.models").joinpath(LABELLED).read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def fitted(examples: Sequence[Labelled]) -> NDArray[np.float32]:
    """The table of weights: a row for each feature, a column for each answer."""
    rows = [
        sorted(set(features(one.message, one.at, surroundings(one.message), is_user=one.is_user))) for one in examples
    ]
    columns = np.concatenate([np.asarray(row) for row in rows])
    counts = np.array([len(row) for row in rows])
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    values = np.repeat(1 / np.sqrt(counts), counts).astype(np.float32)
    owners = np.repeat(np.arange(len(rows)), counts)
    by_column = np.argsort(columns, kind="stable")
    used, used_starts = np.unique(columns[by_column], return_index=True)

    wanted = np.zeros((len(rows), COLUMNS), np.float32)
    with_kind = [at for at, one in enumerate(examples) if one.kind is not None]
    wanted[with_kind, [KINDS.index(one.kind) for one in examples if one.kind is not None]] = 1
    wanted[:, OWN] = [bool(one.is_own) for one in examples]
    wanted[:, KEPT] = [one.is_kept for one in examples]
    wanted[:, UNDERTAKEN] = [bool(one.is_undertaken) for one in examples]
    weight = np.repeat(np.array([one.weight for one in examples], np.float32)[:, None] / len(rows), COLUMNS, axis=1)
    weight[[one.kind is None for one in examples], : len(KINDS)] = 0
    weight[[one.is_own is None for one in examples], OWN] = 0
    weight[[one.is_undertaken is None for one in examples], UNDERTAKEN] = 0
    weight[:, UNDERTAKEN] *= WEIGHT_OF_TASKS

    table = np.zeros((SIZE, COLUMNS), np.float32)
    first = np.zeros((len(used), COLUMNS), np.float32)
    second = np.zeros_like(first)
    for step in range(1, STEPS + 1):
        scores = np.add.reduceat(table[columns] * values[:, None], starts)
        wrong = (answers(scores) - wanted) * weight
        slope = np.add.reduceat((wrong[owners] * values[:, None])[by_column], used_starts)
        slope += DECAY * table[used]
        first += 0.1 * (slope - first)
        second += 0.01 * (slope * slope - second)
        rate = RATE * (1 - 0.99**step) ** 0.5 / (1 - 0.9**step) * (1 - step / (STEPS + 1))
        table[used] -= rate * first / (np.sqrt(second) + 1e-7)
    return table


def answers(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities: the kinds share one, the others are apart."""
    found = 1 / (1 + np.exp(-scores))
    kinds = scores[:, : len(KINDS)]
    raised = np.exp(kinds - kinds.max(axis=1, keepdims=True))
    found[:, : len(KINDS)] = raised / raised.sum(axis=1, keepdims=True)
    return found


def main() -> None:
    table = fitted(labelled())
    scale = np.abs(table).max() / 127
    path = Path(str(files("offbook.models").joinpath(WEIGHTS)))
    np.savez_compressed(path, table=np.round(table / scale).astype(np.int8), scale=np.float32(scale))


if __name__ == "__main__":
    main()
