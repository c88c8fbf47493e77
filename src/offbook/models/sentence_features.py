"""What a sentence is read by: its words and a few marks that mean the same in every language.

No list of phrases: which words tell a preference from a plan is learnt from labelled sentences (`sentence_kinds`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

from offbook.model.sentences import Sentence

SIZE = 1 << 17
"""Of the table of weights: features are hashed into it."""
MOST_WORDS = 60
"""Read of a sentence."""
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
    names: list[str] = []
    previous = "^"
    for place, word in enumerate(words):
        names.append(word)
        names.append(f"{previous} {word}")
        if len(word) > 4:
            names.append(f"<{word[:4]}")
            names.append(f"{word[-3:]}>")
        if place < 3:
            names.append(f"^{place} {word}")
        previous = word
    names.append(f"{previous} $")
    names += _marks(message, at, words, around)
    if at and len(message) > 2:
        names += around.lead
    if at:
        names += [f"before {word}" for word in words_of(message[at - 1].text)[:4]]
    who = "u " if is_user else "a "
    rows = [crc32(name.encode("utf-8", "surrogatepass")) % SIZE for name in names]
    rows += [crc32((who + name).encode("utf-8", "surrogatepass")) % SIZE for name in names[:24]]
    return rows


def words_of(text: str) -> list[str]:
    return ["0" * min(len(word), 4) if word.isdigit() else word for word in _TOKEN.findall(text.lower()[:400])]


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
