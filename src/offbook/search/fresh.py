"""What arrived after the index was read: found by its words alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from offbook.log.audit_chain import micros
from offbook.model.content import render, without_stand_ins
from offbook.model.memory_entry import PlacedMessage
from offbook.model.types import Message
from offbook.search.probability import QueryWords, word_signals
from offbook.search.spotting import Spotter
from offbook.search.words import MAX_TERM_CHARS, indexed_terms

if TYPE_CHECKING:
    from offbook.search.ranking import Look, Ranking


READ_CHARS = 4_000
"""Of a message, read word for word; in the rest the words are looked for."""


SEARCHED_CHARS = 16_000_000
"""Of all of them, the newest first: as much as a request may hold by default."""


MOST_SOUGHT = 32
"""Words, the longest: of a pasted page that is asked about each would be looked for in every message."""


ONLY_ONE = 4.0
"""A message that holds all words looked for counts as much as the best that was found; this, where nothing was."""


def with_fresh(
    ranking: Ranking, messages: Sequence[PlacedMessage], look: Look, wholes: Mapping[int, Message] | None = None
) -> Ranking:
    """The ranking with those of the messages that share a word, each for the share of the words it holds. `wholes`: by
    place, those that have their large texts back."""
    from offbook.search.ranking import Hit

    asked = QueryWords.of(look.query.text, look.terms)
    known = {hit.place for hit in ranking.hits}
    best = max((hit.score for hit in ranking.hits), default=ONLY_ONE)
    wanted = set(look.terms)
    spotter = Spotter(sorted(wanted, key=len)[-MOST_SOUGHT:])
    left = SEARCHED_CHARS
    fresh = []
    for placed in reversed(messages):
        said_at = micros(placed.logged.message.ts or placed.logged.received_at)
        if placed.place in known or (look.known_at is not None and said_at > look.known_at):
            continue
        message = (wholes or {}).get(placed.place, placed.logged.message)
        said = without_stand_ins(render(message))
        held = wanted & set(indexed_terms(said[:READ_CHARS]))
        if len(said) > READ_CHARS and not held >= spotter.terms and left > 0:
            # The word that stands across the bound is read whole.
            rest = said[READ_CHARS - MAX_TERM_CHARS :][:left]
            held |= spotter.held(rest, without=held)
            left -= len(rest)
        if held:
            share = len(held) / len(wanted)
            is_held = np.array([[term in held for term in look.terms]])
            signals = word_signals(asked, is_held, np.ones(len(look.terms)))
            fresh.append(
                Hit(
                    row=-1,
                    place=placed.place,
                    ts=said_at,
                    arrived=micros(placed.logged.received_at),
                    score=best * share if best > 0 else best - 1 + share,
                    similarity=None,
                    found_by=["text"],
                    ranks={},
                    evidence={"words": best * share},
                    coverage=share,
                    signals={
                        **{name: float(values[0]) for name, values in signals.items()},
                        "best_share": float(signals["share"][0]),
                        "score": best * share,
                        "lead": 1.0,
                        "user": float(message.role == "user"),
                        "chars": math.log1p(len(said)),
                        "terms": math.log1p(len(look.terms)),
                        "memory": math.log1p(len(messages)),
                    },
                    by_words=True,
                )
            )
    words = list(dict.fromkeys([*ranking.words, *(term for term in look.terms if fresh and term in spotter.terms)]))
    hits = sorted([*ranking.hits, *fresh], key=lambda hit: -hit.score)[: look.limit]
    return replace(ranking, hits=hits, words=words)
