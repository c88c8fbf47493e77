"""Summaries without a model: what was said, in whole sentences, those that say the most first.

Everything is a function of the messages: the same ones give the same text, offline, in milliseconds. A message is
analysed once (`analyse`), a stretch of messages ranked once (`digest`), and any number of stretches then share any
room there is (`fit`), so that it goes where the substance is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import NamedTuple

from offbook.context.layout import Order, filled, ordered
from offbook.context.sentence_ranking import Candidate, RankedSentence, Ranking, ranking
from offbook.context.sentence_weights import WeighedSentence, weighed_sentences
from offbook.context.summary_lines import SummaryLines, brief, cut, merged, ranked
from offbook.context.summary_lines import laid_out as _laid_out

__all__ = [
    "Analysis",
    "Digest",
    "Order",
    "RankedSentence",
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


class SpokenMessage(NamedTuple):
    """A message. `speaker` is as the lines are to say it: `They`, `I`, a name, or `tool NAME`."""

    seq: int
    speaker: str
    text: str
    at: datetime | None


class Analysis(NamedTuple):
    """A message in sentences. Depends on nothing else, so it is worth keeping."""

    seq: int
    speaker: str
    day: date | None
    sentences: tuple[WeighedSentence, ...]


Digest = Ranking
"""A stretch of messages as ranked lines: every shorter form is a beginning of the ranking."""


def analyse(said: SpokenMessage) -> Analysis:
    speaker = " ".join(said.speaker.split())
    day = said.at.date() if said.at is not None else None
    return Analysis(said.seq, speaker, day, tuple(weighed_sentences(said.text, speaker)))


def digest(analyses: Sequence[Analysis]) -> Digest:
    candidates = [
        Candidate(one.seq, place, one.speaker, one.day, sentence)
        for one in analyses
        for place, sentence in enumerate(one.sentences)
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
