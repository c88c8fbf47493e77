"""What a word of a text is: what telegraph style does with it, what it counts, whether a clause ends with it.

Words are what lies between spaces. The same ones come again and again, so each is looked at once and remembered.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from offbook.compression.digest_words import (
    ABBREVIATIONS,
    DECIDING,
    DROPPED,
    GENERIC,
    HEDGES,
    MONTHS,
    NUMBER_WORDS,
    OPENERS,
    SILENT_OPENERS,
    SMALL,
    TIME_WORDS,
)

SHAPES_KEPT = 1 << 14
LONGEST_TERM_CHARS = 48
MOST_TERMS = 16
"""Of one word. A path of more parts counts by its first ones."""

KEPT, LEFT_OUT, LITTLE, OPENING, SILENT = range(5)
"""What telegraph style does with a word: keeps it; leaves it out; leaves it out before a plain word; begins a clause
with it; begins a clause without it."""
NO_END, SOFT_END, HARD_END, QUESTION_END = range(4)
"""What ends with a word: nothing, a clause, a sentence, a question."""

# About how much likelier an answer of LoCoMo asks for a word of each kind than for a plain one. Half or twice as much
# changes the share of answers kept by a point or less.
PLAIN_WEIGHT = 1.0
TELLING_WEIGHT = 0.6
"""What was done and how it was: verbs in `-ed` and `-ing`, words in `-ly`. What is asked for is rather what it was."""
GENERIC_WEIGHT = 0.2
NAME_WEIGHT = 6.0
NUMBER_WEIGHT = 5.0
TIME_WEIGHT = 2.0
IDENTIFIER_WEIGHT = 3.0
OPENING_CAPITAL_WEIGHT = 1.2
"""The first word of a sentence says little about names by its capital."""
PAIR_WEIGHT = 0.5
"""Two letters of a script without spaces; a word has about two such pairs."""

Term = tuple[str, str, float]
"""A word as coverage counts it: its form, its stem (which its other forms share), its weight."""


class Shape(NamedTuple):
    text: str
    """As it is printed: without the mark that ends its clause."""
    role: int
    end: int
    is_particular: bool
    """A number, a name or an identifier: small words before it are kept."""
    terms: tuple[Term, ...]
    opening_terms: tuple[Term, ...]
    """What it counts as the first word of a sentence."""
    lower: str
    begins_hedge: bool
    is_deciding: bool


UNSPACED = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e01-\u0e4e\u0e81-\u0ede"
    "\u1780-\u17d3\u1000-\u109d\U00020000-\U0003ffff"
)
"""Han, kana, Thai, Lao, Khmer, Burmese: scripts that put no spaces between words."""
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_PIECES = re.compile(r"[^\W_]+")
_MADE = re.compile(r"[a-z][A-Z]|[A-Z]{2}|\w[._/\\@#:=]\w|_|\d[A-Za-z]|[A-Za-z]\d")
"""Names made by people or machines: camelCase, LGBTQ, file.py, user@host, v2."""
_MARKS = ".,;:!?…。！？；，、："
_OPENING = "\"'“‘«([{*_`#>~-–—•·「『（"
_CLOSING = "\"'”’»)]}*_`~」』）"
_BRACKETS = tuple((pair[0], pair[1]) for pair in ("()", "[]", "{}", '""', "“”", "‘’", "``", "「」", "『』", "（）"))
_TELLING = ("ed", "ing", "ly", "ive", "able", "ful", "ous")
_HEDGE_OPENERS = frozenset(hedge.split()[0] for hedge in HEDGES)


@lru_cache(SHAPES_KEPT)
def shape_of(word: str) -> Shape:
    bare = word.rstrip(_CLOSING)
    unmarked = bare.rstrip(_MARKS)
    marks = bare[len(unmarked) :]
    core = unmarked.strip(_OPENING + _CLOSING)
    lower = core.lower().replace("’", "'")
    end = _end(word, bare, marks)
    if not core:
        return Shape("", LEFT_OUT, end, False, (), (), "", False, False)
    is_simple = core.isalpha() and core.islower()
    is_made = not is_simple and _MADE.search(core) is not None
    is_capitalised = core[0].isupper()
    has_digit = not is_simple and any(map(str.isdigit, core))
    terms = _terms(core, lower, is_made=is_made, is_capitalised=is_capitalised)
    opening = terms
    if is_capitalised and not (is_made or has_digit):
        opening = tuple((form, root, min(weight, OPENING_CAPITAL_WEIGHT)) for form, root, weight in terms)
    return Shape(
        text=core if core == unmarked == word else _printed(word, bare, marks if end and "…" not in marks else ""),
        role=_role(core, lower, end),
        end=end,
        is_particular=has_digit or is_made or is_capitalised,
        terms=terms,
        opening_terms=opening,
        lower=lower,
        begins_hedge=lower in _HEDGE_OPENERS and not end,
        is_deciding=lower in DECIDING,
    )


def _role(core: str, lower: str, end: int) -> int:
    if core.isupper() and len(core) > 1 and core != "OK":  # IT, US, AM
        return KEPT
    if lower in SILENT_OPENERS:
        return SILENT
    if lower in DROPPED or (lower == "too" and end):
        return LEFT_OUT
    if lower in SMALL:
        return LITTLE
    return OPENING if lower in OPENERS else KEPT


def _end(word: str, bare: str, marks: str) -> int:
    if not marks:
        return SOFT_END if not word.strip("-–—|") else NO_END
    if "?" in marks or "？" in marks:
        return QUESTION_END
    if marks == ".":
        is_initial = len(bare) == 2 and bare[0].isupper()
        return NO_END if is_initial or bare.lower().lstrip(_OPENING) in ABBREVIATIONS else HARD_END
    return SOFT_END if marks in (",", ";", ":", "，", "、", "；", "：") else HARD_END


def _printed(word: str, bare: str, marks: str) -> str:
    """Without the marks that end its clause, without emphasis, and without a bracket whose other half is elsewhere."""
    text = (bare.removesuffix(marks) + word[len(bare) :]).strip("*") or word
    for opening, closing in _BRACKETS:
        halves = 1 if opening == closing else 0
        if text.startswith(opening) and text.count(closing) == halves:
            text = text[1:]
        elif text.endswith(closing) and text.count(opening) == halves:
            text = text[:-1]
    return text


# ── what it counts ────────────────────────────────────────────────────────────────────────────


def _terms(core: str, lower: str, *, is_made: bool, is_capitalised: bool) -> tuple[Term, ...]:
    if not core.isascii() and _UNSPACED_RUN.search(core):
        return _pairs(lower)
    terms = []
    for piece in _PIECES.findall(lower.removesuffix("'s"))[:MOST_TERMS]:
        form = piece[:LONGEST_TERM_CHARS]
        if form in GENERIC:
            weight = GENERIC_WEIGHT
        elif form in DROPPED and not core.isupper():
            continue
        elif form[0].isdigit() or form in NUMBER_WORDS:
            weight = NUMBER_WEIGHT
        elif form in TIME_WORDS or (is_capitalised and form in MONTHS):
            weight = TIME_WEIGHT
        elif is_capitalised:
            weight = NAME_WEIGHT
        elif is_made:
            weight = IDENTIFIER_WEIGHT
        else:
            weight = TELLING_WEIGHT if form.endswith(_TELLING) and len(form) > 5 else PLAIN_WEIGHT
        terms.append((form, stem(form), weight))
    return tuple(terms)


def _pairs(lower: str) -> tuple[Term, ...]:
    found: dict[str, Term] = {}
    for run in _UNSPACED_RUN.findall(lower):
        for at in range(max(1, len(run) - 1)):
            pair = run[at : at + 2]
            found[pair] = (pair, pair, PAIR_WEIGHT)
    for form in _PIECES.findall(_UNSPACED_RUN.sub(" ", lower)):
        found[form] = (form, stem(form), NUMBER_WEIGHT if form[0].isdigit() else NAME_WEIGHT)
    return tuple(found.values())


def stem(word: str) -> str:
    """Plurals and the forms of a verb, roughly. A key, not a word; what is no small English word stays as it is."""
    if len(word) < 4 or not word.isascii() or word[-1].isdigit():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "i"
    if word.endswith("ing") and len(word) > 5:
        word = word[:-3]
    elif len(word) > 4 and word.endswith(("ed", "ses", "xes", "zes", "hes")):
        word = word[:-2]
    elif word.endswith("s") and word[-2] not in "su":
        word = word[:-1]
    if len(word) < 4:
        return word
    if word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") else word.rstrip("e")
