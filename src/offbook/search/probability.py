"""One score for what is remembered: how likely a message is a memory that matters for what was said now.

Ranking says which message is likeliest; this says how likely, so that the same number decides what `recall` shows as
`why.probability` and what comes to mind before a turn. A logistic regression over what ranking has at hand: how near
the message is, which of the words it shares and how rare those are (a name says more than "summary"), how it stands
out among the candidates, and what kind of message it is. `benchmarks/memory/fit_score.py` fits it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offbook.models.sentence_kinds import read_sentences
from offbook.models.word_rarity import RAREST, rarity_in_general
from offbook.search.index.rows import word_numbers
from offbook.search.probability_weights import BY_WORDS, LARGEST, WITH_VECTORS
from offbook.search.words import terms

Floats = NDArray[np.float64]
Signals = Mapping[str, float]

STANDS_OUT = 3
"""Places further down the list, against which a candidate is held."""
CROSSED_WITH_PROSE = ("share", "place", "memory", "user", "above", "score")
HIGH_SCORE = 5.0
"""Above it, more of it says less."""
AT_BEST = {"states": 1.0}
"""What no message exceeds in what `spoken` reads of it."""
HELD = 0.5
NEARLY_ALL, HARDLY_ANY_OTHER, STATED, FEWEST_TERMS = 0.7, 0.25, 0.4, 2
READ_CHARS = 800
"""Of a message, for what it states."""
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_BEFORE_A_SENTENCE = frozenset('.!?:…"“„«(-*•')


@dataclass(frozen=True)
class QueryWords:
    """The words looked for: how rare each is in general and here, and whether it is written as a name is."""

    terms: Sequence[str]
    rarity: Floats
    """In general, 0 to 1."""
    is_name: Floats
    """1 where it has a capital inside a sentence; at its beginning as much as it is rare."""

    @classmethod
    def of(cls, text: str, looked_for: Sequence[str]) -> QueryWords:
        rarity = rarity_in_general(word_numbers(looked_for)) / RAREST
        capitals = capitalised(text)
        weights = [capitals.get(term, 0.0) for term in looked_for]
        is_name = [
            weight if weight in (0.0, 1.0) else float(rare) for weight, rare in zip(weights, rarity, strict=True)
        ]
        return cls(looked_for, rarity, np.array(is_name, np.float64))


def capitalised(text: str) -> dict[str, float]:
    """Terms that have a capital in the text: 1 inside a sentence, 0.5 where they only begin one. In a text where most
    words have one, as in German or in a title, it says little: nothing counts as inside."""
    found: dict[str, float] = {}
    words = list(_WORD.finditer(text))
    inside = [one for one in words if not _begins_a_sentence(text, one.start())]
    many = sum(one[0][0].isupper() for one in inside) * 4 > len(inside)
    is_inside = {one.start() for one in inside}
    for one in words:
        if one[0][0].isupper():
            weight = 1.0 if one.start() in is_inside and not many else 0.5
            for term in terms(one[0]):
                found[term] = max(weight, found.get(term, 0.0))
    return found


def _begins_a_sentence(text: str, at: int) -> bool:
    before = text[max(0, at - 4) : at]
    said = before.rstrip()
    return not said or said[-1] in _BEFORE_A_SENTENCE or "\n" in before[len(said) :]


def word_signals(asked: QueryWords, held: NDArray[np.bool_], here: Floats) -> dict[str, Floats]:
    """Of each candidate (a row of `held`: which of the words it has). `here`: how rare each word is in this memory,
    from 0, in every message, to 1, in one only."""
    total = max(float((asked.rarity**2).sum()), 1e-9)
    telling = asked.rarity**3 * here
    return {
        "share": held @ asked.rarity**2 / total,
        "rarest": (held * telling).max(axis=1, initial=0.0),
        "name": (held * asked.is_name * here).max(axis=1, initial=0.0),
    }


def standing(scores: Floats) -> dict[str, Floats]:
    """How each stands out among the candidates, which are given best first."""
    count = len(scores)
    below = np.array([scores[min(at + STANDS_OUT, count - 1)] for at in range(count)])
    return {
        "score": scores,
        "lead": np.clip(scores - below, 0.0, 5.0) if count > STANDS_OUT else np.full(count, 1.0),
        "behind": np.clip(scores.max(initial=0.0) - scores, 0.0, 8.0),
        "place": np.log1p(np.arange(count, dtype=np.float64)),
    }


def spoken(text: str, *, is_user: bool) -> dict[str, float]:
    """What the message itself is: whether its speaker states anything."""
    read = read_sentences(text[:READ_CHARS], is_user=is_user)
    return {"states": max((one.states * one.own for one in read), default=0.0)}


def crossed(signals: Signals, most: Mapping[str, float]) -> dict[str, float]:
    """The signals with those that mean something else together. Of a long message that goes on with a matter (`prose`)
    other things count than of a question. Beyond `most`, where nothing was fitted, more of a signal says no more: one
    fact among hundreds of messages that are all alike stands out by twenty deviations."""
    own = {name: min(value, most.get(name, value)) for name, value in signals.items()}
    for name in CROSSED_WITH_PROSE:
        own[f"prose_{name}"] = own.get("prose", 0.0) * own.get(name, 0.0)
    own["terms_share"] = own.get("terms", 0.0) * own.get("share", 0.0)
    own["above_share"] = own.get("above", 0.0) * own.get("share", 0.0)
    own["high_score"] = max(0.0, own.get("score", 0.0) - HIGH_SCORE)
    return own


def probability(signals: Signals, *, by_words: bool) -> float:
    """That it is a memory that matters here, 0 to 1."""
    weights = BY_WORDS if by_words else WITH_VECTORS
    total = weights["bias"] + sum(weights.get(name, 0.0) * value for name, value in crossed(signals, LARGEST).items())
    fitted = 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))
    return max(fitted, HELD) if _holds_what_is_asked(signals) else fitted


def _holds_what_is_asked(signals: Signals) -> bool:
    """Whether a message that states something holds nearly all that is asked about, a word among it that hardly any
    other holds: it comes to mind however large the memory is, and however much of it is alike."""
    holds = signals.get("share", 0.0) >= NEARLY_ALL and signals.get("rarest", 0.0) >= HARDLY_ANY_OTHER
    return holds and signals.get("states", 0.0) >= STATED and signals.get("terms", 0.0) >= math.log1p(FEWEST_TERMS)
