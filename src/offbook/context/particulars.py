"""The particular things a text says, which a summary must not lose unnoticed: identifiers, numbers, dates, names,
questions, decisions, corrections.

Found by their spelling, so best effort: names by their capitals (quoted terms and katakana where there are none),
decisions and corrections by words that people use for them in a few languages. Better one too many than one too few:
what is found here and missing there is only said to be missing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import NamedTuple

from offbook.context.time_text import MONTH_NAMES
from offbook.model.lazy_pattern import lazy_pattern
from offbook.model.sentences import ends
from offbook.model.summary import LossKind
from offbook.search.stems import stem
from offbook.search.words import STOP_WORDS, UNSPACED

FIRST_CHARS = 20_000
LAST_CHARS = 10_000
"""What is looked at of one text, as in `sentence_weights`."""
SHORTEST_SENTENCE_CHARS, LONGEST_SENTENCE_CHARS = 4, 200
SAME_SENTENCE = 0.6
"""Share of a sentence's words that must be there for it to count as said."""

_MONTH = rf"(?:{'|'.join(MONTH_NAMES)}|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?:\.\d+)?(?:\s?[ap]\.?m\b)?"
# In order of precedence. Repetition is bounded or possessive, so that junk costs no more than its length.
_HANDLE = "pid|PID|port|Port|job|pane|window|container|session|run|build|PR|issue|ticket|order|id|ID"
_PARTICULAR = lazy_pattern(
    # Most words are plain: they are passed over before anything is tried on them.
    rf"(?P<plain>(?<!\S)(?!(?:{_HANDLE})\b)[a-z]{{1,30}}+(?=[\s,;!?]|\.\s))|"
    r"(?P<url>\b[a-z][a-z0-9+.-]{1,12}://[^\s<>\"'`)\]}，。]{1,300})"
    r"|(?P<email>\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}\b)"
    r"|(?P<uuid>\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b)"
    rf"|(?P<date>\b\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?)?\b|\b\d{{1,2}}/\d{{1,2}}/\d{{2,4}}\b"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b(?:,? \d{{4}}\b)?"
    rf"|\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}}\b)?"
    rf"|\b{_MONTH} \d{{4}}\b|\d{{4}}年(?:\d{{1,2}}月)?(?:\d{{1,2}}日)?|\d{{1,2}}月\d{{1,2}}日"
    rf"|\b{_CLOCK}|\b\d{{1,2}}\s?[ap]m\b"
    r"|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b)"
    r"|(?P<path>(?<![\w/])(?:~|\.{1,2})?/(?:[\w.@%+-]{1,80}/){0,20}[\w.@%+-]{1,80}/?|\b[A-Za-z]:\\[^\s\"'<>|]{1,200}"
    r"|\b(?:[\w.-]{1,60}/){1,20}[\w-]{1,60}\.\w{1,8}\b|\b[\w-]{1,60}\.(?:py|js|ts|tsx|json|ya?ml|toml|md|txt|sql|sh|rs|go"
    r"|java|c|h|cpp|css|html|csv|log|env|lock|cfg|ini|pdf|png|jpg|zip|gz)\b)"
    r"|(?P<address>\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b|\blocalhost:\d{1,5}\b)"
    r"|(?P<version>\bv\d+(?:\.\d+){0,3}(?:[-+][\w.]{1,30})?\b|\b\d+\.\d+\.\d+(?:[-+.][\w.]{1,30})?\b)"
    rf"|(?P<handle>\b(?:{_HANDLE})"
    r"(?: is |[ =:#]{1,3})#?[A-Za-z]{0,4}\d\w{0,15}(?![\w-]))"
    r"|(?P<ticket>\b[A-Z][A-Z0-9]{1,9}-\d{1,7}\b|(?<!\w)#\d{1,7}\b|(?<!\w)@[A-Za-z]\w{1,38}\b)"
    r"|(?P<flag>(?<!\S)--[a-z][\w-]{1,40}\b)"
    r"|(?P<hash>\b(?=[0-9a-f]{0,63}\d)(?=[0-9a-f]{0,63}[a-f])[0-9a-f]{7,64}\b)"
    rf"|(?P<word>\b[^\W\d_{UNSPACED}][^\W{UNSPACED}]{{0,63}}+(?:\(\))?|\b_\w{{1,63}}\b)"
    r"|(?P<number>[€$£¥₦₹]\s?\d[\d,]*+(?:\.\d+)?[kKmMbB]?\b|(?<![0-9A-Za-z_])\d[\d,]*+(?:\.\d+)?"
    r"(?:\s?(?:%|‰|°[CF]?|[kKMGT]i?B\b|ms\b|[km]?m\b|kg\b|g\b|s\b|h\b|min\b|px\b|hours?\b|minutes?\b|seconds?\b|days?\b"
    r"|weeks?\b|months?\b|years?\b|people\b|times\b|tokens\b|USD\b|EUR\b|元|円|人|个|個|件|分|年|月|日))?)"
    rf"|(?P<quoted>[「『《][^」』》\n]{{1,40}}[」』》]|[\u30a1-\u30fa\u30fc]{{3,30}})"
)
_IDENTIFIERS = frozenset(("url", "email", "uuid", "path", "address", "version", "handle", "ticket", "flag", "hash"))
_MADE_WORD = re.compile(r"\w_\w|[a-z][A-Z]|^_|\(\)$|^[A-Za-z]+\d+[A-Za-z]*\w*$")
_DECISION = lazy_pattern(
    r"\b(?:decided|decision|agreed (?:to|on|that)|we(?:'ll| will) (?:use|go|keep|do|ship|switch|move)"
    r"|let'?s (?:go with|use|do|keep)"
    r"|chose|chosen|picked|approved|rejected|settled on|going with|opted|committed to"
    r"|from now on|must(?: not)?|deadline"
    r"|i'll (?:use|go with|take)|entschieden|beschlossen|décidé|decidido|decidimos|deciso|решили|решено)\b"
    r"|决定|決定|決めた|することにし|결정",
    re.IGNORECASE,
)
_CORRECTION = lazy_pattern(
    r"(?:^|[\s,;(])(?:actually|correction|i meant|i was wrong|scratch that|no longer|rather than|not anymore|instead of"
    r"|my mistake|wrong|that'?s not (?:right|true|it)|isn't [^.]{1,40}, it'?s|changed (?:from|to|my mind)|renamed"
    r"|korrektur|stattdessen|en fait|corrección|en realidad|на самом деле)\b"
    r"|^no[,.] |更正|不对|不是.{1,20}而是|訂正|ではなく|아니라",
    re.IGNORECASE,
)
_TOKEN = re.compile(rf"[^\W_{UNSPACED}]+|[{UNSPACED}]")
_WITHIN_NUMBERS = re.compile(r"(?<=\d),(?=\d)|(?<=\d)\s+(?=[^\W\d]|[%‰°])|(?<=[€$£¥₦₹])\s+")
"""What stands between digits and before units, or does not: `12 GB`, `12GB`."""
_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_INSIDE = frozenset(("of", "de", "van", "von", "der", "la", "del", "di", "da", "al", "bin"))


