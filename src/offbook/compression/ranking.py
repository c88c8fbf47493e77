"""Which clauses to keep: those that add the most, per character, to what those before them say.

A word is worth what its kind is worth, and more the more often it comes up, but only once: the first clause that says
it earns that. Choosing greedily, clause after clause, gives a ranking of which every beginning is a good summary of its
length. Words that come up again in another form earn a part. (What idf does, preferring words that come up once, loses
two points of LoCoMo's answers: what is asked about later is what was talked about.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from offbook.compression.shapes import stem
from offbook.compression.telegraph import Clause

RISE = 0.45
"""A word that comes up n times is worth n to this power."""
ANOTHER_FORM = 0.4
"""What the second form of a word is worth of the first: `painted` once there was `painting`."""
REPEATED = 0.02
"""What words are worth that are all there already: enough to fill room that is left in a sensible order."""
CLAUSE_CHARS = 7
"""What a clause takes besides its words: a separator, its share of headings, and a reader's attention."""
SPEAKER_SHARE = 0.5
"""How many clauses begin with the name of their speaker, about."""


class Candidate(NamedTuple):
    """A clause, and where it was said."""

    seq: int
    place: int
    speaker: str
    day: date | None
    clause: Clause


News = tuple[str, str, float]
"""A form, its stem, and what saying it first adds per character."""


class Line(NamedTuple):
    """A clause in its ranking. `gain` is what it adds per character to the lines ranked before it."""

    seq: int
    place: int
    speaker: str
    day: date | None
    text: str
    gain: float
    rest: float
    """The part of the gain that does not depend on other lines."""
    news: tuple[News, ...]
    """What the lines ranked before it do not say. Enough to weigh it among the lines of other stretches."""


def cost_chars(speaker: str, text: str) -> float:
    return len(text) + CLAUSE_CHARS + SPEAKER_SHARE * len(speaker)


def ranking(candidates: Sequence[Candidate]) -> list[Line]:
    """Every clause that says something, best first."""
    values = _values(candidates)
    scales = [one.clause.factor / cost_chars(one.speaker, one.clause.text) for one in candidates]
    sums = [sum([values[term[1]] for term in one.clause.terms]) for one in candidates]
    waiting = [(-scale * total, index) for index, (scale, total) in enumerate(zip(scales, sums, strict=True)) if total]
    heapify(waiting)
    forms = named(one.speaker for one in candidates)
    stems = set(forms)
    said: set[str] = set()
    lines: list[Line] = []
    while waiting:
        known, index = waiting[0]
        one = candidates[index]
        if one.clause.text in said:
            heappop(waiting)
            continue
        scale = scales[index]
        news = []
        gain = rest = REPEATED * scale * sums[index]
        for form, root, _ in one.clause.terms:
            if form not in forms:
                value = scale * values[root]
                gain += ANOTHER_FORM * value if root in stems else value
                news.append((form, root, value))
        # Gains only fall as more is said, so one that is still what it was is the best of all.
        if gain < -known * (1 - 1e-9) and len(waiting) > 1 and gain < -min(waiting[1:3])[0]:
            heapreplace(waiting, (-gain, index))
            continue
        heappop(waiting)
        lines.append(Line(one.seq, one.place, one.speaker, one.day, one.clause.text, gain, rest, tuple(news)))
        said.add(one.clause.text)
        for form, root, _ in news:
            forms.add(form)
            stems.add(root)
    return lines


def _values(candidates: Sequence[Candidate]) -> dict[str, float]:
    """What each stem is worth. One that begins a speaker's name is that name, called: nothing."""
    counts: dict[str, int] = {}
    weights: dict[str, float] = {}
    for one in candidates:
        for _, root, weight in one.clause.terms:
            if root in counts:
                counts[root] += 1
                weights[root] += weight
            else:
                counts[root] = 1
                weights[root] = weight
    values = {root: weights[root] * count ** (RISE - 1) for root, count in counts.items()}
    for name in named(one.speaker for one in candidates):
        values.update((name[:end], 0.0) for end in range(3, len(name) + 1) if name[:end] in values)
    return values


def named(speakers: Iterable[str]) -> set[str]:
    """The words that stand before every line anyway."""
    return {word for speaker in set(speakers) for part in speaker.lower().split() for word in (part, stem(part))}


def regained(line: Line, forms: set[str], stems: set[str]) -> float:
    """What a line adds per character where other stretches have said those words already."""
    gain = line.rest
    for form, root, value in line.news:
        if form not in forms:
            gain += ANOTHER_FORM * value if root in stems else value
    return gain
