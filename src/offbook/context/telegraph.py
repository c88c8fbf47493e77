"""Telegraph style: a text as clauses without greetings, hedges and the function words that carry nothing.

Names, numbers and whatever looks made by people or machines stay as they are written. A clause is kept or left out as
a whole, so it is as much as a reader can make sense of alone. What is not prose (code, logs, tables) is cut into its
lines, and these are left as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from offbook.context.days import with_dates
from offbook.context.telegraph_words import (
    GREETINGS,
    HARD_END,
    HEDGES,
    KEPT,
    LEFT_OUT,
    LINKING,
    LITTLE,
    OPENING,
    QUESTION_END,
    REQUESTS,
    SOFT_END,
    SUBJECTS,
    TELLING_WEIGHT,
    TIME_WEIGHT,
    UNSPACED,
    Shape,
    Term,
    shape_of,
)

FIRST_CHARS = 20_000
LAST_CHARS = 10_000
"""What is looked at of one message: its beginning and its end. A longer one is a file or a listing."""
SHORTEST_CLAUSE_WORDS = 3
"""Shorter ones hang on to their neighbour: `dogs, cats, birds` is one clause. More cost a point of what is kept."""
LONGEST_CLAUSE_CHARS = 160
LONGEST_WORD_CHARS = 80
"""Nothing that is said has longer words; of a longer one the beginning is kept."""

TABLE_WORDS = 5
QUESTION_FACTOR = 0.7
DECISION_FACTOR = 1.5
EMPTY_FACTOR = 0.5
"""For a clause with less than two words of substance: `words mean`, `all worth`."""
LISTING_FACTOR = 0.5
"""For lines that are not prose: every word of a listing is rare."""
TABLE_FACTOR = 0.4
"""For clauses of nothing but numbers, and for lines that are mostly numbers: thirty say little more than one."""

_LONG_UNSPACED = re.compile(f"[{UNSPACED}]")
_UNSPACED_END = re.compile("(?<=[。！？；，、：])(?![。！？；，、：」』）])")
_SIGNS = re.compile(r"[{}\[\]<>=|\\/;()]")
_CODE = re.compile(
    r"^\s*(?:[{}\[\]<>+|$#@/\\;=*]|(?:def|class|import|from|return|if|for|while|const|let|var|function)\b)"
    r"|[{};=]\s*$|\w\(|=>|->|::|==|://"
)
_LIST_MARK = re.compile(r"^\s*(?:(?:[-*•+>]|#{1,6}|\*{0,2}\(?(?:\d{1,3}|[a-z]|[IVX]{1,4})[.)]\*{0,2})\s+)+(?=\S)")
_PROMPTS = ("$ ", ">>> ")
_SIGN_CHARS = 12
"""Prose has a sign in more characters than this."""


_KEPT_ROLES = (KEPT, OPENING)
_NOTHING = shape_of("-")._replace(role=LEFT_OUT)


class Clause(NamedTuple):
    text: str
    terms: tuple[Term, ...]
    """Each form once."""
    factor: float
    """What its kind multiplies its words by: a decision counts more than a question."""


def clauses(text: str, day: date | None = None) -> list[Clause]:
    """The clauses of a message in their order. `day` is when it was said: `yesterday` becomes a date."""
    found: list[Clause] = []
    for line in _looked_at(text).splitlines():
        if not line or line.isspace():
            continue
        if _is_prose(line):
            said = _LIST_MARK.sub("", line, count=1)
            _add_prose(found, with_dates(said, day) if day is not None else said)
        else:
            _add_listing(found, line)
    return found


def _looked_at(text: str) -> str:
    if len(text) <= FIRST_CHARS + LAST_CHARS:
        return text
    return f"{text[:FIRST_CHARS]}\n{text[-LAST_CHARS:]}"


def _is_prose(line: str) -> bool:
    if line.startswith(_PROMPTS):
        return False
    signs = len(_SIGNS.findall(line))
    return signs * _SIGN_CHARS <= len(line) or _CODE.search(line) is None


# ── prose ─────────────────────────────────────────────────────────────────────────────────────


class _Piece:
    """A clause while it is gathered."""

    __slots__ = ("chars", "count", "is_deciding", "terms", "words")

    def __init__(self) -> None:
        self.words: list[str] = []
        self.terms: list[Term] = []
        self.count = 0
        self.chars = 0
        self.is_deciding = False

    def take(self, shape: Shape, little: str, *, is_first: bool) -> None:
        """A word that is kept, and the small word before it where that says something."""
        if little and self.count and (shape.is_particular or little in LINKING):
            self.words.append(little)
            self.chars += len(little) + 1
        self.words.append(shape.text)
        self.terms += shape.opening_terms if is_first else shape.terms
        self.count += 1
        self.chars += len(shape.text) + 1
        self.is_deciding |= shape.is_deciding

    def add(self, other: _Piece) -> None:
        """What follows after a comma; a word that was just said is not said again."""
        is_again = other.words[0].lower() == self.words[-1].lower()
        if not is_again:
            self.words[-1] += ","
        self.words += other.words[is_again:]
        self.terms += other.terms
        self.count += other.count
        self.chars += other.chars
        self.is_deciding |= other.is_deciding


def _add_prose(found: list[Clause], line: str) -> None:
    sentence: list[_Piece] = []
    for piece, end in _pieces(line):
        if piece.count:
            last = sentence[-1] if sentence else None
            is_short = last is not None and min(piece.count, last.count) < SHORTEST_CLAUSE_WORDS
            if last is not None and is_short and last.chars + piece.chars < LONGEST_CLAUSE_CHARS:
                last.add(piece)
            else:
                sentence.append(piece)
        if end >= HARD_END:
            found.extend([_clause(one, is_asking=end == QUESTION_END) for one in sentence])
            sentence = []
    found.extend([_clause(one, is_asking=False) for one in sentence])


def _clause(piece: _Piece, *, is_asking: bool) -> Clause:
    terms = tuple({term[0]: term for term in piece.terms}.values())
    text = " ".join(piece.words)
    if is_asking:
        is_request = text.lower().startswith(REQUESTS)
        return Clause(text + "?", terms, DECISION_FACTOR if is_request else QUESTION_FACTOR)
    return Clause(text, terms, _factor(terms, is_deciding=piece.is_deciding))


def _factor(terms: tuple[Term, ...], *, is_deciding: bool) -> float:
    substance = 0
    for term in terms:
        if term[2] >= TELLING_WEIGHT:
            substance += 2 if term[2] >= TIME_WEIGHT else 1
    factor = DECISION_FACTOR if is_deciding else 1.0
    numbers = sum([term[0][0].isdigit() for term in terms])
    if numbers == len(terms) or (len(terms) >= TABLE_WORDS and 2 * numbers > len(terms)):
        factor *= TABLE_FACTOR
    return factor if substance > 1 else factor * EMPTY_FACTOR


def _pieces(line: str) -> Iterator[tuple[_Piece, int]]:
    """The line cut at its marks and before words that begin a clause; with each piece, what ends with it."""
    piece = _Piece()
    is_first, is_greeted, little, skipped = True, False, "", -1
    words = _words(line)
    for index, word in enumerate(words):
        if index == skipped:
            continue
        shape = shape_of(word)
        if shape.role >= OPENING or shape.begins_hedge:
            following = shape_of(words[index + 1]) if index + 1 < len(words) else _NOTHING
            if shape.begins_hedge and f"{shape.lower} {following.lower}" in HEDGES:
                skipped, shape = index + 1, _NOTHING._replace(end=following.end)
            elif _begins_clause(shape, following.lower, piece.count):
                yield piece, SOFT_END
                piece, little = _Piece(), ""
        if shape.role in _KEPT_ROLES:
            if not (is_greeted and shape.end and shape.is_particular and not piece.count):
                piece.take(shape, little, is_first=is_first)
            is_first, is_greeted, little = False, False, ""
        elif shape.role == LITTLE or shape.lower == "and":
            is_first, little = False, shape.lower
        elif shape.lower:
            is_greeted = shape.lower in GREETINGS
        if shape.end or piece.chars > LONGEST_CLAUSE_CHARS:
            yield piece, shape.end
            piece, little = _Piece(), ""
            is_first |= shape.end >= HARD_END
    yield piece, HARD_END


def _begins_clause(shape: Shape, following: str, count: int) -> bool:
    is_list = shape.lower == "and" and following not in SUBJECTS
    return shape.role >= OPENING and count >= SHORTEST_CLAUSE_WORDS and not is_list


def _words(line: str) -> list[str]:
    words = line.split()
    if len(line) < LONGEST_WORD_CHARS and line.isascii():
        return words
    if line.isascii() and max(map(len, words)) <= LONGEST_WORD_CHARS:
        return words
    return [part for word in words for part in _parts(word)]


def _parts(word: str) -> Iterator[str]:
    """A word as clauses can hold it: scripts without spaces at their marks, what is too long cut."""
    if len(word) <= LONGEST_WORD_CHARS and (len(word) < 8 or not _LONG_UNSPACED.search(word)):
        yield word
    elif _LONG_UNSPACED.search(word):
        for part in _UNSPACED_END.split(word):
            start = 0
            while start < len(part):
                end = start + whole_letters(part[start : start + LONGEST_CLAUSE_CHARS + 1], LONGEST_CLAUSE_CHARS)
                yield part[start:end]
                start = end
    else:
        yield _bounded(word)


def _bounded(word: str) -> str:
    if len(word) <= LONGEST_WORD_CHARS:
        return word
    return word[: whole_letters(word, LONGEST_WORD_CHARS - 1)] + "…"


# ── what is not prose ─────────────────────────────────────────────────────────────────────────


def _add_listing(found: list[Clause], line: str) -> None:
    """A line of code, of a log, of a table: in its own words, in pieces where it is long."""
    piece: list[str] = []
    chars = 0
    for word in map(_bounded, line.split()):
        if chars + len(word) > LONGEST_CLAUSE_CHARS:
            found.append(_listed(piece))
            piece, chars = [], 0
        piece.append(word)
        chars += len(word) + 1
    found.append(_listed(piece))


def _listed(words: list[str]) -> Clause:
    clause = as_clause(" ".join(words))
    return clause._replace(factor=clause.factor * LISTING_FACTOR)


def as_clause(text: str) -> Clause:
    """A text that is to stay as it is, with what it counts."""
    shapes = [shape_of(word[:LONGEST_CLAUSE_CHARS]) for word in text.split()]
    terms = tuple({term[0]: term for shape in shapes for term in shape.terms}.values())
    return Clause(text, terms, _factor(terms, is_deciding=any(shape.is_deciding for shape in shapes)))


def whole_letters(text: str, at: int) -> int:
    """Where to cut at most `at` characters in, so that no letter with its marks and no emoji is broken."""
    if at >= len(text):
        return len(text)
    start = at
    while at > 0 and start - at < 32 and _continues(text, at):
        at -= 1
    return at or start


def _continues(text: str, at: int) -> bool:
    character, before = text[at], text[at - 1]
    if before == "\u200d" or character in "\u200d\ufe0e\ufe0f" or unicodedata.combining(character):
        return True
    if "\U0001f3fb" <= character <= "\U0001f3ff" or unicodedata.category(character) in ("Mn", "Mc", "Me"):
        return True
    return "\U0001f1e6" <= character <= "\U0001f1ff" and "\U0001f1e6" <= before <= "\U0001f1ff"