class Particular(NamedTuple):
    kind: LossKind
    text: str


def particulars(text: str) -> list[Particular]:
    """In their order, each once. Of a very long text its beginning and its end."""
    if len(text) > FIRST_CHARS + LAST_CHARS:
        text = f"{text[:FIRST_CHARS]}\n{text[-LAST_CHARS:]}"
    found = [*_spelled(text), *_sentences(text)]
    found.sort(key=lambda one: one[0])
    unique: dict[tuple[str, str], Particular] = {}
    for _, one in found:
        unique.setdefault((one.kind, one.text.casefold()), one)
    return list(unique.values())


def missing(found: Sequence[Particular], text: str) -> list[Particular]:
    """Those that the text does not hold any more."""
    held = _Held(text)
    gone = [one for one in found if not held.holds(one)]
    # Signs may be read in several ways (the number of `A1.2` is 2): what is read here again is here.
    again = frozenset(particulars(text)) if gone else frozenset()
    return [one for one in gone if one not in again]


# ── finding ───────────────────────────────────────────────────────────────────────────────────


def _spelled(text: str) -> Iterator[tuple[int, Particular]]:
    name: list[re.Match[str]] = []
    is_within_sentence = cache(partial(_is_within_sentence, text))
    for match in _PARTICULAR.finditer(text):
        kind = match.lastgroup or ""
        if kind == "plain" and not name:
            continue
        if kind in ("word", "plain"):
            if _MADE_WORD.search(match[0]):
                yield match.start(), Particular("identifier", match[0].removesuffix("()"))
            elif _goes_on(name, match, text):
                name.append(match)
                continue
        yield from _name(name, text, is_within_sentence)
        name = [match] if kind == "word" and _is_capital(match[0]) and not _MADE_WORD.search(match[0]) else []
        if kind in _IDENTIFIERS:
            yield match.start(), Particular("identifier", match[0].rstrip(".,;:"))
        elif kind in ("date", "number"):
            yield match.start(), Particular("date" if kind == "date" else "number", match[0].rstrip(",. "))
        elif kind == "quoted":
            yield match.start(), Particular("name", match[0].strip("「」『』《》"))
    yield from _name(name, text, is_within_sentence)


def _is_capital(word: str) -> bool:
    return word[0].isupper()


def _goes_on(name: Sequence[re.Match[str]], match: re.Match[str], text: str) -> bool:
    """Whether a word is the next of a name of several: `Banco de la Nación`."""
    if not name or text[name[-1].end() : match.start()] not in (" ", "-", "'", "’", ". ") or len(name) >= 6:
        return False
    if text[name[-1].end() : match.start()] == ". ":  # an initial: `J. Smith`
        return len(name[-1][0]) == 1 and _is_capital(match[0])
    return _is_capital(match[0]) or match[0] in _INSIDE


