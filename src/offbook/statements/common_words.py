"""How common words are: counted in the labelled messages that ship with the package, in each of their languages.

A word that one message in a few hundred has, whatever it is about, says little of what somebody talks about.
"""

from __future__ import annotations

import gzip
import itertools
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import msgspec

from offbook.search.words import STOP_WORDS

MESSAGES = "data/sentences.jsonl.gz"
VOCABULARY = "data/wordpiece-uncased.txt.gz"
"""Of English, the most frequent words first."""
COMMON_SHARE, FEWEST_MESSAGES = 0.015, 3
"""Of the messages of a language: a word in so many is common."""
FREQUENT_SHARE, MOST_FREQUENT = 0.003, 3_400
"""Or in so many, where it is one of the first of the vocabulary as well: a garden is in many messages, and yet what
they are about."""
COMMON_SIGN_SHARE = 0.06
"""Of a single sign of a script without spaces: the signs that sentences are joined with are in this many messages."""
_AROUND = "\"'“”„‘’«»()[]{}<>*_`~.,;:!?¿¡…"


class _Labelled(msgspec.Struct):
    lang: str
    message: str


class Common(NamedTuple):
    words: frozenset[str]
    """In lower case, as they are written."""
    signs: frozenset[str]


def is_common(word: str) -> bool:
    lower = word.lower()
    return lower in STOP_WORDS or lower.replace("'", "").replace("’", "") in STOP_WORDS or lower in common().words


@cache
def common() -> Common:
    words: dict[str, Counter[str]] = {}
    signs: Counter[str] = Counter()
    messages: Counter[str] = Counter()
    decoder = msgspec.json.Decoder(_Labelled)
    for line in _lines(MESSAGES):
        one = decoder.decode(line)
        messages[one.lang] += 1
        said = one.message.lower()
        unspaced = [letter for letter in said if is_unspaced(letter)]
        signs.update(set(unspaced))
        words.setdefault(one.lang, Counter()).update({*_words(said), *_pairs(unspaced)})
    frequent = frozenset(_lines(VOCABULARY)[:MOST_FREQUENT])
    found = {
        word
        for lang, counted in words.items()
        for word, count in counted.items()
        if count >= max(FEWEST_MESSAGES, COMMON_SHARE * messages[lang])
        or (word in frequent and count >= FREQUENT_SHARE * messages[lang])
    }
    most = COMMON_SIGN_SHARE * messages["zh"]
    return Common(frozenset(found), frozenset(sign for sign, count in signs.items() if count >= most))


def is_unspaced(letter: str) -> bool:
    """Whether it is of a script that puts no spaces between words."""
    return "\u3005" <= letter <= "\u9fff"


def _lines(name: str) -> list[str]:
    return gzip.decompress(files("offbook.models").joinpath(name).read_bytes()).decode().splitlines()


def _words(said: str) -> Iterator[str]:
    return (word for raw in said.split() if (word := raw.strip(_AROUND)).isalpha())


def _pairs(letters: list[str]) -> Iterator[str]:
    return (first + second for first, second in itertools.pairwise(letters))
