"""What a model answers about a stretch: its memory of it and the statements made in it, in one JSON object.

Nothing is believed: a statement must name lines that are there, quote one of them word for word, and be in their words.
Whatever is not so is dropped by itself, and the rest stands. An answer in plain prose is a memory without statements.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from json import JSONDecodeError, JSONDecoder
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from offbook.model.statement import StatementKind
from offbook.model.types import Value
from offbook.statements.common_words import is_common, is_unspaced
from offbook.statements.words import denies, names_in

LONGEST_STATEMENT_CHARS = 320
GROUNDED_SHARE = 0.6
"""Of the pieces of a statement's words, those that its lines hold. The others say how they hang together."""
PIECE, UNSPACED_PIECE = 3, 2
SHORTEST_INFLECTED = 5
THEY = ("they", "sie", "ils", "elles", "ellos", "ellas", "loro")
"""How a statement begins that is about whoever speaks with the agent: no name, in the languages we test."""
MOST_STATEMENTS = 40


class SpanStatement(Value, frozen=True):
    """A statement as a model must give it."""

    kind: StatementKind
    text: Annotated[str, Meta(min_length=8, max_length=LONGEST_STATEMENT_CHARS)]
    quote: Annotated[str, Meta(min_length=2)]
    lines: Annotated[list[int], Meta(min_length=1, max_length=50)]
    about: Annotated[str, Meta(max_length=120)] | None = None
    lasting: bool = False
    replaces: Annotated[list[int | str], Meta(max_length=20)] = msgspec.field(default_factory=list)
    """Lines, and names of what was known before, that it changes or takes back."""


class SpanAnswer(NamedTuple):
    summary: str
    statements: list[SpanStatement]


def read_answer(text: str) -> SpanAnswer:
    """Whatever of an answer can be read: one that was cut off keeps what came before the cut."""
    start = text.find("{")
    if start < 0 or text[:start].strip(" \n\r\t`json"):
        return SpanAnswer(text.strip(), [])
    decoder = JSONDecoder(strict=False)
    summary = _value_of(decoder, text, "summary")
    return SpanAnswer(summary.strip() if isinstance(summary, str) else "", list(_statements(decoder, text)))


def _value_of(decoder: JSONDecoder, text: str, name: str) -> object:
    at = _after(text, name)
    try:
        return decoder.raw_decode(text, at)[0] if at else None
    except (JSONDecodeError, RecursionError):
        return None


def _after(text: str, name: str) -> int:
    """Where the value of a field begins; 0 where there is no such field."""
    at = text.find(f'"{name}"')
    colon = text.find(":", at) + 1 if at >= 0 else 0
    return colon + len(text[colon:]) - len(text[colon:].lstrip()) if colon else 0


def _statements(decoder: JSONDecoder, text: str) -> Sequence[SpanStatement]:
    found: list[SpanStatement] = []
    at = text.find("{", _after(text, "statements") or len(text))
    while at >= 0 and len(found) < MOST_STATEMENTS:
        try:
            raw, end = decoder.raw_decode(text, at)
        except (JSONDecodeError, RecursionError):
            break
        with suppress(msgspec.ValidationError):  # the others may be what was asked for
            found.append(msgspec.convert(raw, SpanStatement))
        at = text.find("{", end)
    return found


def grounded(
    statements: Sequence[SpanStatement], lines: Mapping[int, str], known: Collection[str]
) -> list[SpanStatement]:
    """Those that the lines bear out. `lines`: what was said in person, which alone is a source. `known`: the names of
    what was known before, which alone can be replaced."""
    found: dict[str, SpanStatement] = {}
    for one in statements:
        seqs = sorted({seq for seq in one.lines if seq in lines})  # a tool may be named beside whoever speaks of it
        text, quote = " ".join(one.text.split()), " ".join(one.quote.split())
        if not seqs:
            continue
        sources = [" ".join(lines[seq].split()) for seq in seqs]
        if not any(quote.lower() in source.lower() for source in sources) or not _is_in_words_of(text, sources):
            continue
        replaces = [old for old in dict.fromkeys(one.replaces) if _can_be_replaced(old, seqs, lines, known)]
        kept = msgspec.structs.replace(one, text=_ended(text), quote=quote, lines=seqs, replaces=replaces)
        found.setdefault(text.lower(), kept)
    return list(found.values())


def _can_be_replaced(old: int | str, seqs: Sequence[int], lines: Mapping[int, str], known: Collection[str]) -> bool:
    return old in known if isinstance(old, str) else old in lines and old < seqs[-1] and old not in seqs


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?", "。", "！", "？")) else f"{text}."


def _is_in_words_of(text: str, sources: Sequence[str]) -> bool:
    """In any language: most pieces of its words occur in what was said, and so does every name and number."""
    said = " ".join(sources).lower()
    pieces, there = pieces_of(text), pieces_of(said)
    if not pieces or len(pieces & there) < GROUNDED_SHARE * len(pieces):
        return False
    if denies(text) and not denies(said):
        return False
    # A name that begins the sentence looks like any first word, where words stand apart.
    first = text.split(" ", 1)[0].strip(".,;:!?“”\"'()") if " " in text else ""
    names = names_in(text) | (
        {first.lower()} if first and not is_common(first) and first.lower() not in THEY else set()
    )
    return all(_occurs(name, said) for name in names)


def pieces_of(text: str) -> set[str]:
    """The words of a text in threes of letters, so that another ending changes little; where words are written
    together, in twos."""
    words = "".join(letter if letter.isalnum() else " " for letter in text.lower()).split()
    found: set[str] = set()
    for word in words:
        size = UNSPACED_PIECE if is_unspaced(word[0]) else PIECE
        found.update(word[at : at + size] for at in range(max(1, len(word) - size + 1)))
    return found


def _occurs(name: str, said: str) -> bool:
    """Also with another ending."""
    return name in said or (name.isalpha() and len(name) >= SHORTEST_INFLECTED and name[:-2] in said)
