"""Fits the reader of subjects to what is labelled: seconds, on one core.

python -m benchmarks.memory.fit.subjects             writes data/subject-kinds.npz
python -m benchmarks.memory.fit.subjects --measure   fits to four fifths of the words, five times, and judges the others

`data/subjects.json` has words with what each is, which are read wherever they stand in `data/sentences.jsonl.gz`, and
sentences written for it in which the subject stands in braces.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np

from offbook.model.sentences import sentences
from offbook.models.subject_kinds import SIZE, SUBJECT_KINDS, WEIGHTS, SubjectKind, features

if TYPE_CHECKING:
    from numpy.typing import NDArray

STEPS, RATE, DECAY = 150, 0.3, 3e-4
PARTS = 5
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


class Labelled(NamedTuple):
    word: str
    kind: SubjectKind
    rows: list[int]


def labelled() -> list[Labelled]:
    data = files("offbook.models").joinpath("data")
    given = json.loads(data.joinpath("subjects.json").read_text("utf-8"))
    kinds: dict[str, SubjectKind] = {word: kind for kind, words in given["words"].items() for word in words}
    found = list(_written(given["written"]))
    for line in gzip.decompress(data.joinpath("sentences.jsonl.gz").read_bytes()).decode().splitlines():
        for one in sentences(json.loads(line)["message"]):
            for match in _WORD.finditer(one.text):
                kind = kinds.get(match[0])
                if kind is not None:
                    found.append(Labelled(match[0], kind, features(one.text, match.start(), match.end())))
    return found


def _written(rows: Sequence[tuple[SubjectKind, str, str]]) -> Iterator[Labelled]:
    for kind, _, text in rows:
        before, _, rest = text.partition("{")
        word, _, after = rest.partition("}")
        yield Labelled(word, kind, features(before + word + after, len(before), len(before) + len(word)))


def fitted(examples: Sequence[Labelled]) -> NDArray[np.float32]:
    """The table of weights. Each kind counts as much as any, and so does each word within its kind, however often it
    is said."""
    said: dict[str, int] = {}
    words: dict[str, set[str]] = {}
    for one in examples:
        said[one.word] = said.get(one.word, 0) + 1
        words.setdefault(one.kind, set()).add(one.word)
    weight = np.array([1 / said[one.word] ** 0.5 / len(words[one.kind]) for one in examples], np.float32)
    weight /= weight.sum()
    wanted = np.zeros((len(examples), len(SUBJECT_KINDS)), np.float32)
    wanted[np.arange(len(examples)), [SUBJECT_KINDS.index(one.kind) for one in examples]] = 1
    counts = np.array([len(one.rows) for one in examples])
    columns = np.concatenate([np.asarray(one.rows) for one in examples])
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    values = np.repeat(1 / np.sqrt(counts), counts).astype(np.float32)[:, None]
    owners = np.repeat(np.arange(len(examples)), counts)
    table = np.zeros((SIZE, len(SUBJECT_KINDS)), np.float32)
    first, second = np.zeros_like(table), np.zeros_like(table)
    for step in range(1, STEPS + 1):
        scores = np.add.reduceat(table[columns] * values, starts)
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        wrong = (raised / raised.sum(axis=1, keepdims=True) - wanted) * weight[:, None]
        slope = DECAY * table / len(SUBJECT_KINDS)
        np.add.at(slope, columns, wrong[owners] * values)
        first += 0.1 * (slope - first)
        second += 0.01 * (slope * slope - second)
        rate = RATE * (1 - 0.99**step) ** 0.5 / (1 - 0.9**step) * (1 - step / (STEPS + 1))
        table -= rate * first / (np.sqrt(second) + 1e-7)
    return table


def measured(examples: Sequence[Labelled]) -> dict[str, int]:
    """Of words that it was not fitted to, all their sentences added up: `what it is > what it was taken for`."""
    found: dict[str, int] = {}
    for part in range(PARTS):
        table = fitted([one for one in examples if _part(one.word) != part])
        sums: dict[tuple[str, str], NDArray[np.float32]] = {}
        for one in examples:
            if _part(one.word) == part:
                scores = table[one.rows].sum(axis=0) / len(one.rows) ** 0.5
                key = (one.word, one.kind)
                sums[key] = sums.get(key, np.zeros(len(SUBJECT_KINDS), np.float32)) + scores
        for (_, kind), scores in sums.items():
            answer = f"{kind} > {SUBJECT_KINDS[int(scores.argmax())]}"
            found[answer] = found.get(answer, 0) + 1
    return dict(sorted(found.items()))


def _part(word: str) -> int:
    return crc32(word.casefold().encode()) % PARTS


def main() -> None:
    if "--measure" in sys.argv:
        for answer, count in measured(labelled()).items():
            print(f"{count:5} {answer}")
        return
    table = fitted(labelled())
    scale = np.abs(table).max() / 127
    path = Path(str(files("offbook.models").joinpath(WEIGHTS)))
    np.savez_compressed(path, table=np.round(table / scale).astype(np.int8), scale=np.float32(scale))


if __name__ == "__main__":
    main()
