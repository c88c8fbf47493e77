"""The text of a summary as lines in order of rank: shortened without its source, and merged with others.

A text may be a digest written out or the work of a model. Headings are days (`[8 May 2023]`) or, in what a model
wrote, Markdown's; a heading is shown where a line under it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from offbook.context.layout import LEFT_OUT_BETWEEN, filled
from offbook.context.sentence_ranking import Candidate, Ranking, ranking
from offbook.context.sentence_weights import weighed, weighed_sentences
from offbook.context.time_text import day_of_heading, heading
from offbook.model.sentences import parts

BRIEF_CHARS = 300
SHORTEST_EXCERPT_CHARS = 40
"""In less room than this, the beginning of a line says nothing."""
LONGEST_LINE_CHARS = 200
"""Of a model's text: longer ones are cut into their sentences."""
BETWEEN_BRIEF_LINES = " / "
OLDEST_SHARE = 0.7
"""What the oldest of several summaries counts, of what the newest does."""

_SPEAKER = re.compile(r"([^\s:\[\]#*-][^:\n]{0,39}): (?=\S)")


class SummaryLines(NamedTuple):
    text: str
    """Lines joined by line ends."""
    rank: list[int]
    """Their indexes, best first; a heading comes right before the best line under it."""


def laid_out(one: Ranking, max_chars: int) -> SummaryLines:
    """Ranked sentences as a text to be stored."""
    pages, chosen = filled([one], max_chars)
    order = {(line.seq, line.place): at for at, (_, line) in enumerate(chosen)}
    rows = pages[0].rows()
    best = [min([order[line.seq, line.place] for line in lines], default=-1) for _, lines in rows]
    by_rank = sorted((at for at, (_, lines) in enumerate(rows) if lines), key=best.__getitem__)
    headed = _headed([not lines for _, lines in rows])
    return SummaryLines("\n".join([text for text, _ in rows]), _with_headings(by_rank, headed))


def ranked(text: str) -> SummaryLines:
    """A model's text in lines. They may end elsewhere than they did; every word stays, in its order."""
    rows = [part for row in text.splitlines() for part in _sentences(row.strip())]
    is_heading = [_is_heading(row) for row in rows]
    candidates = [Candidate(at, 0, "", None, weighed(row)) for at, row in enumerate(rows) if not is_heading[at]]
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
    for number, text in enumerate(texts, 1):
        day: date | None = None
        recency = OLDEST_SHARE + (1 - OLDEST_SHARE) * number / len(texts)
        for row in text.splitlines():
            if (found := day_of_heading(row.strip(), day)) is not None:
                day = found
                continue
            seq += 1
            candidates += _said_in(row.strip(), seq, day, recency)
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
    return parts(row)


def _said_in(row: str, seq: int, day: date | None, recency: float) -> list[Candidate]:
    match = _SPEAKER.match(row)
    speaker, said = (match[1], row[match.end() :]) if match else ("", row)
    found: list[Candidate] = []
    place = 0
    for part in said.split(LEFT_OUT_BETWEEN) if speaker else [said]:
        read = (
            weighed_sentences(part, speaker, is_lasting=True) if speaker else [weighed(one) for one in _sentences(part)]
        )
        for one in read:
            found.append(Candidate(seq, place, speaker, day, one._replace(factor=one.factor * recency)))
            place += 1
        place += 1  # what was left out is not there
    return found


def _is_heading(row: str) -> bool:
    return day_of_heading(row, date.min) is not None or _is_markdown_heading(row)


def _is_markdown_heading(row: str) -> bool:
    words = row.removesuffix(":")
    is_bold = len(words) > 4 and words.startswith("**") and words.endswith("**") and "*" not in words[2:-2]
    return is_bold or (row.startswith("#") and row.lstrip("#")[:1].isspace())


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


def whole_letters(text: str, at: int) -> int:
    """Where to cut at most `at` characters in, so that no letter with its marks and no emoji is broken."""
    if at >= len(text):
        return len(text)
    start = at
    while at > 0 and start - at < 32 and _continues(text, at):
        at -= 1
    return at or start


def _continues(text: str, at: int) -> bool:
    character, before = text[at], text[at - 1]
    if before == "\u200d" or character in "\u200d\ufe0e\ufe0f" or unicodedata.combining(character):
        return True
    if "\U0001f3fb" <= character <= "\U0001f3ff" or unicodedata.category(character) in ("Mn", "Mc", "Me"):
        return True
    return "\U0001f1e6" <= character <= "\U0001f1ff" and "\U0001f1e6" <= before <= "\U0001f1ff"
