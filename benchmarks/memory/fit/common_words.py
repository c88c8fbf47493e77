"""Which words are common: counted in the labelled messages that ship with the package, in each of their languages.

python -m benchmarks.memory.fit.common_words        writes data/common-words.txt from data/sentences.jsonl.gz
"""

from __future__ import annotations

import gzip
import itertools
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from benchmarks.memory.fit.sentences import labelled_messages
from offbook.statements.common_words import DATA, Common, is_unspaced, written

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


def counted() -> Common:
    words: dict[str, Counter[str]] = {}
    signs: Counter[str] = Counter()
    messages: Counter[str] = Counter()
    for one in labelled_messages():
        messages[one["lang"]] += 1
        said = one["message"].lower()
        unspaced = [letter for letter in said if is_unspaced(letter)]
        signs.update(set(unspaced))
        words.setdefault(one["lang"], Counter()).update({*_words(said), *_pairs(unspaced)})
    frequent = frozenset(_vocabulary()[:MOST_FREQUENT])
    found = {
        word
        for lang, of_lang in words.items()
        for word, count in of_lang.items()
        if count >= max(FEWEST_MESSAGES, COMMON_SHARE * messages[lang])
        or (word in frequent and count >= FREQUENT_SHARE * messages[lang])
    }
    most = COMMON_SIGN_SHARE * messages["zh"]
    return Common(frozenset(found), frozenset(sign for sign, count in signs.items() if count >= most))


def _vocabulary() -> list[str]:
    return gzip.decompress(files("offbook.models").joinpath(VOCABULARY).read_bytes()).decode().splitlines()


def _words(said: str) -> Iterator[str]:
    return (word for raw in said.split() if (word := raw.strip(_AROUND)).isalpha())


def _pairs(letters: list[str]) -> Iterator[str]:
    return (first + second for first, second in itertools.pairwise(letters))


if __name__ == "__main__":
    Path(str(files("offbook.models").joinpath(DATA))).write_text(written(counted()), encoding="utf-8")