def _name(
    words: Sequence[re.Match[str]], text: str, is_within_sentence: Callable[[str], bool]
) -> Iterator[tuple[int, Particular]]:
    """The name those words are, if they are one: a capital that begins a sentence makes none."""
    words = list(words)
    while words and not _is_capital(words[-1][0]):
        words.pop()
    if words and _begins_sentence(text, words[0].start()) and _is_common(words[0][0]):
        words.pop(0)
        while words and not _is_capital(words[0][0]):
            words.pop(0)
    words = [] if len(words) == 1 and _is_no_name(words[0], text, is_within_sentence) else words
    if words:
        yield words[0].start(), Particular("name", text[words[0].start() : words[-1].end()])


def _begins_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 8) : start].rstrip(" \t\"'“‘«([*_#>-•")
    return not before or before[-1] in ".!?:…\n。！？"


def _is_common(word: str) -> bool:
    return word.lower() in STOP_WORDS or len(word) == 1


def _is_no_name(match: re.Match[str], text: str, is_within_sentence: Callable[[str], bool]) -> bool:
    word = match[0]
    if _is_common(word) and not (word.isupper() and len(word) > 1):
        return True
    # With a capital nowhere but where sentences begin, nothing speaks for a name.
    if word.isupper() or not _begins_sentence(text, match.start()):
        return False
    return not is_within_sentence(word)


def _is_within_sentence(text: str, word: str) -> bool:
    """Whether it stands somewhere right behind another word."""
    at = text.find(f" {word}", 1)
    while at > 0:
        end = at + 1 + len(word)
        if _is_of_word(text[at - 1], ",;_") and not (end < len(text) and _is_of_word(text[end], "_")):
            return True
        at = text.find(f" {word}", at + 1)
    return False


def _is_of_word(character: str, others: str) -> bool:
    return character.isalnum() or character in others


def _sentences(text: str) -> Iterator[tuple[int, Particular]]:
    for start, end in pairwise([0, *ends(text), len(text)]):
        sentence = text[start:end].strip()
        if len(sentence) < SHORTEST_SENTENCE_CHARS:
            continue
        shown = sentence if len(sentence) <= LONGEST_SENTENCE_CHARS else sentence[: LONGEST_SENTENCE_CHARS - 1] + "…"
        if sentence[-1] in "?？":
            yield start, Particular("question", shown)
        elif _CORRECTION.search(sentence):
            yield start, Particular("correction", shown)
        elif _DECISION.search(sentence):
            yield start, Particular("decision", shown)


# ── comparing ─────────────────────────────────────────────────────────────────────────────────


class _Held:
    """A text made ready to be looked through for many things."""

    def __init__(self, text: str) -> None:
        self._lower = text.casefold()
        self._tokens = set(_TOKEN.findall(self._lower))

    @cached_property
    def _close(self) -> str:
        return _WITHIN_NUMBERS.sub("", self._lower)

    @cached_property
    def _numbers(self) -> set[str]:
        return set(_NUMBER.findall(self._close))

    @cached_property
    def _lines_with(self) -> dict[str, list[int]]:
        """For each word, the lines that say it."""
        found: dict[str, list[int]] = {}
        for at, line in enumerate(self._lower.split("\n")):
            for word in {stem(token) for token in _TOKEN.findall(line)}:
                found.setdefault(word, []).append(at)
        return found

    def holds(self, one: Particular) -> bool:
        wanted = one.text.casefold()
        if one.kind in ("question", "decision", "correction"):
            return self._says(wanted)
        if one.kind == "number":
            compact = _WITHIN_NUMBERS.sub("", wanted)
            return set(_NUMBER.findall(compact)) <= self._numbers and compact in self._close
        tokens = _TOKEN.findall(wanted)
        if one.kind == "date":
            return self._tokens.issuperset(_day_tokens(wanted)) or (
                self._tokens.issuperset(tokens) and wanted in self._lower
            )
        if one.kind == "name":
            return self._tokens.issuperset(tokens)
        # A whole text is only gone through where all its words are there.
        return self._tokens.issuperset(tokens) and all(part in self._lower for part in wanted.split())

    def _says(self, sentence: str) -> bool:
        """Whether one line has most of the words: in a long text the words of any sentence are found somewhere."""
        words = {stem(token) for token in _TOKEN.findall(sentence) if token not in STOP_WORDS}
        if not words:
            return True
        counts = Counter(line for word in words for line in self._lines_with.get(word, ()))
        return max(counts.values(), default=0) >= SAME_SENTENCE * len(words)


def _day_tokens(wanted: str) -> list[str]:
    """`2023-05-08` as a heading would say it: 8 May 2023."""
    match = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", wanted)
    if match and 1 <= int(match[2]) <= 12:
        return [match[1], MONTH_NAMES[int(match[2]) - 1].lower(), str(int(match[3]))]
    return [re.sub(r"^(\d+)(?:st|nd|rd|th)$", r"\1", word) for word in _TOKEN.findall(wanted) if word != "of"]
