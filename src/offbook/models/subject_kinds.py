"""What a name or a word stands for in its sentence: a person, a project, another topic, or nothing one looks up.

A small linear classifier over the words around it and the way it is written, fitted to labelled ones of six languages
(`benchmarks/memory/fit/subjects.py`). One sentence says little: whoever asks adds up what several say.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal
from zlib import crc32

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SubjectKind = Literal["person", "project", "topic", "none"]
SUBJECT_KINDS: tuple[SubjectKind, ...] = ("person", "project", "topic", "none")
SIZE = 1 << 13
"""Of the table of weights: features are hashed into it."""
WEIGHTS = "data/subject-kinds.npz"
READ_CHARS = 60
"""On each side of it."""
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+(?:['’][^\W\d_]+)?|[^\w\s]")


def read_subject(text: str, start: int, end: int) -> list[float]:
    """How likely it is of each of `SUBJECT_KINDS`, by this sentence alone, as logarithms."""
    import numpy as np

    rows = features(text, start, end)
    scores = _table()[rows].sum(axis=0) / len(rows) ** 0.5
    scores -= scores.max()
    return [float(score) for score in scores - np.log(np.exp(scores).sum())]


def features(text: str, start: int, end: int) -> list[int]:
    """Rows of the table for the words from `start` to `end` of a sentence."""
    name = text[start:end]
    words_before = _TOKEN.findall(text[max(0, start - READ_CHARS) : start].lower())
    words_after = _TOKEN.findall(text[end : end + READ_CHARS].lower())
    before, after = ["^", "^", *words_before][-2:], [*words_after, "$", "$"][:2]
    word = name.lower()
    names = [
        f"-1 {before[1]}",
        f"-2 {before[0]}",
        f"-2 {before[0]} {before[1]}",
        f"+1 {after[0]}",
        f"+2 {after[1]}",
        f"+1 {after[0]} {after[1]}",
        f"{before[1]} _ {after[0]}",
        f"= {word}",
        f"> {word[-2:]}",
        f"> {word[-3:]}",
        f"< {word[:3]}",
        f"# {shape(name)}",
        f"# {shape(name)} {'first' if before[1] == '^' else 'within'}",
        f"# words {min(len(name.split()), 3)}",
        *(f"~ {one}" for one in (*words_before, *words_after) if len(one) > 1),
    ]
    return sorted({crc32(one.encode("utf-8", "surrogatepass")) % SIZE for one in names})


def shape(name: str) -> str:
    """How it is written: capitals, signs and digits, each once."""
    marks = ["A" if one.isupper() else "a" if one.islower() else "0" if one.isdigit() else one for one in name]
    return "".join(one for at, one in enumerate(marks) if at == 0 or marks[at - 1] != one)[:6]


@cache
def _table() -> NDArray[np.float32]:
    import numpy as np

    with files("offbook.models").joinpath(WEIGHTS).open("rb") as file, np.load(file) as kept:
        table: NDArray[np.float32] = kept["table"].astype(np.float32) * kept["scale"]
    return table
