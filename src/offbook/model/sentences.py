"""Text to sentences, in any language that ends them with a mark. Pure; a sentence keeps its place in the text."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

MOST_CHARS = 32_000
"""Of one text: what is longer is pasted or printed, and its sentences are not read one by one."""
LONGEST_CHARS = 600
"""A longer sentence is cut between words: nobody says that much in one breath."""

# Blanks before a line's end are tried once, from their first: a text of nothing but blanks takes no longer than others.
_END = re.compile(r"(?<=[.!?…؟।])[\"'”’»)\]]*+\s++|(?<=[。！？])[\"”’」』)]*+\s*+|(?<![^\S\n])\s*\n\s*+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"“])(?:[^\W\d_]|\d{1,2}|Mrs?|Ms|Dr|Prof|St|Nr|No|Sra?|Sig|bzw|ca|etc|vs|Inc|Ltd|Mme|approx|max|min|usw|evtl|ggf|"
    r"Jan|Feb|Aug|Sept|Oct|Nov|Dec|cf|[^\W\d_]\.\s?[^\W\d_]|p\.\s?ej)\.$",
    re.IGNORECASE,
)
_BULLET = re.compile(r"(?:[-*•·–>]|\d{1,3}[.)]|#{1,6})\s+")
_FENCES = ("```", "~~~")

_MARKS = (".", "!", "?", "…", "。", "！", "？")
_QUESTION_MARKS = ("?", "？", "؟")
_QUESTION_PARTICLES = ("吗", "嗎", "呢", "ですか", "ますか", "ましたか", "でしたか", "っけ", "나요", "까요", "습니까")
_BEHIND_MARKS = " \n\"'”’»)]}*_~"
"""What may stand behind the mark that ends a sentence."""


class Sentence(NamedTuple):
    text: str
    """As it was said, without the mark of a list before it."""
    start: int
    end: int
    """Where it stands in the text: `text[start:end]`."""
    line: int
    """The number of its line."""
    is_listed: bool = False
    """An item of a list, a heading or a quoted line."""
    is_quoted: bool = False
    """Of a line that quotes: `> like this`."""


def sentences(text: str) -> list[Sentence]:
    """Every sentence outside of code blocks, in order."""
    text = text[:MOST_CHARS]
    found: list[Sentence] = []
    line, begins_line, is_quoted = 0, True, False
    for start, end, ends_line in _pieces(text):
        is_quoted = text.startswith(">", start) if begins_line else is_quoted
        found += _cut(text, start, end, line, is_quoted=is_quoted)
        line, begins_line = line + ends_line, ends_line
    return found


def parts(text: str) -> list[str]:
    """The whole text in sentences: code and the marks of lists included."""
    places = [0, *ends(text), len(text)]
    return [part for first, last in pairwise(places) if (part := text[first:last].strip())]


def ends(text: str) -> list[int]:
    """Where sentences end, each behind its mark."""
    found = [
        match.start() + len(match[0].rstrip()) for match in _END.finditer(text) if not _is_abbreviated(text, match)
    ]
    return [*found, len(text)] if text.endswith(_MARKS) else found


def _is_abbreviated(text: str, end: re.Match[str]) -> bool:
    """`Dr.`, `12.`: the mark ends no sentence there."""
    at = end.start()
    return "\n" not in end[0] and _ABBREVIATION.search(text, max(0, at - 12), at) is not None


def is_question(sentence: str) -> bool:
    """By its mark or, in Chinese, Japanese and Korean, by the particle at its end."""
    said = sentence[-40:].rstrip(_BEHIND_MARKS)
    return said.endswith(_QUESTION_MARKS) or said.rstrip(".。!！").endswith(_QUESTION_PARTICLES)


def _pieces(text: str) -> list[tuple[int, int, bool]]:
    """Where each begins and ends, outside of fences, and whether a line ends there."""
    pieces: list[tuple[int, int, bool]] = []
    for begin, end in _outside_fences(text):
        start = begin
        for match in _END.finditer(text, begin, end):
            ends_line = "\n" in match[0]
            stop = match.start() + len(match[0].rstrip())
            if _is_abbreviated(text, match):
                continue
            pieces.append((start, stop, ends_line))
            start = match.end()
        if start < end:
            pieces.append((start, end, False))
    return pieces


def _outside_fences(text: str) -> list[tuple[int, int]]:
    if "```" not in text and "~~~" not in text:
        return [(0, len(text))]
    spans: list[tuple[int, int]] = []
    start, line_start, is_inside = 0, 0, False
    for line in text.split("\n"):
        line_end = line_start + len(line) + 1
        if line.lstrip().startswith(_FENCES):
            if not is_inside and text[start:line_start].strip():
                spans.append((start, line_start))
            is_inside, start = not is_inside, line_end
        line_start = line_end
    if not is_inside and start < len(text):
        spans.append((start, len(text)))
    return spans


def _cut(text: str, start: int, end: int, line: int, *, is_quoted: bool) -> list[Sentence]:
    found: list[Sentence] = []
    bullet = _BULLET.match(text, start, end)
    is_listed = bullet is not None
    if bullet is not None:
        start = bullet.end()
    while start < end:
        stop = end
        if end - start > LONGEST_CHARS:
            blank = text.rfind(" ", start + LONGEST_CHARS // 2, start + LONGEST_CHARS)
            stop = blank if blank > 0 else start + LONGEST_CHARS
        said = text[start:stop]
        stripped = said.strip()
        if stripped:
            at = start + len(said) - len(said.lstrip())
            found.append(Sentence(stripped, at, at + len(stripped), line, is_listed, is_quoted))
        start = stop
    return found
