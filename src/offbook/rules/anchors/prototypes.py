"""What an uncertain sentence is compared with: sentences that are anchors, and sentences that only look like them.

The margins were chosen with all-MiniLM-L6-v2, on what the rules are uncertain about in public conversations and on
`UNCERTAIN` of the tests. Other models spread likeness differently: one reason why a difference decides, not a likeness.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from offbook.model.settings.sections import CONTRADICTION_WORDS, IDENTITY_WORDS, TENSION_WORDS, AnchorKeywords
from offbook.model.turn import AnchorKind
from offbook.rules.anchors.identity import identity_in
from offbook.rules.anchors.tension import NEGATION, contradiction_in, tension_in
from offbook.rules.likeness import Embed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


BEST = 2
"""How many of the nearest are averaged: one alone may be near by chance."""
MARGIN: dict[AnchorKind, float] = {"identity": 0.09, "contradiction": 0.11, "tension": 0.12}
"""On the side that leaves an anchor out: of what people write, most that looks like one is none."""
MODELS_KEPT = 2

_FOR: dict[AnchorKind, tuple[str, ...]] = {
    "identity": (
        "I am deaf",
        "I am disabled",
        "I am a native speaker of French",
        "I am not a religious person",
        "I am fluent in Italian",
        "I am lactose intolerant",
        "I am sugar free and eat low carb",
        "I am half German",
        "I am obese",
        "I am a recovering alcoholic",
        "I am an introvert",
        "I am tall and blond",
        "I have high blood pressure",
        "I am in my fifties",
        "I am infertile",
        "I am not a night owl",
    ),
    "contradiction": (
        "What you told me is not true",
        "That is not what you said before",
        "You told me something different earlier",
        "Actually I don't have a dog",
        "Actually, I have never lived there",
        "Actually, the package was sent somewhere else",
        "The number you gave me before is wrong",
        "I said two, but there are three",
        "Not the first one but the second one",
        "It is no longer the case",
        "The old value was different from the new one",
        "What I said earlier was a mistake",
    ),
    "tension": (
        "The same problem again",
        "We have a serious problem",
        "Another issue with the supplier",
        "Big trouble at home",
        "Nobody knows how to solve this problem",
        "Stuck for days",
        "Confused about the instructions",
        "This is a challenge we do not know how to handle",
        "The engine is the problem",
        "The drawer gets stuck all the time",
        "A difficult issue that remains unresolved",
    ),
}
_AGAINST: dict[AnchorKind, tuple[str, ...]] = {
    "identity": (
        "I am tired",
        "I am sleepy",
        "I am eager to begin",
        "I am out of money this week",
        "I am running late",
        "I am alone right now",
        "I am stressed",
        "I am fine",
        "I am sick of this",
        "I am optimistic about it",
        "I am shocked",
        "I am in bed",
        "I am awake",
        "I am unsure about that",
        "I am not a fan of that colour",
        "My phone is almost empty",
        "I am first in line",
        "I am definitely going to do it",
        "I am into that kind of music",
    ),
    "contradiction": (
        "Use the other picture instead",
        "He told me a funny story",
        "I told her about the party",
        "She said hello",
        "You said it well",
        "I actually liked it",
        "I actually cried",
        "Let's walk instead",
        "Wash your hands before dinner",
        "We were there yesterday",
        "It was green before",
        "It is nice, but far away",
        "I told you that you would like it",
        "Before you go, lock the door",
        "What you told me makes sense",
        "What I said was useful",
    ),
    "tension": (
        "The math problem on the exam",
        "I read the newest issue of the magazine",
        "The magazine issue came out in May",
        "An article about a political issue",
        "We discussed the issue of taxes",
        "It was a nice challenge",
        "She enjoys the challenge of running",
        "The contest ended in June",
        "A famous problem in computer science",
        "Problem three is in chapter four",
        "The poster stuck to the wall",
        "A method of solving problems",
        "Together we solve every problem",
        "I want to avoid any issues",
        "That sentence stuck with me",
    ),
}


@lru_cache(MODELS_KEPT)
def _prototypes(embed: Embed) -> dict[AnchorKind, tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Embedded once for each model: pass the same function, or method, every time."""
    return {kind: (embed(_FOR[kind]), embed(_AGAINST[kind])) for kind in _FOR}


def margin_over(vector: NDArray[np.float32], kind: AnchorKind, embed: Embed) -> float:
    """How much nearer a sentence is to anchors of a kind than to what only looks like them, over what it must be."""
    anchors, others = _prototypes(embed)[kind]
    return _nearest((anchors @ vector).tolist()) - _nearest((others @ vector).tolist()) - MARGIN[kind]


def _nearest(likenesses: Sequence[float]) -> float:
    return sum(sorted(likenesses)[-BEST:]) / BEST


# ── Which sentences of a user are anchors, by their words ──

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
