"""The words of a sentence as coverage counts them, and what each is worth: names, numbers and identifiers the most.

Told by spelling alone, in any script. The same words come again and again, so each is looked at once and remembered.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from offbook.search.stems import stem
from offbook.search.words import STOP_WORDS, UNSPACED_RUN

WORDS_KEPT = 1 << 14
LONGEST_TERM_CHARS = 48
LONGEST_WORD_CHARS = 160
"""Nothing that is said has longer words; of a longer one the beginning counts."""
MOST_TERMS = 16
"""Of one word. A path of more parts counts by its first ones."""

# About how much likelier somebody asks for a word of each kind than for a plain one of seven letters. Half or twice as
# much changes little.
PLAIN_WEIGHT, LETTER_WEIGHT, MOST_PLAIN_WEIGHT = 0.3, 0.1, 1.6
"""Longer words are rarer in every language with letters, and say more (two points of LoCoMo's facts standing)."""
NAME_WEIGHT = 4.0
NUMBER_WEIGHT = 4.0
IDENTIFIER_WEIGHT = 3.0
OPENING_CAPITAL_WEIGHT = 1.2
"""The first word of a sentence says little about names by its capital."""
PAIR_WEIGHT = 0.5
"""Two letters of a script without spaces; a word has about two such pairs."""

_PIECES = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_MADE = re.compile(r"[a-z][A-Z]|[A-Z]{2}|\w[._/\\@#:=]\w|_|\d[A-Za-z]|[A-Za-z]\d")
"""Names made by people or machines: camelCase, LGBTQ, file.py, user@host, v2."""
_AROUND = "\"'“”‘’«»()[]{}*_`#>~-–—•·「」『』（）.,;:!?…。！？；，、："

Term = tuple[str, str, float]
"""A word as coverage counts it: its form, its stem (which its other forms share), its weight."""


class _Word(NamedTuple):
    terms: tuple[Term, ...]
    opening: tuple[Term, ...]
    """What it counts as the first word of a sentence."""


def terms_of(sentence: str) -> tuple[Term, ...]:
    """Each form once, without stop words."""
    found: dict[str, Term] = {}
    is_first = True
    for word in sentence.split():
        read = _read(word[:LONGEST_WORD_CHARS])
        for term in read.opening if is_first else read.terms:
            found[term[0]] = term
        is_first = is_first and not any(map(str.isalnum, word))
    return tuple(found.values())


def word_count(text: str) -> int:
    """Two letters of a script without spaces count as a word."""
    words = len(text.split())
    return words if text.isascii() else words + sum(map(len, UNSPACED_RUN.findall(text))) // 2


@lru_cache(WORDS_KEPT)
def _read(word: str) -> _Word:
    core = word.strip(_AROUND)
    lower = core.lower().replace("’", "'")
    if not core:
        return _Word((), ())
    if not core.isascii() and UNSPACED_RUN.search(core):
        pairs = _pairs(lower)
        return _Word(pairs, pairs)
    is_made = _MADE.search(core) is not None
    terms: list[Term] = []
    for piece in _PIECES.findall(lower.removesuffix("'s"))[:MOST_TERMS]:
        form = piece[:LONGEST_TERM_CHARS]
        if form.replace("'", "") in STOP_WORDS and not (core.isupper() and len(core) > 1):
            continue
        terms.append((form, stem(form), _weight(form, is_made=is_made, is_capitalised=core[0].isupper())))
    if is_made or not core[0].isupper():
        return _Word(tuple(terms), tuple(terms))
    opening = tuple((form, root, min(weight, OPENING_CAPITAL_WEIGHT)) for form, root, weight in terms)
    return _Word(tuple(terms), opening)


def _weight(form: str, *, is_made: bool, is_capitalised: bool) -> float:
    if form[0].isdigit():
        return NUMBER_WEIGHT
    if is_capitalised:
        return NAME_WEIGHT
    if is_made:
        return IDENTIFIER_WEIGHT
    return min(MOST_PLAIN_WEIGHT, PLAIN_WEIGHT + LETTER_WEIGHT * len(form))


def _pairs(lower: str) -> tuple[Term, ...]:
    found: dict[str, Term] = {}
    for run in UNSPACED_RUN.findall(lower):
        for at in range(max(1, len(run) - 1)):
            pair = run[at : at + 2]
            found[pair] = (pair, pair, PAIR_WEIGHT)
    for form in _PIECES.findall(UNSPACED_RUN.sub(" ", lower)):
        found[form] = (form, stem(form), NUMBER_WEIGHT if form[0].isdigit() else NAME_WEIGHT)
    return tuple(found.values())
