"""What each sentence of a message is: a linear classifier over words, fitted to labelled sentences of six languages.

Its weights ship with the package (`benchmarks/memory/fit/sentences.py` makes them); it needs no model, and takes well
under a millisecond.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from offbook.model.sentences import Sentence, sentences
from offbook.model.statement import KINDS, ReadSentence
from offbook.models.glossary import in_english

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


WEIGHTS = "data/sentence-kinds.npz"
OTHER = KINDS.index("other")
TELLING = [KINDS.index(kind) for kind in ("fact", "feeling", "outcome", "decision")]
MESSAGES_KEPT, LONGEST_KEPT = 2_048, 4_000
"""What is read of a message is asked for by lessons, links, state and summaries, one soon after the other."""
MOST_SENTENCES = 1_000
"""Of one message: as many as the longest text that is read has, and more. What has more is a listing."""


def read_sentences(text: str, *, is_user: bool) -> list[ReadSentence]:
    """Every sentence of a message, and what it is."""
    return list(_read_once(text, is_user) if len(text) <= LONGEST_KEPT else _read(text, is_user))


@lru_cache(MESSAGES_KEPT)
def _read_once(text: str, is_user: bool) -> tuple[ReadSentence, ...]:
    return _read(text, is_user)


def _read(text: str, is_user: bool) -> tuple[ReadSentence, ...]:
    import numpy as np

    message = sentences(text)[:MOST_SENTENCES]
    if not message:
        return ()
    around = surroundings(message)
    rows = [set(features(message, at, around, is_user=is_user)) for at in range(len(message))]
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    each = np.fromiter(chain.from_iterable(rows), np.int64, int(sizes.sum()))
    scores = np.add.reduceat(_table()[each], sizes.cumsum() - sizes) / np.sqrt(sizes, dtype=np.float32)[:, None]
    kinds = np.exp(scores[:, : len(KINDS)] - scores[:, : len(KINDS)].max(axis=1, keepdims=True))
    kinds /= kinds.sum(axis=1, keepdims=True)
    sides = 1 / (1 + np.exp(-scores[:, len(KINDS) :]))
    best = kinds.argmax(axis=1)
    return tuple(
        ReadSentence(
            one.text,
            one.start,
            one.end,
            KINDS[int(best[at])],
            float(kinds[at, best[at]]),
            1 - float(kinds[at, OTHER]),
            float(kinds[at, TELLING].sum()),
            0.0 if one.is_quoted else float(sides[at, 0]),
            float(sides[at, 1]),
            float(sides[at, 2]),
        )
        for at, one in enumerate(message)
    )


@cache
def _table() -> NDArray[np.float32]:
    import numpy as np

    with files("offbook.models").joinpath(WEIGHTS).open("rb") as file, np.load(file) as kept:
        table: NDArray[np.float32] = kept["table"].astype(np.float32) * kept["scale"]
    return table


# ── What a sentence is read by ──
# Its words and a few marks that mean the same in every language.
# No list of phrases: which words tell a preference from a plan is learnt from labelled sentences
# (`sentence_kinds`).


SIZE = 1 << 17
"""Of the table of weights: features are hashed into it."""
MOST_WORDS = 60
"""Read of a sentence."""
WORDS_KEPT = 16_384
LEAD_WORDS = 12
"""Read of the message's first sentence: what is pasted is mostly announced there."""

_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\d_]+(?:['’][^\W\d_]+)?|\d+|"
    r"[?!？！:：;…\"“”„«»「」'$€£%>|=/{}()\[\]]"
)


class Surroundings(NamedTuple):
    """What is the same for every sentence of a message, found out once."""

    lead: list[str]
    has_list: bool
    first_colon: int
    """The first sentence that ends with one."""


def surroundings(message: Sequence[Sentence]) -> Surroundings:
    colons = (at for at, each in enumerate(message) if each.text.endswith((":", "：")))
    return Surroundings(
        lead=[f"lead {word}" for word in words_of(message[0].text)[:LEAD_WORDS]],
        has_list=any(each.is_listed for each in message),
        first_colon=next(colons, len(message)),
    )


def features(message: Sequence[Sentence], at: int, around: Surroundings, *, is_user: bool) -> list[int]:
    """Rows of the table for one sentence of a message."""
    one = message[at]
    words = words_of(one.text)[:MOST_WORDS]
    names: list[bytes] = []
    previous = b"^"
    for place, word in enumerate(words):
        whole, *ends = _encoded(word)
        names.append(whole)
        names.append(b"%b %b" % (previous, whole))
        names += ends
        if place < 3:
            names.append(b"^%d %b" % (place, whole))
        previous = whole
    names.append(previous + b" $")
    further = _marks(message, at, words, around)
    if at and len(message) > 2:
        further += around.lead
    if at:
        further += [f"before {word}" for word in words_of(message[at - 1].text)[:4]]
    names += [name.encode("utf-8", "surrogatepass") for name in further]
    who = crc32(b"u " if is_user else b"a ")
    return [crc32(name) % SIZE for name in names] + [crc32(name, who) % SIZE for name in names[:24]]


@lru_cache(WORDS_KEPT)
def _encoded(word: str) -> tuple[bytes, ...]:
    """A word, and where it is long its beginning and its end."""
    parts = (word, f"<{word[:4]}", f"{word[-3:]}>") if len(word) > 4 else (word,)
    return tuple(part.encode("utf-8", "surrogatepass") for part in parts)


@lru_cache(16)
def words_of(text: str) -> tuple[str, ...]:
    """In English."""
    found = _TOKEN.findall(in_english(text).lower()[:400])
    return tuple("0" * min(len(word), 4) if word.isdigit() else word for word in found)


def _marks(message: Sequence[Sentence], at: int, words: Sequence[str], around: Surroundings) -> list[str]:
    """Where it stands and how it is written."""
    one = message[at]
    marks = [
        f"#words {min(len(words), 40) // 4}",
        f"#place {min(at, 6)}",
        f"#of {min(len(message), 24) // 3}",
        f"#ends {one.text[-1:]}",
        f"#begins {'upper' if one.text[:1].isupper() else 'lower' if one.text[:1].islower() else one.text[:1]}",
    ]
    if one.is_listed:
        marks.append("#listed")
    if around.has_list:
        marks.append("#list in it")
    if one.line != message[0].line:
        marks.append("#not on the first line")
    if around.first_colon < at:
        marks.append("#after a colon")
    if ": " in one.text[:24]:
        marks.append("#begins with a label")
    return marks
