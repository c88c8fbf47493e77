"""What is left of a message that is forgotten, and what text of a message can be meant. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from offbook.model.content import (
    ARGUMENT_KEYS,
    CALL_ID_KEYS,
    NAME_KEYS,
    RESULT_ID_KEYS,
    RESULT_KEYS,
    first_of,
    is_call,
    is_result,
    said_in,
)
from offbook.model.receipt import FORGOTTEN_TEXT, ForgottenSpan
from offbook.model.types import Block, Content, Message

# ── Stretches of words, and looking for known ones in many texts: most texts have none, and th ──

WORDS = 5
"""Of a stretch, where nothing else is said."""
FEW = 64
"""So many are quicker looked for word by word than by reading all that a text says."""

# Scripts without spaces between words are read letter by letter.
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]|[^\W_]+", re.UNICODE)
_BETWEEN = r"[\W_]*"
"""No letter of a word, as `WORD` reads them."""

Window = tuple[str, ...]


def plain(text: str) -> str:
    """In the letters that words are compared in."""
    return unicodedata.normalize("NFKC", text).casefold()


def words_of(text: str) -> list[str]:
    return WORD.findall(plain(text))


def windows_of(text: str, size: int = WORDS) -> Iterator[Window]:
    """Every stretch of so many words."""
    return _word_runs(words_of(text), size)


def _word_runs(words: Sequence[str], size: int) -> Iterator[Window]:
    return zip(*(islice(words, at, None) for at in range(size)), strict=False)


class WordRuns:
    """Known ones, found in any text."""

    def __init__(self, windows: Iterable[Window]) -> None:
        self._of_size: dict[int, set[Window]] = {}
        for window in windows:
            self._of_size.setdefault(len(window), set()).add(window)
        self._longest: dict[str, list[re.Pattern[str]]] = {}
        """The longest word of each, and, where they are few, the word among the others: a text that has not even that
        one, which is most often so, is not looked at any further."""
        are_few = sum(map(len, self._of_size.values())) <= FEW
        for window in (window for known in self._of_size.values() for window in known):
            patterns = self._longest.setdefault(max(window, key=len), [])
            patterns += [re.compile(_BETWEEN.join(map(re.escape, window)))] if are_few else []
        self._are_few = are_few

    def found_in(self, text: str) -> set[Window]:
        if not self._of_size:
            return set()
        letters = plain(text)
        if self._are_few and not self._may_be_in(letters):
            return set()
        words = WORD.findall(letters)
        if self._longest.keys().isdisjoint(words):
            return set()
        return {one for size, known in self._of_size.items() for one in known.intersection(_word_runs(words, size))}

    def _may_be_in(self, letters: str) -> bool:
        """Whether the words of any of them are there in a row, be it as parts of others."""
        for longest, patterns in self._longest.items():
            if longest in letters and any(pattern.search(letters) for pattern in patterns):
                return True
        return False


def saying(windows: Iterable[Window]) -> Callable[[str], bool]:
    """Tells whether a text has any of these stretches."""
    known = WordRuns(windows)
    return lambda text: bool(known.found_in(text))


def without_common(windows: set[Window], texts: Iterable[str]) -> None:
    """Take away what others say, too: finding that would prove nothing."""
    known = WordRuns(windows)
    for text in texts:
        windows -= known.found_in(text)


SHORTEST_MATCHING_CHARS = 2
"""One letter is in everything."""


def folded(text: str) -> str:
    """So that it is found however it was typed: width, case and spaces do not count."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def texts_of(message: Message) -> Iterator[str]:
    """Every text that is kept of a message, wherever in it."""
    yield from said_in(message.content)
    yield from (text for text in (message.name, message.origin) if text)
    if message.meta:
        yield from said_in(message.meta, is_beside=True)


class Phrases:
    """What is to be forgotten where it says so in words. However it was typed: width, case, spaces and, where it is
    nothing but words, the signs between them do not count."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self._folded = [folded(each) for each in wanted]
        self.named: frozenset[Window] = frozenset(
            tuple(words) for each in self._folded if " ".join(words := words_of(each)) == each
        )
        """Those that are words only. A sign (C++, 42 %) is none: the words alone are said where it is not."""
        self._several = WordRuns(window for window in self.named if len(window) > 1)
        # As it was given, too: a folded ß is two letters.
        spellings = {each.casefold(): each for each in self._folded}
        spellings |= {each.lower(): each for each in (" ".join(one.split()) for one in wanted)}
        self._patterns = [self._written(each) for each in spellings.values()]

    def are_in(self, text: str) -> bool:
        letters = folded(text)
        return any(each in letters for each in self._folded) or bool(self._several.found_in(text))

    def are_said(self, message: Message) -> bool:
        return any(map(self.are_in, texts_of(message)))

    def as_written(self, message: Message) -> set[str]:
        """How a message writes them: for those who look through files byte by byte."""
        return {found[0] for text in texts_of(message) for each in self._patterns for found in each.finditer(text)}

    def _written(self, phrase: str) -> re.Pattern[str]:
        words = phrase.split(" ")
        between = r"[\W_]+" if tuple(map(folded, words)) in self.named else r"\s+"
        return re.compile(between.join(map(re.escape, words)), re.IGNORECASE)


def forgotten(message: Message) -> Message:
    """Its place, role, time and ids; of calls and results the frame, so that each keeps its other half."""
    return msgspec.structs.replace(
        message, content=_forgotten_content(message.content), name=None, origin=None, meta=None
    )


def _forgotten_content(content: Content) -> Content:
    if isinstance(content, str):
        return FORGOTTEN_TEXT
    frames = [frame for block in content for frame in _frames(block)]
    return [{"type": "text", "text": FORGOTTEN_TEXT}, *frames] if frames else FORGOTTEN_TEXT


def _frames(block: Block) -> Iterator[Block]:
    if is_call(block):
        yield _frame(block, (*CALL_ID_KEYS, *NAME_KEYS), ARGUMENT_KEYS, {})
    elif is_result(block):
        yield _frame(block, RESULT_ID_KEYS, RESULT_KEYS, FORGOTTEN_TEXT)


def _frame(block: Block, kept: Iterable[str], emptied: Sequence[str], stands_in: Any) -> Block:
    frame: Block = {"type": block["type"]}
    frame |= {key: block[key] for key in kept if isinstance(block.get(key), str)}
    there = [key for key in emptied if key in block] or list(emptied[:1])
    # What came as JSON text goes as JSON text: a host parses it.
    is_text = isinstance(first_of(block, tuple(emptied)), str) and stands_in == {}
    return frame | dict.fromkeys(there, "{}" if is_text else stands_in)


def spans_of(found: Iterable[tuple[str, int]]) -> list[ForgottenSpan]:
    """Sessions and numbers of messages as stretches, in order."""
    spans: list[ForgottenSpan] = []
    for session_id, seq in sorted(set(found)):
        last = spans[-1] if spans else None
        if last is not None and last.session_id == session_id and last.last_seq + 1 == seq:
            spans[-1] = msgspec.structs.replace(last, last_seq=seq)
        else:
            spans.append(ForgottenSpan(session_id=session_id, first_seq=seq, last_seq=seq))
    return spans
