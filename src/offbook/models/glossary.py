"""Rough English, word for word, of what is said in other languages: the embedding model that comes with Offbook reads
only English, and so does much of what ranks and dates.

A language is a file of `word<TAB>english`. "-" stands for a word that English leaves out, "=" for the same word (names,
too). A form that is not in it is read as the known word with the same beginning, a German compound as its parts; the
rest stays as it is.
"""

from __future__ import annotations

import gzip
import re
import unicodedata
from bisect import bisect_left
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from sys import intern
from typing import NamedTuple

SPACED = ("de", "fr", "it", "es", "pt", "nl", "id", "pl", "ru", "sv", "tr")
CHINESE = "zh"
UNREAD = ("ca", "cs", "da", "fi", "hu", "nb", "ro")
"""Their words are known, so that they are not taken for a language beside them."""
READ_CHARS = 600
"""A longer text is read by such stretches, each in its own language."""
FEWEST_WORDS, KNOWN_SHARE = 2, 0.35
"""Of the words of a text, for it to be of a language."""
HAN_BESIDE_OTHERS = 3
TEXTS_KEPT, LONGEST_KEPT = 512, 2_000
WORDS_KEPT = 1 << 14
LONGEST_WORD, LONGEST_RUN = 40, 200
"""Letters of a word, and of Chinese that is read at once."""
SHORTEST_BEGINNING, LONGEST_ENDING, SHARED = 5, 4, 0.6
"""Letters that two forms of a word share, and in which they may differ; and the share of the word that is the same."""
SHORTEST_NAME = 8
"""Letters of a German word with a capital that is read by its beginning: it may be a name."""
SHORTEST_PART = 4
"""Of a compound."""
LINKS = ("", "s", "n", "en", "es", "er")
"""Between the parts of one."""
LONGEST_UNSPACED = 6
"""Letters of a Chinese word."""
LEFT_OUT, SAME = "-", "="

_WORD = re.compile(r"(?<![\w.@/-])[^\W\d_]+(?:['’-][^\W\d_]+)*(?![\w@/])")
"""Not a part of a name that was made: `max_chars`, `ada@example.com`."""
_STRETCH = re.compile(rf"(?s).{{1,{READ_CHARS}}}(?=\s|\Z)|.{{{READ_CHARS}}}")
_PERSONS = frozenset(("i", "we", "you", "my", "our", "your", "i'm", "i'll", "we're", "we'll", "you're", "you'll"))
_PERSON_TWICE = re.compile(r"(?i)\b(i|we|you)( not)? \1(?=[ '])")
"""Where both the pronoun and the verb tell it."""
_FULL_NAME = re.compile(r"-[^\W\d_a-zß-ÿ]")
"""Of "Jean-Pierre"."""
_HAN = re.compile(rf"[\u3400-\u4dbf\u4e00-\u9fff]{{1,{LONGEST_RUN}}}")
_JAPANESE_OR_KOREAN = re.compile(r"[\u3041-\u30ff\uac00-\ud7a3]+")


_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})


class Glossary(NamedTuple):
    english: dict[str, str]
    words: list[str]
    """In their order."""
    unaccented: dict[str, str]
    """Words as they are written without accents."""

    def tells(self, word: str) -> bool:
        """Whether a word is one of this language, and not of English as well."""
        return self.english.get(word, SAME) != SAME

    def looked_up(self, word: str) -> str | None:
        return self.english.get(word) or self.unaccented.get(unaccented(word))


class EnglishWords(NamedTuple):
    """The most frequent ones."""

    own: frozenset[str]
    shared: frozenset[str]
    """Nearly as frequent in another language: "no", "we", "has"."""


def in_english(text: str) -> str:
    """The text itself where it is English, or nothing of it is known."""
    return _kept(text) if len(text) <= LONGEST_KEPT else _read(text)


@lru_cache(TEXTS_KEPT)
def _kept(text: str) -> str:
    return _read(text)


def _read(text: str) -> str:
    return _stretch_read(text) if len(text) <= READ_CHARS else _STRETCH.sub(lambda one: _stretch_read(one[0]), text)


def _stretch_read(text: str) -> str:
    if not text.isascii() and is_chinese(text):
        text = _HAN.sub(lambda run: f" {_chinese(run[0])} ", text)
    language = language_of(text)
    if language is None:
        return text
    return _PERSON_TWICE.sub(r"\1\2", _WORD.sub(lambda word: _or_itself(word[0], language), _composed(text)))


def is_chinese(text: str) -> bool:
    """Whether it has Han, and hardly any letters of Japanese or Korean beside it: a face, a name."""
    han, others = (sum(map(len, letters.findall(text))) for letters in (_HAN, _JAPANESE_OR_KOREAN))
    return han > HAN_BESIDE_OTHERS * others


def _or_itself(word: str, language: str) -> str:
    found = gloss(word, language)
    return word if found is None else found


