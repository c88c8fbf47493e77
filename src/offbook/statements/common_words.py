"""How common words are. What one message in a few hundred has, whatever it is about, says little of what somebody talks
about. `benchmarks/memory/fit/common_words.py` counts them in the labelled messages that ship with the package.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from offbook.search.words import STOP_WORDS

DATA = "data/common-words.txt"


class Common(NamedTuple):
    words: frozenset[str]
    """In lower case, as they are written."""
    signs: frozenset[str]
    """Of a script that puts no spaces between words."""


def is_common(word: str) -> bool:
    lower = word.lower()
    return lower in STOP_WORDS or lower.replace("'", "").replace("’", "") in STOP_WORDS or lower in common().words


@cache
def common() -> Common:
    words, signs = files("offbook.models").joinpath(DATA).read_text(encoding="utf-8").splitlines()
    return Common(frozenset(words.split()), frozenset(signs.split()))


def written(given: Common) -> str:
    """As `common` reads it: a line of words, a line of signs."""
    return "".join(f"{' '.join(sorted(some))}\n" for some in given)


def is_unspaced(letter: str) -> bool:
    """Whether it is of a script that puts no spaces between words."""
    return "\u3005" <= letter <= "\u9fff"
