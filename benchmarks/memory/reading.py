"""Reading what a turn tells, as a model would: which values stand in it, and which of them are told as over. Pure.

Only the memory's own words can mark something as over, never those of whoever is quoted: "deploy until Friday" is no
mark. Where a line quotes (“…”), what stands before the quote, and what is appended to it (" – no longer so."), marks
all of the quote; elsewhere a sentence is marked by its own words, less those that are somebody's word for word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

_QUOTE = re.compile(r"“([^”]*)(?:”|$)")
_TAIL = re.compile(r"\s*[–—(,;-][^“.;)]*[.;)]?")
"""What is appended to a quote."""
_SPEAKER = re.compile(r"^(?:They|I): ")
"""Before a line of a summary."""
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'»)]*\s+|(?<=[。！？])")
_MARK = re.compile(
    r"\b(?:no longer|not any ?more|superseded|replaced|corrected since|formerly|previously|used to|until|outdated"
    r"|taken back|earlier)\b"
    r"|\bbefore\b[^“”.]{0,40}:"
    r"|\bwas:"
    r"|[(;,–—-]\s*(?:before|was)\b",
    re.IGNORECASE,
)
"""How something is told as what held before: "no longer so", "(before: …", "until May", "earlier"."""


class Unit(NamedTuple):
    """A sentence, and whether it is told as what held before."""

    text: str
    is_marked: bool


def stands(value: str, text: str, *, is_stem: bool = False) -> bool:
    """Whether the value is in the text as a word, whatever its case. One more letter is the same word (Wednesdays);
    with `is_stem` any number. Chinese and Japanese have no spaces: there any occurrence counts."""
    wanted, within = value.casefold(), text.casefold()
    start = within.find(wanted)
    while start >= 0:
        if _begins_word(wanted, within, start) and _ends_word(wanted, within, start + len(wanted), is_stem=is_stem):
            return True
        start = within.find(wanted, start + 1)
    return False


def stand_together(values: Iterable[str], text: str) -> bool:
    return all(stands(value, text, is_stem=True) for value in values)


def sentences(text: str) -> list[str]:
    return [piece.strip() for piece in _SENTENCE_END.split(text) if piece.strip()]


def units(text: str, said: Sequence[str], values: Sequence[str] = ()) -> Iterator[Unit]:
    """The sentences of a text that the memory tells. `said`: what was said in the conversations, in their words;
    `values`: what no sentence ends in the middle of (Dr. Amari)."""
    verbatim = [sentence for one in said for sentence in sentences(_plain(one))]
    for line in text.splitlines():
        found = [*_quoted(line), *_unquoted(line, verbatim)]
        yield from found
        for value in values:
            if stands(value, line) and not any(stands(value, unit.text) for unit in found):
                yield Unit(line, bool(_MARK.search(line)))


def asserted(text: str, old: Sequence[str], new: Sequence[str], said: Sequence[str]) -> list[str]:
    """Sentences that have the old value, without the new, and are not told as what held before. What comes from a
    message that names both is part of the correction: "Ann has taken over. Bob is in the data team now"."""
    correcting = [_plain(one) for one in said if _any(old, one) and _any(new, one)]
    return [
        unit.text
        for unit in units(text, said, old)
        if _any(old, unit.text)
        and not unit.is_marked
        and not _any(new, unit.text)
        and not any(_plain(_SPEAKER.sub("", unit.text)).strip(" .…") in one for one in correcting)
    ]


def is_told(text: str, values: Sequence[str], said: Sequence[str]) -> bool:
    """Whether one of the values stands in it, and not only as what held before. A sentence that tells what it was
    before as well tells it as what holds."""
    return any(_any(values, unit.text) and not _is_over(unit, values) for unit in units(text, said, values))


def marked(text: str, values: Sequence[str], said: Sequence[str]) -> list[str]:
    """Sentences that tell one of the values as what held before."""
    return [unit.text for unit in units(text, said, values) if _any(values, unit.text) and _is_over(unit, values)]


def quotations(text: str) -> str:
    """Only what it quotes: a word in a list of subjects tells nothing."""
    return "\n".join(quote[1] for quote in _QUOTE.finditer(text))


def _is_over(unit: Unit, values: Sequence[str]) -> bool:
    """Whether the mark is about the value: what stands before "(before: …" is what holds."""
    if not unit.is_marked:
        return False
    aside = re.search(r"[(;]\s*(?:before|was|until|earlier)\b", unit.text, re.IGNORECASE)
    return aside is None or not _any(values, unit.text[: aside.start()])


def _quoted(line: str) -> Iterator[Unit]:
    end = 0
    for quote in _QUOTE.finditer(line):
        lead = line[end : quote.start()]
        tail = _TAIL.match(line, quote.end())
        is_appended = tail is not None and line[tail.end() : tail.end() + 1] != "“"
        end = tail.end() if tail is not None and is_appended else quote.end()
        is_marked = bool(_MARK.search(lead)) or bool(_MARK.search(line[quote.end() : end]))
        yield from (Unit(sentence, is_marked) for sentence in sentences(quote[1]))


def _unquoted(line: str, verbatim: Sequence[str]) -> Iterator[Unit]:
    for sentence in sentences(_QUOTE.sub("“”", line)):
        own = _plain(sentence)
        for one in verbatim:
            own = own.replace(one, " ")
        yield Unit(sentence, bool(_MARK.search(own)))


def _any(values: Iterable[str], text: str) -> bool:
    return any(stands(value, text) for value in values)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _begins_word(value: str, text: str, start: int) -> bool:
    return start == 0 or not value[0].isalnum() or not _is_joined(text[start - 1]) or not _is_joined(value[0])


def _ends_word(value: str, text: str, end: int, *, is_stem: bool) -> bool:
    rest = text[end : end + 2]
    if not rest or not _is_joined(rest[0]) or not _is_joined(value[-1]):
        return True
    if rest[0].isdigit() or value[-1].isdigit():
        return not rest[0].isdigit()
    return is_stem or len(rest) == 1 or not _is_joined(rest[1])


def _is_joined(letter: str) -> bool:
    """Part of a word of a script that has spaces."""
    return letter.isalnum() and not "\u3040" <= letter <= "\u9fff"
