"""What a turn could be about: names, words and short phrases of content, in the languages people write in.

Nothing here knows of other turns. A candidate says how often it must be said before it counts as a topic: a name or a
long word once, a pair of words twice, a short word three times. Reading is linear in the text, and of a long text only
the beginning is read.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from offbook.rules.topics.general_words import FUNCTION_CHARS, KOREAN_GENERAL, UNSPACED_GENERAL, is_general
from offbook.search.spotting import unwrapped
from offbook.search.words import terms

READ_CHARS = 4000
"""What a message is about shows in its beginning."""
WRAPPED_CHARS = 12_000
"""How much is unwrapped to get at that: a host may put a page before the words of its user."""
MAX_FORM_CHARS = 32
"""Longer than a word or a name: a hash, or letters typed without meaning."""
MAX_CANDIDATES = 200
MAX_UNSPACED_CHARS = 200
SHORTEST_NAME_CHARS = 3
SHORTEST_WORD_CHARS = 3
TIMES_OF_A_PAIR = 2
TIMES_OF_A_PARTICIPLE = 2
"""`doubled`: it tells what became of something. With the stem of a topic it still speaks of that."""
TIMES_OF_A_SHORT_WORD = 3
LONGEST_NAME_WORDS = 3
GRAM_CHARS = (6, 5, 4, 3, 2)

_ASCII_BREAKS = r"\x00-\x26(-,/:-@\[-^`{-\x7f"
_WIDE_BREAKS = (
    "\u0080-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7\u060c\u061b\u061f\u066a-\u066d\u06d4"
    "\u0964\u0965\u2000-\u200b\u200e-\u2bff\u3000-\u3004\u3008-\u3020\u3030\u30fb\ud800-\udfff\ue000-\uf8ff"
    "\ufe00-\ufe0f\ufeff\uff00-\uff0f\ufff0-\uffff\U0001f000-\U0001faff\U000e0000-\U0010ffff"
)
_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc]{2,}")
_UNSPACED = re.compile(
    "[\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_KANA_BETWEEN = re.compile("[\u3041-\u3096]{2,}|[をはがにでともへやかねよな]")
_HANGUL = re.compile("[\uac00-\ud7a3]+\\Z")
_KOREAN_PARTICLE = re.compile(
    "(?:에서는|에서도|으로는|에게서|이라는|이라고|입니다|이에요|에서|에게|한테|으로|까지|부터|처럼|보다|이랑|하고|라는|예요|은|는|을|를|에|와|과|의|로|가|이|도|만|나|랑)\\Z"
)
_SURE_PARTICLES = frozenset("은는을를에와")
"""What ends no noun of two syllables; 의 ends 회의, a meeting."""
_KOREAN_VERB = re.compile(
    "(?:[다요까죠네지게]|는데|지만|려고|면서|어서|아서|해서|으면|하면|하는|했던|있는|없는|싶은|같은|하기|[한할된될야])\\Z"
)

_RUSSIAN_ENDING = re.compile(
    "(?<=[а-я]{4})(?:иями|ями|ами|ией|ого|ему|ому|ей|ой|ий|ый|ая|яя|ое|ее|ые|ие|ых|их|ую|юю|ию|ия|ии|ам|ям|ах|ях|ов|ев|"
    "ом|ем|а|я|ы|и|у|ю|е|о|ь)\\Z"
)
_FENCE = re.compile(r"```[^`]*(?:`{1,2}(?!`)[^`]*)*(?:```|\Z)")
_CODE = re.compile(r"`([^`\n]{1,200})`")
_URL = re.compile(
    r"(?<!\w)(?:[a-zA-Z][a-zA-Z+.-]{1,12}://|www\.)\S{1,2000}|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}[\w.-]{0,200}"
)
_PATH = re.compile(r"(?<![\w./~\\-])(?:[A-Za-z]:|[~.]{0,2})[/\\][\w.@/\\-]+|(?<![\w./-])[\w.-]+/[\w.-]+/[\w./-]+")
_SENTENCE = re.compile(r"[.!?:]+(?=\s|\Z)|[\n;|•…。！？；：\"“”()\[\]{}]+")
_TOKEN = re.compile(rf"[^\s'._+{_ASCII_BREAKS}{_WIDE_BREAKS}-]+(?:['._+&-][^\s'._+{_ASCII_BREAKS}{_WIDE_BREAKS}-]+)*")
_ELISION = re.compile(r"\A(?:[ldjcnsmt]|qu)'(?=\w)", re.IGNORECASE)
_CONTRACTION = re.compile(r"(?:n't|'(?:ll|re|ve|d|m))\Z", re.IGNORECASE)
_POSSESSIVE = re.compile(r"'s?\Z", re.IGNORECASE)
_PARTICIPLE = re.compile(r"[a-z]{2}[^e\W]ed\Z")
_HEX = re.compile(r"[0-9a-fA-F]{7,}\Z")
_VERSION = re.compile(r"[vV]\d")
_RUNS = re.compile(r"\d+|\D+")
MAX_RUNS = 4
"""Of letters and of digits in an identifier: `PR-123` has two, `a8f3k2` has six."""


class Candidate(NamedTuple):
    key: str
    """The same for all its inflections."""
    form: str
    """As they wrote it; lower case unless it is a name."""
    needs: int = 1
    """How often it must be said in the window to be a topic."""
    times: int = 1
    """In this turn."""
    is_name: bool = False
    is_opening: bool = False
    """It begins a sentence, so its capital tells nothing."""
    is_unspaced: bool = False


class Reading(NamedTuple):
    candidates: list[Candidate]
    unspaced: str
    """Chinese and Japanese, without what says little; a space where something was left out."""


class _Word(NamedTuple):
    form: str
    is_opening: bool
    is_joined: bool
    """Nothing but spaces between it and the word before."""


def reading_of(text: str, min_word_length: int) -> Reading:
    said = _prose(text)
    katakana = [Candidate(word, word) for word in _KATAKANA.findall(said) if 3 <= len(word) <= MAX_FORM_CHARS]
    found = [*_spaced(_UNSPACED.sub(" ", said), min_word_length), *katakana]
    runs = " ".join(_UNSPACED.findall(_KATAKANA.sub(" ", said)))
    cleaned = _KANA_BETWEEN.sub(" ", UNSPACED_GENERAL.sub(" ", runs))
    unspaced = " ".join(run for run in cleaned.split() if len(run) > 1)[:MAX_UNSPACED_CHARS]
    return Reading(_counted(found), unspaced)


def key_of(label: str) -> str:
    """By which labels are the same: each word as its stem."""
    return " ".join(_key(word) for word in label.replace("-", " ").split())


def shared_grams(text: str, others: Sequence[str]) -> list[str]:
    """The stretches of 2 to 6 characters that a text shares with another; a longer one stands for what it holds."""
    found: dict[str, None] = {}
    is_taken = [False] * len(text)
    for chars in GRAM_CHARS:
        for at in range(len(text) - chars + 1):
            gram = text[at : at + chars]
            if " " in gram or gram[0] in FUNCTION_CHARS or gram[-1] in FUNCTION_CHARS or any(is_taken[at : at + chars]):
                continue
            if not _is_kana(gram) and any(gram in other for other in others):
                found[gram] = None
                is_taken[at : at + chars] = [True] * chars
    return list(found)


def _is_kana(gram: str) -> bool:
    return all("\u3041" <= letter <= "\u309f" for letter in gram)


def _prose(text: str) -> str:
    """The words of a message: no envelope, code, address or path."""
    said = unwrapped(text[:WRAPPED_CHARS])[:READ_CHARS]
    said = _FENCE.sub("\n", said) if "```" in said else said
    said = _CODE.sub(lambda code: "\n" if re.search(r"\s", code[1]) else code[1], said)
    said = _PATH.sub(" ; ", _URL.sub(" ; ", said))
    return unicodedata.normalize("NFKC", said).replace("’", "'")


def _counted(found: Iterable[Candidate]) -> list[Candidate]:
    """Each once, with how often it was said. A name that also begins a sentence is the name."""
    by_key: dict[str, Candidate] = {}
    for one in found:
        before = by_key.get(one.key)
        if before is None:
            if len(by_key) < MAX_CANDIDATES:
                by_key[one.key] = one
            continue
        better = one if one.is_name or (before.is_opening and not before.is_name) else before
        by_key[one.key] = better._replace(times=before.times + 1, needs=min(before.needs, one.needs))
    return list(by_key.values())


def _spaced(text: str, min_word_length: int) -> Iterator[Candidate]:
    for sentence in _SENTENCE.split(text):
        words = _words(sentence)
        shouts = _is_shouted(words)
        at = 0
        while at < len(words):
            name = () if shouts else _name_at(words, at)
            if len(name) > 1:
                form = " ".join(word.form for word in name)
                if len(form) <= MAX_FORM_CHARS:
                    yield Candidate(key_of(form), form, is_name=True)
            else:
                one = _candidate(words[at], min_word_length, shouts)
                yield from one
                if one and at and words[at].is_joined and not words[at].is_opening:
                    yield from _pair(words[at - 1].form, words[at].form)
            at += max(1, len(name))


def _is_shouted(words: list[_Word]) -> bool:
    """A title or a line in capitals: there they tell no name from a word."""
    plain = [word.form for word in words if word.form.isalpha() and len(word.form) > 1]
    capitals = sum(form[0].isupper() for form in plain)
    return len(plain) > 2 and (capitals == len(plain) or (len(plain) > 4 and 10 * capitals > 7 * len(plain)))


def _words(sentence: str) -> list[_Word]:
    found: list[_Word] = []
    end = 0
    for token in _TOKEN.finditer(sentence):
        gap = sentence[end : token.start()]
        end = token.end()
        form = _POSSESSIVE.sub("", _ELISION.sub("", _CONTRACTION.sub("", token[0], count=1), count=1), count=1)
        if form and len(form) <= MAX_FORM_CHARS:
            found.append(_Word(form, not found, bool(found) and not gap.strip()))
    return found


def _name_at(words: list[_Word], at: int) -> tuple[_Word, ...]:
    """The capitalised words that stand together here."""
    end = at
    while end < len(words) and end - at < LONGEST_NAME_WORDS:
        word = words[end]
        is_capitalised = word.form[0].isupper() and word.form.isalpha() and len(word.form) > 1
        if not is_capitalised or is_general(word.form) or (end > at and not word.is_joined):
            break
        end += 1
    return tuple(words[at:end])


def _candidate(word: _Word, min_word_length: int, shouts: bool) -> tuple[Candidate, ...]:
    form = word.form
    if _HANGUL.match(form):
        return _korean(form)
    if not form[0].isalpha() or is_general(form):
        return ()
    if any(letter.isdigit() for letter in form) or "_" in form or "." in form or _is_camel(form):
        return (Candidate(form.casefold(), form, is_name=True),) if _is_identifier(form) else ()
    if "-" in form:
        return _hyphenated(form, min_word_length)
    letters = len(form)
    if not shouts and form.isupper() and letters > 1:
        return (Candidate(_key(form), form, is_name=True),)
    is_name = form[0].isupper() and not word.is_opening and not shouts
    if is_name and letters >= SHORTEST_NAME_CHARS:
        return (Candidate(_key(form), form, is_name=True),)
    is_opening = word.is_opening and form[0].isupper()
    if letters >= min_word_length:
        needs = TIMES_OF_A_PARTICIPLE if _PARTICIPLE.search(form) else 1
        return (Candidate(_key(form), form.lower(), needs=needs, is_opening=is_opening),)
    if letters >= SHORTEST_WORD_CHARS:
        return (Candidate(_key(form), form.lower(), needs=TIMES_OF_A_SHORT_WORD, is_opening=is_opening),)
    return ()


def _hyphenated(form: str, min_word_length: int) -> tuple[Candidate, ...]:
    """`open-source` is `open source`, `e-mail` is `email`; of longer chains each word is by itself."""
    parts = form.split("-")
    lower = form.lower()
    if len(parts) == 2 and min(map(len, parts)) >= SHORTEST_WORD_CHARS:
        general = [is_general(part) for part in parts]
        return () if all(general) or general[1] else (Candidate(key_of(lower), lower),)
    if len(parts) == 2:
        joined = lower.replace("-", "")
        return (Candidate(_key(joined), lower),) if len(joined) >= min_word_length and not is_general(joined) else ()
    words = (part for part in parts if len(part) >= min_word_length and not is_general(part))
    return tuple(Candidate(_key(part), part.lower()) for part in words)


def _pair(first: str, second: str) -> Iterator[Candidate]:
    plain = all(form.isalpha() and len(form) >= SHORTEST_WORD_CHARS for form in (first, second))
    plain = plain and not _HANGUL.match(second)
    if not plain or is_general(first) or is_general(second) or len(first) + len(second) >= MAX_FORM_CHARS:
        return
    form = " ".join(word if word.isupper() else word.lower() for word in (first, second))
    yield Candidate(key_of(form), form, needs=TIMES_OF_A_PAIR)


def _korean(form: str) -> tuple[Candidate, ...]:
    """A word without its particles. A verb at the end of a clause is none."""
    if len(form) == 2 and form[-1] in _SURE_PARTICLES:
        return ()
    key = form
    while (bare := _KOREAN_PARTICLE.sub("", key)) != key and len(bare) >= 2:
        key = bare
    label = _KOREAN_PARTICLE.sub("", form)
    if len(key) < 2 or form in KOREAN_GENERAL or key in KOREAN_GENERAL or (key == form and _KOREAN_VERB.search(form)):
        return ()
    return (Candidate(key, label if len(label) >= 2 else form),)


def _is_camel(form: str) -> bool:
    return form.isalpha() and not (form.islower() or form[1:].islower() or form.isupper() or form[:-1].isupper())


def _is_identifier(form: str) -> bool:
    bare = form.replace("-", "")
    if _HEX.match(bare) or _VERSION.match(form) or len(_RUNS.findall(form)) > MAX_RUNS:
        return False
    return sum(letter.isalpha() for letter in form) * 3 >= len(form)


def _key(word: str) -> str:
    found = terms(word)
    return _RUSSIAN_ENDING.sub("", found[0] if found else word.casefold())[:MAX_FORM_CHARS]
