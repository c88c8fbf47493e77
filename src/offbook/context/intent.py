"""What a prompt wants of memory (D9): it decides how much comes to mind and how it is told, never whether we search."""

from __future__ import annotations

import re
from typing import NamedTuple

from offbook.model.settings.sections import ContextBudget, Search
from offbook.model.turn import Intent
from offbook.search.query import Query
from offbook.search.substance import latin_chars, straight

SHORTEST_PROMPT_CHARS = 10
"""Every turn of this length searches."""
MORE = 2
"""Times as much comes to mind where it is asked for, or where the context has just changed hands."""
BROADER_SCORE = 0.75
"""Of what is least, for the first turn after a compaction (A13)."""
ASKED_PROBABILITY = 0.5
"""Of the least probability, where memory is asked for: to say nothing costs more then."""
UNASKED_SHARE = 0.4
"""Of a turn's tier, for what nobody asked for: of a persona's long messages a turn told 6,200 characters, and tells as
much of what matters in 3,100 (something of it for 61 % of 121 questions, and for 60 %)."""

_RESUMING = re.compile(
    r"\b(?:where\s+(?:were|was|are)\s+(?:we|i|you)\b(?=\W*(?:\Z|at|with|again|on|in|yesterday|last))|where\s+(?:did\s+)?we\s+(?:leave|left|stop)"
    r"|pick(?:ing)?\s+(?:this\s+|it\s+|things\s+)?(?:back\s+)?up\s+(?:where|from)|(?:continue|carry\s+on|resume|go\s+on)\s+(?:from\s+)?where"
    r"|what\s+(?:were|are)\s+we\s+(?:doing|working\s+on|on\s+about|up\s+to)|(?:lost|lose)\s+(?:the|my|our)\s+thread|catch\s+me\s+up"
    r"|(?:let'?s|can\s+we|shall\s+we)\s+(?:continue|resume|carry\s+on|pick\s+up)\b|back\s+to\s+(?:work|it|what\s+we))"
    r"|(?:继续|接着)(?:上次|之前|刚才|昨天)|(?:说|聊|做|讲)到哪|続きを|どこまで|어디까지|계속\s?하자|weiter(?:machen)?\s+wo|wo\s+waren\s+wir"
    r"|où\s+en\s+(?:étions|est)|dónde\s+(?:estábamos|nos\s+quedamos)|на\s+ч[её]м\s+мы\s+остановились",
    re.IGNORECASE,
)


class RetrievalBudget(NamedTuple):
    """How much comes to mind: how many are looked at and kept, how similar they must be, how much of each is told."""

    limit: int
    keep: int
    min_score: float | None
    """Least cosine, where that decides (A2)."""
    min_probability: float
    said_chars: int
    beside_chars: int


def intent_of(query: Query) -> Intent:
    if latin_chars(query.text) < SHORTEST_PROMPT_CHARS:
        return "brief"
    if _RESUMING.search(straight(query.text)):
        return "resume"
    return "recall" if query.wants_memory else "plain"


def retrieval_budget_for(
    intent: Intent, search: Search, tiers: ContextBudget, min_score: float, *, is_after_compaction: bool
) -> RetrievalBudget:
    """The tiers of D2 bound what is told of each: of what was asked for as much as of a recent turn, of what comes to
    mind by itself the most telling sentences."""
    is_asked = intent in ("recall", "resume")
    is_more = is_asked or is_after_compaction
    broader = BROADER_SCORE if is_after_compaction else 1.0
    return RetrievalBudget(
        limit=search.limit * (MORE if is_after_compaction else 1),
        keep=search.keep * (MORE if is_more else 1),
        min_score=min_score * broader if search.qualifies == "similarity" else None,
        min_probability=search.min_probability * broader * (ASKED_PROBABILITY if is_asked else 1),
        said_chars=tiers.recent_turn_char_limit if is_asked else int(UNASKED_SHARE * tiers.mid_turn_char_limit),
        beside_chars=tiers.mid_turn_char_limit if is_asked else int(UNASKED_SHARE * tiers.older_turn_char_limit),
    )
