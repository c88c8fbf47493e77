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

from offbook.context.clause_ranking import Candidate, RankedClause, Ranking, ranking
from offbook.context.layout import Order, filled, ordered
from offbook.context.summary_lines import SummaryLines, brief, cut, merged, ranked
from offbook.context.summary_lines import laid_out as _laid_out
from offbook.context.telegraph import Clause, clauses

__all__ = [
    "Analysis",
    "Digest",
    "Order",
    "RankedClause",
    "SpokenMessage",
    "SummaryLines",
    "analyse",
    "brief",
    "cut",
    "digest",
    "fit",
    "merged",
    "ordered",
    "ranked",
    "written",
]

OWN, TOOL = "I", "tool "
"""Who speaks: the agent itself, a tool; anybody else is somebody."""
TOOL_FACTOR = 0.2
"""What a tool printed counts less than what somebody said: it can be asked again."""
TROUBLE_FACTOR = 4.0
"""But for what went wrong."""
OWN_FACTOR = 0.8
"""What the agent said itself counts less than what it was told."""
ORDINARY_CHARS = 2_000
"""Longer messages say more in all, but less with each of their words: paste, listings, essays."""

_TROUBLE = re.compile(r"error|exception|fail|refused|denied|fatal|panic|not found|warning", re.IGNORECASE)


class SpokenMessage(NamedTuple):
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


Digest = Ranking
"""A stretch of messages as ranked lines: every shorter form is a beginning of the ranking."""


def analyse(said: SpokenMessage) -> Analysis:
    """Of a very long message its beginning and its end (`telegraph.FIRST_CHARS`, `LAST_CHARS`)."""
    day = said.at.date() if said.at is not None else None
    found = clauses(said.text, day)
    share = min(1.0, (ORDINARY_CHARS / max(1, len(said.text))) ** 0.5)
    if said.speaker.startswith(TOOL):
        share *= TOOL_FACTOR
        found = [_weighed(clause, TROUBLE_FACTOR) if _TROUBLE.search(clause.text) else clause for clause in found]
    elif said.speaker == OWN:
        share *= OWN_FACTOR
    if share < 1:
        found = [_weighed(clause, share) for clause in found]
    return Analysis(said.seq, " ".join(said.speaker.split()), day, tuple(found))


def _weighed(clause: Clause, share: float) -> Clause:
    return Clause(clause.text, clause.terms, clause.factor * share)


def digest(analyses: Sequence[Analysis]) -> Digest:
    candidates = [
        Candidate(one.seq, place, one.speaker, one.day, clause)
        for one in analyses
        for place, clause in enumerate(one.clauses)
    ]
    return ranking(candidates)


def fit(
    digests: Sequence[Digest],
    max_chars: int,
    *,
    before_seq: int | None = None,
    separator_chars: int = 2,
    order: Order | None = None,
) -> list[str]:
    """A text for each digest, together at most `max_chars` long, the separators before those not empty included.

    Lines are chosen over all digests by what they add. With `before_seq`, only of messages before that one. `order` is
    that of the first of the digests, where it was kept (`layout.ordered`).
    """
    pages, _ = filled(digests, max_chars, before_seq=before_seq, separator_chars=separator_chars, order=order)
    return [page.text() for page in pages]


def written(one: Digest, max_chars: int) -> SummaryLines:
    """A digest as the text of a summary."""
    return _laid_out(one, max_chars)