def language_of(text: str) -> str | None:
    """Of the languages with spaces, the one that knows the most words, if it knows some, and more than English does."""
    english = english_words()
    found = _WORD.findall(_composed(text[:READ_CHARS]).lower().replace("’", "'"))
    words = [part for word in found for part in ([word] if word in english.own else _joined_words(word))]
    known = sum(word in english.own for word in words)
    languages = [_languages().get(word, "") for word in words] if 2 * known < len(words) else []
    fewest = max(FEWEST_WORDS, known + 1, KNOWN_SHARE * len(words))
    if sum(map(bool, languages)) < fewest:
        return None
    counts = {language: sum(language in some for some in languages) for language in (*SPACED, *UNREAD)}
    best = max(counts, key=counts.__getitem__)
    is_other = any(
        best in some and not (word in english.own or word in english.shared)
        for word, some in zip(words, languages, strict=True)
    )
    return best if is_other and best in SPACED and counts[best] >= fewest else None


def gloss(word: str, language: str) -> str | None:
    """One word in English. None where it is not known, nothing where English leaves it out."""
    return None if len(word) > LONGEST_WORD else _gloss(word, language)


@lru_cache(WORDS_KEPT)
def _gloss(word: str, language: str) -> str | None:
    known = glossary(language)
    lower = word.lower().replace("’", "'")
    found = known.looked_up(lower)
    if found is None and not lower.isalpha() and (language == "de" or not _FULL_NAME.search(word)):
        parts = [(part, known.looked_up(part) or SAME) for part in _joined_words(lower)]
        if any(english != SAME for _, english in parts):
            read = [part if english == SAME else english for part, english in parts if len(part) > 1 or english == "i"]
            return " ".join(part for part in read if part != LEFT_OUT)
    if found is None and (not word[:1].isupper() or (language == "de" and len(word) >= SHORTEST_NAME)):
        found = _other_form(lower, known)
    if found is None and language == "de":
        found = _compound(lower, known)
    return word if found == SAME else "" if found == LEFT_OUT else found


def _joined_words(word: str) -> list[str]:
    """Of "l'amico", "avons-nous"."""
    return word.replace("-", "'").split("'")


def _other_form(word: str, known: Glossary) -> str | None:
    at = bisect_left(known.words, word)
    shared, nearest = max(
        ((_shared(word, other), other) for other in known.words[max(0, at - 1) : at + 1]), default=(0, "")
    )
    is_form = shared >= max(SHORTEST_BEGINNING, SHARED * len(word)) and len(word) - shared <= LONGEST_ENDING
    if is_form and len(nearest) - shared < LONGEST_ENDING and known.tells(nearest):
        person, _, rest = known.english[nearest].partition(" ")
        return rest if person in _PERSONS and rest else known.english[nearest]  # another form may be of somebody else
    return None


def _shared(one: str, other: str) -> int:
    """Letters that both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _compound(word: str, known: Glossary) -> str | None:
    for cut in range(len(word) - SHORTEST_PART, SHORTEST_PART - 1, -1):
        head, tail = word[:cut], word[cut:]
        stems = (head.removesuffix(link) for link in LINKS)
        stem = next((stem for stem in stems if len(stem) >= SHORTEST_PART and known.tells(stem)), None)
        if stem is not None and known.english[stem] != LEFT_OUT:
            last = known.english.get(tail) or _other_form(tail, known) or _compound(tail, known)
            if last not in (None, LEFT_OUT):
                return f"{known.english[stem]} {tail if last == SAME else last}"
    return None


@lru_cache(WORDS_KEPT)
def _chinese(run: str) -> str:
    """By the longest words that are known."""
    known = glossary(CHINESE).english
    found: list[str] = []
    at = 0
    while at < len(run):
        lengths = range(min(LONGEST_UNSPACED, len(run) - at), 0, -1)
        length = next((length for length in lengths if run[at : at + length] in known), 1)
        found.append(known.get(run[at : at + length], run[at : at + length]))
        at += length
    return " ".join(word for word in found if word != LEFT_OUT)


def _composed(text: str) -> str:
    """With each accent in its letter."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def unaccented(word: str) -> str:
    if word.isascii():
        return word
    word = word.replace("ß", "ss").replace("œ", "oe").replace("æ", "ae")
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))


@cache
def glossary(language: str) -> Glossary:
    english = dict(line.split("\t", 1) for line in _lines(_file(language)))
    bare = {} if language == CHINESE else {unaccented(word): meaning for word, meaning in english.items()}
    if language == "de":
        bare |= {word.translate(_UMLAUTS): meaning for word, meaning in english.items() if not word.isascii()}
    return Glossary(english, sorted(english), bare)


@cache
def english_words() -> EnglishWords:
    words = _lines("english-words.txt.gz")
    shared = frozenset(word.removesuffix(SAME) for word in words if word.endswith(SAME))
    return EnglishWords(frozenset(words).difference(word + SAME for word in shared), shared)


@cache
def _languages() -> dict[str, str]:
    """The most frequent words of the languages with spaces, without those that mean the same in English."""
    return {word: intern(some) for word, some in (line.split("\t") for line in _lines("languages.tsv.gz"))}


@cache
def digest() -> str:
    """SHA-256 of all that is known."""
    packed = b"".join(_packed(_file(language)) for language in (*SPACED, CHINESE))
    return sha256(packed + _packed("english-words.txt.gz") + _packed("languages.tsv.gz")).hexdigest()


def _file(language: str) -> str:
    return f"glossary-{language}.tsv.gz"


def _lines(name: str) -> list[str]:
    return gzip.decompress(_packed(name)).decode().splitlines()


def _packed(name: str) -> bytes:
    return files("offbook.models").joinpath("data", name).read_bytes()
