"""The text of a summary as lines in order of rank: shortened without its source, and merged with others.

A text may be a digest written out or the work of a model. Headings are days (`[8 May 2023]`) or, in what a model
wrote, Markdown's; a heading is shown where a line under it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from offbook.context.clause_ranking import Candidate, Ranking, ranking
from offbook.context.days import day_of_heading, heading
from offbook.context.layout import BETWEEN_CLAUSES, filled
from offbook.context.telegraph import as_clause, whole_letters

BRIEF_CHARS = 300
SHORTEST_EXCERPT_CHARS = 40
"""In less room than this, the beginning of a line says nothing."""
LONGEST_LINE_CHARS = 200
"""Of a model's text: longer ones are cut into their sentences."""
BETWEEN_BRIEF_LINES = " / "

_SENTENCES = re.compile(r"(?<=[.!?…])\s+(?=[^\sa-z])|(?<=[。！？])")
_SPEAKER = re.compile(r"([^\s:\[\]#*-][^:\n]{0,39}): (?=\S)")
_MARKDOWN_HEADING = re.compile(r"#{1,6}\s|\*\*[^*]+\*\*:?$")


class SummaryLines(NamedTuple):
    text: str
    """Lines joined by line ends."""
    rank: list[int]
    """Their indexes, best first; a heading comes right before the best line under it."""


def laid_out(one: Ranking, max_chars: int) -> SummaryLines:
    """Ranked clauses as a text to be stored."""
    pages, chosen = filled([one], max_chars, is_stored=True)
    order = {(line.seq, line.place): at for at, (_, line) in enumerate(chosen)}
    rows = pages[0].rows()
    best = [min([order[line.seq, line.place] for line in clauses], default=-1) for _, clauses in rows]
    by_rank = sorted((at for at, (_, clauses) in enumerate(rows) if clauses), key=best.__getitem__)
    headed = _headed([not clauses for _, clauses in rows])
    return SummaryLines("\n".join([text for text, _ in rows]), _with_headings(by_rank, headed))


def ranked(text: str) -> SummaryLines:
    """A model's text in lines. They may end elsewhere than they did; every word stays, in its order."""
    rows = [part for row in text.splitlines() for part in _sentences(row.strip())]
    is_heading = [_is_heading(row) for row in rows]
    candidates = [Candidate(at, 0, "", None, as_clause(row)) for at, row in enumerate(rows) if not is_heading[at]]
    by_rank = [line.seq for line in ranking(candidates).lines]
    seen = set(by_rank)
    by_rank += [one.seq for one in candidates if one.seq not in seen]
    headed = _headed(is_heading)
    rank = _with_headings(by_rank, headed)
    left = set(rank)
    return SummaryLines("\n".join(rows), rank + [at for at in range(len(rows)) if at not in left])


def merged(texts: Sequence[str], max_chars: int) -> SummaryLines:
    """The texts of several summaries, in order of time, as one that is no longer than `max_chars`."""
    candidates: list[Candidate] = []
    seq = 0
    for text in texts:
        day: date | None = None
        for row in text.splitlines():
            if (found := day_of_heading(row.strip(), day)) is not None:
                day = found
                continue
            seq += 1
            candidates += _said_in(row.strip(), seq, day)
    return laid_out(ranking(candidates), max_chars)


def cut(lines: SummaryLines, max_chars: int) -> str:
    """The best lines that fit, in the order of the text; where none does, the beginning of the best."""
    if len(lines.text) <= max_chars:
        return lines.text
    rows = lines.text.split("\n")
    return "\n".join([text for text, _ in _shortened(rows, lines.rank, max_chars, between_chars=1)])


def brief(lines: SummaryLines, max_chars: int = BRIEF_CHARS) -> str:
    """The best of it in one line."""
    rows = lines.text.split("\n")
    text, is_after_heading = "", True
    for row, is_heading in _shortened(rows, lines.rank, max_chars, between_chars=len(BETWEEN_BRIEF_LINES)):
        text += (" " if is_after_heading and text else BETWEEN_BRIEF_LINES if text else "") + row
        is_after_heading = is_heading
    return text


