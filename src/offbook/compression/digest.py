"""Summaries without a model: what was said, in telegraph style, the clauses that say the most first.

Everything is a function of the messages: the same ones give the same text, offline, in milliseconds. A message is
analysed once (`analyse`), a stretch of messages ranked once (`digest`), and any number of stretches then share any
room there is (`fit`), so that it goes where the substance is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import NamedTuple

from offbook.compression.layout import filled
from offbook.compression.lines import Lines, brief, cut, merged, ranked
from offbook.compression.lines import laid_out as _laid_out
from offbook.compression.ranking import Candidate, Line, ranking
from offbook.compression.telegraph import Clause, clauses

__all__ = [
    "Analysis",
    "Digest",
    "Line",
    "Lines",
    "Said",
    "analyse",
    "brief",
    "cut",
    "digest",
    "fit",
    "merged",
    "ranked",
    "written",
]

TOOL = "tool "
TOOL_FACTOR = 0.2
"""What a tool printed counts less than what somebody said: it can be asked again."""
TROUBLE_FACTOR = 4.0
"""But for what went wrong."""
ORDINARY_CHARS = 2_000
"""Longer messages say more in all, but less with each of their words: paste, listings, essays."""

_TROUBLE = re.compile(r"error|exception|fail|refused|denied|fatal|panic|not found|warning", re.IGNORECASE)


class Said(NamedTuple):
    """A message. `speaker` is as the lines are to say it: `They`, `I`, a name, or `tool NAME`."""

    seq: int
    speaker: str
    text: str
    at: datetime | None


class Analysis(NamedTuple):
    """A message in clauses. Depends on nothing else, so it is worth keeping."""

    seq: int
    speaker: str
    day: date | None
    clauses: tuple[Clause, ...]


class Digest(NamedTuple):
    """A stretch of messages as ranked lines: every shorter form is a beginning of the ranking."""

    lines: tuple[Line, ...]


def analyse(said: Said) -> Analysis:
    """Of a very long message its beginning and its end (`telegraph.FIRST_CHARS`, `LAST_CHARS`)."""
    day = said.at.date() if said.at is not None else None
    found = clauses(said.text, day)
    share = min(1.0, (ORDINARY_CHARS / max(1, len(said.text))) ** 0.5)
    if said.speaker.startswith(TOOL):
        found = [_printed(clause, share * TOOL_FACTOR) for clause in found]
    elif share < 1:
        found = [clause._replace(factor=clause.factor * share) for clause in found]
    return Analysis(said.seq, " ".join(said.speaker.split()), day, tuple(found))


def _printed(clause: Clause, share: float) -> Clause:
    is_trouble = _TROUBLE.search(clause.text) is not None
    return clause._replace(factor=clause.factor * share * (TROUBLE_FACTOR if is_trouble else 1.0))


def digest(analyses: Sequence[Analysis]) -> Digest:
    candidates = [
        Candidate(one.seq, place, one.speaker, one.day, clause)
        for one in analyses
        for place, clause in enumerate(one.clauses)
    ]
    return Digest(tuple(ranking(candidates)))


def fit(
    digests: Sequence[Digest], max_chars: int, *, before_seq: int | None = None, separator_chars: int = 2
) -> list[str]:
    """A text for each digest, together at most `max_chars` long, the separators before those not empty included.

    Lines are chosen over all digests by what they add. With `before_seq`, only of messages before that one.
    """
    rankings = [one.lines for one in digests]
    pages, _ = filled(rankings, max_chars, before_seq=before_seq, separator_chars=separator_chars)
    return [page.text() for page in pages]


def written(one: Digest, max_chars: int) -> Lines:
    """A digest as the text of a summary."""
    return _laid_out(one.lines, max_chars)
