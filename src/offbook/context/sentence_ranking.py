"""Which sentences to keep: those that add the most, per character, to what those before them say.

A word is worth what its kind is worth, and more the more often it comes up, but only once: the first sentence that
says it earns that. Choosing greedily gives a ranking of which every beginning is a good summary of its length. Words
that come up again in another form earn a part. (To value words less the more often they come up, as idf does, loses
two to four points of LoCoMo's answers: what is asked about later is what was talked about.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from heapq import heapify, heappop, heapreplace
from math import sqrt
from typing import NamedTuple

from offbook.context.sentence_weights import WeighedSentence
from offbook.context.term_weights import OPENING_CAPITAL_WEIGHT
from offbook.search.stems import stem

RISE = 0.6
"""A word that comes up n times is worth n to this power; so the squares of what it is worth here and there add up."""
ANOTHER_FORM = 0.6
"""What the second form of a word is worth of the first: `painted` once there was `painting`."""
REPEATED = 0.02
"""What words are worth that are all there already: enough to fill room that is left in a sensible order."""
SENTENCE_CHARS = 30
"""What a sentence takes besides its words: a separator, its share of headings, and a reader's attention."""
SHORTEST_NICKNAME_CHARS = 3
SPEAKER_SHARE = 0.5
"""How many sentences begin with the name of their speaker, about."""


class Candidate(NamedTuple):
    """A sentence, and where it was said."""

    seq: int
    place: int
    speaker: str
    day: date | None
    sentence: WeighedSentence


class RankedSentence(NamedTuple):
    """A sentence in its ranking. `gain` is what it adds per character to the lines ranked before it."""

    seq: int
    place: int
    speaker: str
    day: date | None
    text: str
    gain: float
    rest: float
    """The part of the gain that does not depend on other lines."""
    scale: float
    """What a word's value is multiplied by: the sentence's factor, per character."""
    forms: tuple[str, ...]
    """Those that the lines ranked before it do not say."""
    stems: tuple[str, ...]
    """Of these forms, each in its place."""


class Ranking(NamedTuple):
    """The sentences of a stretch, best first, and what each stem is worth in it."""

    lines: tuple[RankedSentence, ...]
    values: dict[str, float]


def cost_chars(speaker: str, text: str) -> float:
    return len(text) + SENTENCE_CHARS + SPEAKER_SHARE * len(speaker)


def ranking(candidates: Sequence[Candidate]) -> Ranking:
    """Every sentence that says something, best first."""
    values = _values(candidates)
    costs = [cost_chars(one.speaker, one.sentence.text) for one in candidates]
    scales = [one.sentence.factor / cost for one, cost in zip(candidates, costs, strict=True)]
    sums = [sum([values[term[1]] for term in one.sentence.terms]) for one in candidates]
    rests = [
        one.sentence.lasting / cost + REPEATED * scale * total
        for one, cost, scale, total in zip(candidates, costs, scales, sums, strict=True)
    ]
    most = [rest + scale * total for rest, scale, total in zip(rests, scales, sums, strict=True)]
    waiting = [(-gain, index) for index, gain in enumerate(most) if gain]
    heapify(waiting)
    forms = named(one.speaker for one in candidates)
    stems = set(forms)
    said: set[str] = set()
    lines: list[RankedSentence] = []
    while waiting:
        known, index = waiting[0]
        one = candidates[index]
        if one.sentence.text in said:
            heappop(waiting)
            continue
        scale = scales[index]
        new_forms: list[str] = []
        new_stems: list[str] = []
        gain = rest = rests[index]
        for form, root, _ in one.sentence.terms:
            if form not in forms:
                gain += scale * values[root] * (ANOTHER_FORM if root in stems else 1.0)
                new_forms.append(form)
                new_stems.append(root)
        # Gains only fall as more is said, so one that is no less than what the next could be is the best of all.
        if gain < -known * (1 - 1e-9) and len(waiting) > 1 and gain < -min(waiting[1:3])[0]:
            heapreplace(waiting, (-gain, index))
            continue
        heappop(waiting)
        where = (one.seq, one.place, one.speaker, one.day)
        lines.append(RankedSentence(*where, one.sentence.text, gain, rest, scale, tuple(new_forms), tuple(new_stems)))
        said.add(one.sentence.text)
        forms.update(new_forms)
        stems.update(new_stems)
    return Ranking(tuple(lines), values)


def _values(candidates: Sequence[Candidate]) -> dict[str, float]:
    """What each stem is worth. The beginning of a speaker's name, written as a name, is that speaker: nothing."""
    counts: dict[str, int] = {}
    weights: dict[str, float] = {}
    for one in candidates:
        for _, root, weight in one.sentence.terms:
            if root in counts:
                counts[root] += 1
                weights[root] += weight
            else:
                counts[root] = 1
                weights[root] = weight
    values = {root: weights[root] * count ** (RISE - 1) for root, count in counts.items()}
    for name in named(one.speaker for one in candidates):
        for end in range(SHORTEST_NICKNAME_CHARS, len(name) + 1):
            root = name[:end]
            if root in values and weights[root] > OPENING_CAPITAL_WEIGHT * counts[root]:
                values[root] = 0.0
    return values


def named(speakers: Iterable[str]) -> set[str]:
    """The words that stand before every line anyway."""
    return {word for speaker in set(speakers) for part in speaker.lower().split() for word in (part, stem(part))}


def shared_values(rankings: Sequence[Ranking]) -> dict[str, float]:
    """What each stem is worth in several stretches together, as if they were one."""
    squares: dict[str, float] = {}
    for one in rankings:
        for root, value in one.values.items():
            if root in squares:
                squares[root] += value * value
            else:
                squares[root] = value * value
    return {root: sqrt(square) for root, square in squares.items()}


def regained(line: RankedSentence, values: Mapping[str, float], forms: set[str], stems: set[str]) -> float:
    """What a line adds per character where other stretches have said some of its words already."""
    total = 0.0
    for form, root in zip(line.forms, line.stems, strict=True):
        if form not in forms:
            total += ANOTHER_FORM * values[root] if root in stems else values[root]
    return line.rest + line.scale * total