# ── taking lines apart ────────────────────────────────────────────────────────────────────────


def _sentences(row: str) -> list[str]:
    if len(row) <= LONGEST_LINE_CHARS:
        return [row] if row else []
    return [sentence for sentence in _SENTENCES.split(row) if sentence.strip()]


def _said_in(row: str, seq: int, day: date | None) -> list[Candidate]:
    match = _SPEAKER.match(row)
    speaker, said = (match[1], row[match.end() :]) if match else ("", row)
    texts = [part for clause in said.split(BETWEEN_CLAUSES) for part in _sentences(clause.strip())]
    return [Candidate(seq, place, speaker, day, as_clause(text)) for place, text in enumerate(texts)]


def _is_heading(row: str) -> bool:
    return day_of_heading(row, date.min) is not None or _MARKDOWN_HEADING.match(row) is not None


def _headed(is_heading: Sequence[bool]) -> list[int | None]:
    """For each line, the index of the heading it stands under."""
    headed: list[int | None] = []
    last: int | None = None
    for at, is_one in enumerate(is_heading):
        last = at if is_one else last
        headed.append(last)
    return headed


def _with_headings(by_rank: Sequence[int], headed: Sequence[int | None]) -> list[int]:
    rank: dict[int, None] = {}
    for at in by_rank:
        over = headed[at]
        if over is not None:
            rank.setdefault(over)
        rank[at] = None
    return list(rank)


# ── making them fewer ─────────────────────────────────────────────────────────────────────────


def _shortened(
    rows: Sequence[str], rank: Sequence[int], max_chars: int, *, between_chars: int
) -> list[tuple[str, bool]]:
    """The best lines that fit, in order, each with whether it is a heading. Days left without a year get it back."""
    is_heading = [_is_heading(row) for row in rows]
    headed = _headed(is_heading)
    days = _days(rows, is_heading)
    chosen: set[int] = set()
    room = max_chars + between_chars
    best = next((at for at in rank if 0 <= at < len(rows) and not is_heading[at] and rows[at]), None)
    for at in rank:
        if not 0 <= at < len(rows) or is_heading[at] or at in chosen or not rows[at]:
            continue
        chars = len(rows[at]) + between_chars
        over = headed[at]
        if over is not None and over not in chosen:
            day = days.get(over)
            chars += (len(heading(day, None)) if day else len(rows[over])) + between_chars
        if chars <= room:
            room -= chars
            chosen.add(at)
            if over is not None:
                chosen.add(over)
    if not chosen:
        is_room = best is not None and max_chars >= SHORTEST_EXCERPT_CHARS
        return [(_beginning(rows[best], max_chars), False)] if best is not None and is_room else []
    return _dated(rows, sorted(chosen), is_heading, days)


def _days(rows: Sequence[str], is_heading: Sequence[bool]) -> dict[int, date]:
    days: dict[int, date] = {}
    last: date | None = None
    for at, row in enumerate(rows):
        if is_heading[at] and (day := day_of_heading(row, last)) is not None:
            days[at] = last = day
    return days


def _dated(
    rows: Sequence[str], chosen: Sequence[int], is_heading: Sequence[bool], days: dict[int, date]
) -> list[tuple[str, bool]]:
    shown: list[tuple[str, bool]] = []
    last: date | None = None
    for at in chosen:
        day = days.get(at)
        shown.append((heading(day, last) if day else rows[at], is_heading[at]))
        last = day or last
    return shown


def _beginning(row: str, max_chars: int) -> str:
    """What fits of a line, ending at a word where one ends in the second half."""
    if len(row) <= max_chars:
        return row
    head = row[: whole_letters(row, max_chars - 1)]
    words = head if row[len(head)].isspace() else head.rsplit(None, 1)[0]
    return (words if len(words) * 2 > len(head) else head).rstrip() + "…"
