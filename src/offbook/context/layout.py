"""Sentences chosen from rankings, and how they are laid out: days as headings, speakers before what they said.

Sentences of one message that follow one another are one line: `They: We moved to Berlin. The new job starts in May.`
Where something was left out between them, the line says so by an ellipsis. What a sentence takes therefore depends on
its neighbours, and on nothing else, so that room is counted as it is filled.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from offbook.context.sentence_ranking import RankedSentence, Ranking, regained, shared_values
from offbook.context.time_text import heading, heading_chars

LEFT_OUT_BETWEEN = " … "
SENTENCES_PER_LINE = 3
"""So that a text can be shortened by whole lines."""


class Page:
    """The lines of one text, in the order in which they were said."""

    def __init__(self, *, separator_chars: int = 0) -> None:
        self.lines: list[RankedSentence] = []
        self._places: list[tuple[int, int]] = []
        self._separator_chars = separator_chars

    def place_of(self, line: RankedSentence) -> tuple[int, int]:
        """Where it would stand, and how many characters more the text would have."""
        at = bisect_left(self._places, (line.seq, line.place))
        before = self.lines[at - 1] if at else None
        chars = self._chars(before, line)
        if at < len(self.lines):
            after = self.lines[at]
            chars += self._chars(line, after) - self._chars(before, after)
        return at, chars

    def insert(self, at: int, line: RankedSentence) -> None:
        self.lines.insert(at, line)
        self._places.insert(at, (line.seq, line.place))

    def rows(self) -> list[tuple[str, list[RankedSentence]]]:
        """The lines of the text, each with the sentences in it; a heading has none."""
        rows: list[tuple[str, list[RankedSentence]]] = []
        before: RankedSentence | None = None
        for line in self.lines:
            if before is not None and _is_joined(before, line):
                text, joined = rows[-1]
                rows[-1] = (text + _between(before, line) + line.text, [*joined, line])
            else:
                if line.day is not None and (before is None or before.day != line.day):
                    rows.append((heading(line.day, before.day if before else None), []))
                rows.append((f"{line.speaker}: {line.text}" if line.speaker else line.text, [line]))
            before = line
        return rows

    def text(self) -> str:
        return "\n".join(text for text, _ in self.rows())

    def _chars(self, before: RankedSentence | None, line: RankedSentence) -> int:
        """What a line takes after that one."""
        if before is not None and _is_joined(before, line):
            return len(_between(before, line)) + len(line.text)
        chars = len(line.text) + (len(line.speaker) + 2 if line.speaker else 0)
        chars += 1 if before is not None else self._separator_chars
        if line.day is not None and (before is None or before.day != line.day):
            chars += heading_chars(line.day, before.day if before else None) + 1
        return chars


def _is_joined(before: RankedSentence, line: RankedSentence) -> bool:
    if before.seq != line.seq or before.speaker != line.speaker or before.day != line.day:
        return False
    return before.place // SENTENCES_PER_LINE == line.place // SENTENCES_PER_LINE


def _between(before: RankedSentence, line: RankedSentence) -> str:
    return " " if line.place == before.place + 1 else LEFT_OUT_BETWEEN


class Order(NamedTuple):
    """The lines of several rankings in one order: which ranking each is of, and what it adds to those before it."""

    lines: tuple[tuple[float, int, RankedSentence], ...]
    values: dict[str, float]
    """What each stem is worth in all of them together."""


def ordered(rankings: Sequence[Ranking]) -> Order:
    """Worth keeping: it takes longer than all the rest."""
    values = rankings[0].values if len(rankings) == 1 else shared_values(rankings)
    return Order(tuple(_in_order(rankings, values)), values)


def filled(
    rankings: Sequence[Ranking],
    max_chars: int,
    *,
    before_seq: int | None = None,
    separator_chars: int = 0,
    order: Order | None = None,
) -> tuple[list[Page], list[tuple[int, RankedSentence]]]:
    """A page for each ranking, and all lines as they were chosen: the best of all rankings next, while it fits.

    The order does not depend on the room there is, so from where the best line fits, more room only adds lines.
    `order` is that of the first of the rankings, where it is known; what the others say is then taken between them by
    what it adds, whatever they say as well.
    """
    order = order or ordered(rankings)
    pages = [Page(separator_chars=separator_chars) for _ in rankings]
    chosen: list[tuple[int, RankedSentence]] = []
    is_best = True
    for _, which, line in _merged(order, rankings):
        if before_seq is not None and line.seq >= before_seq:
            continue
        at, chars = pages[which].place_of(line)
        if chars <= max_chars:
            # Where the best line does not fit, one that does stands in for it.
            max_chars = max_chars - chars if is_best else 0
            pages[which].insert(at, line)
            chosen.append((which, line))
        elif chosen:
            break
        else:
            is_best = False
    return pages, chosen


def _merged(order: Order, rankings: Sequence[Ranking]) -> Iterator[tuple[float, int, RankedSentence]]:
    """The lines of an order, and between them those of the later rankings by what they add to all before them."""
    known = 1 + max((which for _, which, _ in order.lines), default=-1)
    later = rankings[known:]
    if not later:
        yield from order.lines
        return
    values = {**shared_values(later), **order.values}
    news = _Waiting(later, values)
    for gain, which, line in order.lines:
        while (best := news.best()) is not None and best[0] >= gain:
            yield best[0], known + best[1], best[2]
            news.take(best[2])
        yield gain, which, line
        news.hear(line)
    while (best := news.best()) is not None:
        yield best[0], known + best[1], best[2]
        news.take(best[2])
    yield from ((gain, known + which, line) for gain, which, line in _wordless(later))


class _Waiting:
    """Lines that are yet to be taken, the one that adds most to what was said first."""

    def __init__(self, rankings: Sequence[Ranking], values: Mapping[str, float]) -> None:
        worth = values.__getitem__
        self._rankings = rankings
        self._values = values
        self._forms: set[str] = set()
        self._stems: set[str] = set()
        self._waiting = [
            (-line.rest - line.scale * sum(map(worth, line.stems)), which, rank)
            for which, one in enumerate(rankings)
            for rank, line in enumerate(one.lines)
            if line.stems
        ]
        heapify(self._waiting)

    def best(self) -> tuple[float, int, RankedSentence] | None:
        while self._waiting:
            known, which, rank = self._waiting[0]
            line = self._rankings[which].lines[rank]
            gain = regained(line, self._values, self._forms, self._stems)
            if gain >= -known * (1 - 1e-9):
                return gain, which, line
            heapreplace(self._waiting, (-gain, which, rank))
        return None

    def take(self, line: RankedSentence) -> None:
        """The one that is the best now."""
        heappop(self._waiting)
        self.hear(line)

    def hear(self, line: RankedSentence) -> None:
        self._forms.update(line.forms)
        self._stems.update(line.stems)


def _in_order(rankings: Sequence[Ranking], values: Mapping[str, float]) -> Iterator[tuple[float, int, RankedSentence]]:
    """The lines of all rankings by what each adds to those before it; those that add no word come last."""
    if len(rankings) == 1 and values is rankings[0].values:
        yield from ((line.gain, 0, line) for line in rankings[0].lines)
        return
    waiting = _Waiting(rankings, values)
    while (best := waiting.best()) is not None:
        yield best
        waiting.take(best[2])
    yield from _wordless(rankings)


def _wordless(rankings: Sequence[Ranking]) -> Iterator[tuple[float, int, RankedSentence]]:
    lines = ((which, line) for which, one in enumerate(rankings) for line in one.lines if not line.stems)
    for which, line in sorted(lines, key=lambda pair: -pair[1].rest):
        yield line.rest, which, line
