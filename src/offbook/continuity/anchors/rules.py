"""Which sentences of a user are anchors, by their words.

The words of the settings only nominate: a sentence that has one, and that the rules know nothing about, is uncertain
(`None`), and without a model it is left out. A word that the user added to a list decides by itself, one they took out
of it does not count any more, and a kind without words is not looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from offbook.continuity.anchors.contradiction import NEGATION, contradiction_in
from offbook.continuity.anchors.identity import identity_in
from offbook.continuity.anchors.tension import tension_in
from offbook.settings import CONTRADICTION_WORDS, IDENTITY_WORDS, TENSION_WORDS, AnchorKeywords
from offbook.turns import AnchorKind

LONGEST_READ_SENTENCE_CHARS = 400
"""Whoever writes longer sentences than that has pasted something."""
LONGEST_UNCERTAIN_CHARS = 160
"""A longer sentence says several things, and a model is near to none of them."""


class Nominee(NamedTuple):
    kind: AnchorKind
    is_certain: bool


# ── the words of the settings ─────────────────────────────────────────────────────────────────

KINDS: tuple[AnchorKind, ...] = ("identity", "contradiction", "tension")
_DEFAULTS = {"identity": IDENTITY_WORDS, "contradiction": CONTRADICTION_WORDS, "tension": TENSION_WORDS}
_RULES = {"identity": identity_in, "contradiction": contradiction_in, "tension": tension_in}
_I_AM = re.compile(r"\bi'm\b")
_QUOTED = re.compile(r"[\"“][^\"“”\n]{12,}[\"”]")
"""The words of others, unless they are a name."""
_ENDS = " \t.!?…。！？\"'"


def nominees(sentence: str, keywords: AnchorKeywords) -> Iterator[Nominee]:
    """The kinds a sentence may be of. Identity comes first: one that corrects another one is an identity still."""
    said = _QUOTED.sub("", sentence[:LONGEST_READ_SENTENCE_CHARS])
    lower = _I_AM.sub("i am", sentence.lower())
    for kind in KINDS:
        words = frozenset(word.strip().lower() for word in getattr(keywords, kind))
        if words:
            verdict = _verdict(kind, said, lower, words)
            if verdict or (verdict is None and len(said) <= LONGEST_UNCERTAIN_CHARS and not said.endswith(":")):
                yield Nominee(kind, bool(verdict))


@lru_cache(512)
def is_certain(kind: AnchorKind, sentence: str, keywords: AnchorKeywords) -> bool:
    """Whether the rules alone are sure that the sentence is of this kind."""
    return any(one.kind == kind and one.is_certain for one in nominees(sentence, keywords))


def _verdict(kind: AnchorKind, said: str, lower: str, words: frozenset[str]) -> bool | None:
    """`lower` is the whole sentence: a word of their own counts wherever it stands."""
    defaults = _DEFAULTS[kind]
    found = {word for word in words if _holds(lower, word)}
    if found.difference(defaults):
        return True
    if kind == "identity" and lower.strip(_ENDS) in found:
        return True
    if not found and any(_holds(lower, word) for word in defaults if word not in words):
        return False
    verdict = _RULES[kind](said)
    # Uncertain about identity or a contradiction, the rules have seen "I am" or a look back; about a tension, nothing.
    return False if verdict is None and kind == "tension" and not found else verdict


@lru_cache(256)
def _pattern(word: str) -> re.Pattern[str]:
    """A word begins where a word does, and may go on ("problems"); scripts without blanks have no such places."""
    spelled = re.escape(word.replace("’", "'"))
    return re.compile(rf"(?<!\w){spelled}(?:s|es|ed|ing|ory|ion|ions)?(?!\w)" if word.isascii() else spelled)


def _holds(lower: str, word: str) -> bool:
    return bool(word) and bool(_pattern(word).search(lower))


# ── what tells two anchors apart ──────────────────────────────────────────────────────────────

_NAME_OR_NUMBER = re.compile(r"(?<=[\w,;:'\"] )[^\W\d_a-z][\w'-]+|\d[\w.,:]*")


def denies(sentence: str) -> bool:
    return bool(NEGATION.search(sentence))


def names_in(sentence: str) -> frozenset[str]:
    """The names and numbers of a sentence, as far as their writing shows them."""
    return frozenset(found[0].lower().rstrip(".,:'") for found in _NAME_OR_NUMBER.finditer(sentence))
