"""The words a sentence is known by, and how much two sentences share. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from offbook.search.substance import sentences_of
from offbook.search.words import STOP_WORDS, terms

MAX_TEXT_CHARS = 300
MAX_WORDS = 24
"""Of one sentence, to know it by."""
MAX_WORDS_READ_CHARS = 1000
_NEGATIONS = frozenset(("no", "not", "never", "without", "closed"))
_FIRST_PERSON_TEXT = (
    "i me my mine we us our ours ich mich mir mein meine meinen meinem meiner wir uns unser unsere je j moi mon ma mes "
    "nous notre nos yo me mi mis nosotros nuestro nuestra io mio mia miei mie noi nostro nostra eu meu minha nós я мой "
    "моя мне меня мы"
)
_FIRST_PERSON = frozenset(_FIRST_PERSON_TEXT.split())
_FIRST_PERSON_SIGNS = ("我", "私", "僕", "俺", "나는", "내가", "저는", "제가")
_ENDS = frozenset(".!?:…。！？")
_AROUND = "\"'“”„‘’«»「」『』()[]{}<>*_`~.,;:!?¿¡…。，、；：！？"


def words_of(text: str) -> list[str]:
    """The distinct telling words of a text, as stems."""
    found = dict.fromkeys(terms(text[:MAX_WORDS_READ_CHARS]))
    return [word for word in found if word not in STOP_WORDS][:MAX_WORDS]


def shared(one: Iterable[str], other: Iterable[str]) -> int:
    return len(set(one).intersection(other))


def is_about(words: Collection[str], other: Collection[str]) -> bool:
    """Whether two words, or half of all of the shorter, are in both."""
    count = shared(words, other)
    return count >= 2 or 0 < min(len(words), len(other)) <= 2 * count


def cut(text: str, max_chars: int = MAX_TEXT_CHARS) -> str:
    """One line of whole sentences, else of whole clauses, else of whole words."""
    line = " ".join(text.split())
    if len(line) <= max_chars:
        return line
    kept = ""
    for sentence in sentences_of(line):
        longer = f"{kept} {sentence}" if kept else sentence
        if len(longer) > max_chars:
            break
        kept = longer
    if len(kept) * 3 >= max_chars:
        return kept
    head = line[: max_chars - 1]
    end = max(head.rfind(mark) for mark in (", ", "; ", ": ", "，", "；", "、"))
    if end * 2 < max_chars:
        end = head.rfind(" ") if " " in head[max_chars // 2 :] else len(head)
    return head[:end].rstrip() + "…"


class Token(NamedTuple):
    """What stands between blanks, without the marks around it."""

    text: str
    begins: bool
    """A sentence."""
    is_joined: bool
    """No mark stands between it and the one before it."""


def tokens_of(text: str) -> Iterator[Token]:
    begins, is_joined = True, False
    for raw in text.split():
        if raw.isalnum():  # most are: there is nothing to take off
            yield Token(raw, begins, is_joined)
            begins, is_joined = False, True
            continue
        bare = raw.strip(_AROUND)
        if bare:
            yield Token(bare, begins, is_joined and raw.startswith(bare))
            begins = False
        is_joined = bool(bare) and raw.endswith(bare)
        begins = begins or raw.rstrip("\"'”’»)]*_")[-1:] in _ENDS


def is_named(token: str) -> bool:
    """Whether a word is written as a name or an identifier: by its capitals, digits or signs."""
    is_plain = token.isalpha() or not any(letter.isdigit() or letter in "_/@#\\" for letter in token)
    return not is_plain or token[:1].isupper() or has_hump(token)


def has_hump(token: str) -> bool:
    """`camelCase`, `iPhone`."""
    if token.isascii() and token[1:].islower():
        return False
    return any(first.islower() and second.isupper() for first, second in itertools.pairwise(token))


def names_in(text: str) -> frozenset[str]:
    """The names and numbers of a text, as far as their writing shows them, in lower case."""
    return frozenset(
        token.lower().removesuffix("'s").removesuffix("’s")
        for token, begins, _ in tokens_of(text)
        if is_named(token)
        and not (begins and token.isalpha() and not has_hump(token))
        and plain_apostrophe(token.lower()).split("'")[0] not in STOP_WORDS
    )


def is_of_speaker(text: str) -> bool:
    """Whether a text speaks of its speaker, where a pronoun says so."""
    found = {part for token, *_ in tokens_of(text) for part in plain_apostrophe(token.lower()).split("'")}
    return not found.isdisjoint(_FIRST_PERSON) or any(sign in text for sign in _FIRST_PERSON_SIGNS)


def plain_apostrophe(text: str) -> str:
    return text.replace("’", "'")


def denies(text: str) -> bool:
    """Whether a text in English says that something is not so."""
    return any(token.lower() in _NEGATIONS or token.lower().endswith(("n't", "n’t")) for token, *_ in tokens_of(text))
