"""Which words stand in a text, found without reading all of it into words.

A word is looked for by what any of its forms hold (see `stems.roots`); only what stands where that occurs is read.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from offbook.models.glossary import in_english
from offbook.search.stems import roots
from offbook.search.words import MAX_TERM_CHARS, PIECE_CHARS, indexed_terms, pieces_of, plain_letters

MOST_PLACES = 20_000
"""Of one root in a piece: of a text that is nothing else, the first ones tell."""
MOST_KEPT = 50_000
READ_IN_ENGLISH_CHARS = 20_000
"""Of a piece: to tell the language of a large one takes as long as all else."""
_JOINED = re.compile(r"(?<=[^\W\d_])[-'’.](?=[^\W\d_])|(?<=\d),(?=\d)")


class Spotter:
    """Looks for the same terms in one text after another."""

    def __init__(self, terms: Collection[str]) -> None:
        self.terms = frozenset(terms)
        self._roots = {term: _spelt(term) for term in self.terms}
        self._read: dict[str, frozenset[str]] = {}

    def held(self, text: str, *, without: Collection[str] = ()) -> set[str]:
        """The terms that a text of any length holds. `without`: those that need not be looked for."""
        sought = self.terms.difference(without)
        found: set[str] = set()
        for start, end in pieces_of(text, PIECE_CHARS):
            if len(found) == len(sought):
                break
            found |= self.held_in_piece(text[start:end], sought - found)
        return found

    def held_in_piece(self, piece: str, terms: Collection[str] | None = None) -> set[str]:
        cased = plain_letters(piece)
        lower = cased.casefold()
        if len(lower) != len(cased):
            cased = lower
        wanted = self.terms if terms is None else terms
        found = self._standing(wanted, lower, cased)
        if len(found) < len(wanted) and _JOINED.search(lower):
            # e-mail and 1,234.5 are read as one word.
            joined = _JOINED.sub("", cased)
            found |= self._standing([term for term in wanted if term not in found], joined.casefold(), joined)
        if len(found) < len(wanted) and len(piece) <= READ_IN_ENGLISH_CHARS and (english := in_english(piece)) != piece:
            found |= self._standing([term for term in wanted if term not in found], english.lower(), english.lower())
        return found

    def _standing(self, terms: Collection[str], lower: str, cased: str) -> set[str]:
        return {term for term in terms if any(self._stands(term, root, lower, cased) for root in self._roots[term])}

    def _stands(self, term: str, root: str, lower: str, cased: str) -> bool:
        at = lower.find(root)
        for _ in range(MOST_PLACES):
            if at < 0:
                return False
            start, end = _around(lower, at, at + len(root))
            if term in self._terms_of(cased[start:end]):
                return True
            # Without a space near, another may stand across the end.
            at = lower.find(root, end if end - at <= MAX_TERM_CHARS else max(at + 1, end - MAX_TERM_CHARS))
        return False

    def _terms_of(self, word: str) -> frozenset[str]:
        known = self._read.get(word)
        if known is None:
            known = frozenset(indexed_terms(word))
            if len(self._read) < MOST_KEPT:
                self._read[word] = known
        return known


def _spelt(term: str) -> tuple[str, ...]:
    """With a number as people write it, too: 12,000."""
    is_long_number = term.isascii() and term.isdecimal() and 4 <= len(term) <= 15
    return (term, f"{int(term):,}") if is_long_number else roots(term)


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """From the space before to the one after it, where there are any near."""
    first = max(0, start - MAX_TERM_CHARS)
    before = max(text.rfind(space, first, start) for space in " \n\t")
    last = min(len(text), end + MAX_TERM_CHARS)
    after = [at for space in " \n\t" if (at := text.find(space, end, last)) >= 0]
    return before + 1 if before >= 0 else first, min(after, default=last)


# ── What a host, a channel or a reply wraps around the words of a message. Stripped from queries ──

LONGEST_WHOLE_FENCE_CHARS = 400
FENCE_HEAD_CHARS = 200
FENCE_TAIL_CHARS = 100
LONGEST_HEADER_CHARS = 360

_FENCE = "```"
_CHANNELS_TEXT = (
    "telegram discord slack whatsapp signal imessage matrix teams email e-mail sms irc line wechat feishu lark "
    "mattermost webchat media"
)
_CHANNELS = frozenset(_CHANNELS_TEXT.split())
_FIELDS = ("id:", "message_id", "from:", "to:", "chat:", "thread:", "channel:")
_HOST_BLOCKS = (
    "system-reminder system_reminder relevant-memories relevant_memories environment_details environment_context "
    "recalled-memory memory-context"
)
_HOST_BLOCK = re.compile(rf"<({'|'.join(_HOST_BLOCKS.split())})\b[^<>]{{0,200}}>", re.IGNORECASE | re.ASCII)
_TAG = re.compile(r"(?:</|(?<!\w)<)[A-Za-z][\w:.-]{0,40}(?:\s[^<>\n]{0,300})?/?>")


def unwrapped(text: str) -> str:
    """The words of a message without what is wrapped around them. What is nothing but wrapping stays as it is."""
    said = text
    if _FENCE in said:
        parts = said.split(_FENCE)
        parts[1:-1:2] = [_short(code) for code in parts[1:-1:2]]
        said = _FENCE.join(parts)
    if "<" in said:
        said = _or_as_it_was(_TAG.sub(" ", _without_host_blocks(said)), said)
    lines = [line for line in said.strip().split("\n") if line.strip() and not _is_header_alone(line)]
    lines = [line for line in lines if not _is_of_the_system(line)] or [_without_header(line) for line in lines]
    if lines:
        lines[0] = _without_header(lines[0])
    return "\n".join([line for line in lines if not line.lstrip().startswith(">")] or lines).strip() or text.strip()


def _without_host_blocks(said: str) -> str:
    kept: list[str] = []
    end_of_last = 0
    unended: set[str] = set()
    for begin in _HOST_BLOCK.finditer(said):
        closing = f"</{begin[1]}>"
        if begin.start() < end_of_last or closing in unended:
            continue
        end = said.find(closing, begin.end())
        if end < 0:
            unended.add(closing)  # nor does any behind it
        else:
            kept += (said[end_of_last : begin.start()], " ")
            end_of_last = end + len(closing)
    return "".join((*kept, said[end_of_last:]))


def _is_of_the_system(line: str) -> bool:
    return line.lstrip().lower().startswith("system: [")


def _is_header_alone(line: str) -> bool:
    return line.lstrip().startswith("[") and not _without_header(line).strip()


def _without_header(line: str) -> str:
    """Without what it begins with in brackets, where that holds a time, an id or the name of a channel:
    `[Telegram Ada id:123 2026-01-02 10:00]`."""
    rest = line.lstrip()
    rest = rest[8:] if _is_of_the_system(rest) else rest
    while rest.startswith("[") and 0 < (end := rest.find("]")) <= LONGEST_HEADER_CHARS and _is_header(rest[1:end]):
        rest = rest[end + 1 :].lstrip(" \t:")
        line = rest
    return line


def _is_header(inside: str) -> bool:
    words = inside.lower().split()
    has_time = any(sum(map(str.isdigit, word)) > 2 and (":" in word or word.count("-") == 2) for word in words)
    return has_time or _CHANNELS.issuperset(words[:1]) or any(word.startswith(_FIELDS) for word in words)


def _short(fence: str) -> str:
    if len(fence) <= LONGEST_WHOLE_FENCE_CHARS:
        return fence
    return f"{fence[:FENCE_HEAD_CHARS]}\n…\n{fence[-FENCE_TAIL_CHARS:]}"


def _or_as_it_was(said: str, before: str) -> str:
    return said if said.strip() else before
