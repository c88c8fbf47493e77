"""Which words stand in a text, found without reading all of it into words.

A word is looked for by what any of its forms hold (see `stems.roots`); only what stands where that occurs is read.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from offbook.search.stems import roots
from offbook.search.words import MAX_TERM_CHARS, PIECE_CHARS, indexed_terms, pieces_of, plain_letters

MOST_PLACES = 20_000
"""Of one root in a piece: of a text that is nothing else, the first ones tell."""
MOST_KEPT = 50_000
_SPACE = re.compile(r"\s")
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
    after = _SPACE.search(text, end, end + MAX_TERM_CHARS)
    return before + 1 if before >= 0 else first, after.start() if after else min(len(text), end + MAX_TERM_CHARS)


# ── What a host, a channel or a reply wraps around the words of a message. Stripped from queri ──

LONGEST_WHOLE_FENCE_CHARS = 400
FENCE_HEAD_CHARS = 200
FENCE_TAIL_CHARS = 100
MOST_HEADERS = 8

# `[Telegram Ada id:123 2026-01-02 10:00]`, `[Tue 2026-01-02 10:00 UTC]`, `[message_id: 7]`, `[from: Ada]`: something in
# brackets that holds a date, a time, an id or the name of a channel.
_HEADER = re.compile(
    r"\s*\[(?:(?:telegram|discord|slack|whatsapp|signal|imessage|matrix|teams|e-?mail|sms|irc|line|wechat|feishu|lark|"
    r"google\s*chat|mattermost|webchat)\b|[^\]\n]{0,160}?(?:\d{4}-\d\d-\d\d|\d{1,2}:\d\d|\bid:|message_id|"
    r"\b(?:from|to|reply_to|chat|thread|channel|replying\s+to)\s*:))[^\]\n]{0,200}\][ \t]*:?",
    re.IGNORECASE,
)
_ID_LINE = re.compile(
    r"^[ \t]*\[(?:message_id|reply_to|thread_id|chat_id|media attached)[^\]\n]{0,200}\][ \t]*$", re.M | re.I
)
_SYSTEM_LINE = re.compile(r"^[ \t]*system:[ \t]*\[[^\]\n]{1,80}\][ \t]*", re.M | re.I)
_WHOLE_SYSTEM_LINE = re.compile(r"^[ \t]*system:[ \t]*\[[^\]\n]{1,80}\][^\n]*$", re.M | re.I)
_HOST_BLOCK = re.compile(
    r"<(system-reminder|system_reminder|relevant-memories|relevant_memories|environment_details|environment_context|"
    r"recalled-memory|memory-context)\b[^<>]{0,200}>.*?</\1\s*>",
    re.DOTALL | re.IGNORECASE,
)
_TAG = re.compile(r"(?:</|(?<!\w)<)[A-Za-z][\w:.-]{0,40}(?:\s[^<>\n]{0,300})?/?>")
_QUOTED_LINE = re.compile(r"^[ \t]*>[^\n]*$", re.M)
_FENCE = re.compile(r"```[^`]*(?:`{1,2}(?!`)[^`]*)*```")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")


def unwrapped(text: str) -> str:
    """The words of a message without what is wrapped around them. What is nothing but wrapping stays as it is."""
    said = text
    if "```" in said:
        said = _FENCE.sub(lambda fence: _short(fence[0]), said)
    if "<" in said:
        said = _or_as_it_was(_TAG.sub(" ", _HOST_BLOCK.sub(" ", said)), said)
    if "[" in said:
        said = _without_headers(said)
    if ">" in said:
        said = _or_as_it_was(_QUOTED_LINE.sub("", said), said)
    return _BLANK_LINES.sub("\n", said).strip() or text.strip()


def _without_headers(said: str) -> str:
    said = _ID_LINE.sub("", said)
    said = _or_as_it_was(_WHOLE_SYSTEM_LINE.sub("", said), _SYSTEM_LINE.sub("", said))
    at = 0
    for _ in range(MOST_HEADERS):
        header = _HEADER.match(said, at)
        if header is None:
            break
        at = header.end()
    return _or_as_it_was(said[at:], said)


def _short(fence: str) -> str:
    if len(fence) <= LONGEST_WHOLE_FENCE_CHARS:
        return fence
    return f"{fence[:FENCE_HEAD_CHARS]}\n…\n{fence[-FENCE_TAIL_CHARS:]}"


def _or_as_it_was(said: str, before: str) -> str:
    return said if said.strip() else before
