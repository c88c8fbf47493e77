"""Named recipes: how much each kind of evidence counts, for each kind of conversation.

People chatting and a person with an assistant are two worlds. Chat turns are short, the longer ones say more, and a
question names whose turn it is after. With an assistant the answers are long, what the *user* said is the
evidence, the message that opened an episode says what it was about, and the newest episode on a matter matters
most. Weights learnt on one collapse on the other, so the kind is noticed and the recipe chosen by it. The weights
themselves are in `ranking_weights`, fitted by `benchmarks/quality/fit_ranking.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offbook.model.types import Value
from offbook.search.evidence import FEATURES, Evidence
from offbook.search.index.rows import BOILERPLATE, DENIAL, MEMORY_QUESTION, QUESTION, SYSTEM, TOOL
from offbook.search.query import Query
from offbook.search.ranking_weights import BY_WORDS, WITH_VECTORS

SAME_LENGTH, MUCH_LONGER = 1.5, 3.0
"""An assistant's messages against the user's: up to the first it is a chat, from the second on an assistant."""
CHAT, ASSISTANT, ASSISTANT_QUESTION = "chat", "assistant", "assistant-question"
LONGEST_DIRECT_QUESTION = 16
"""Words. A longer message that ends in a question mark is a turn of a conversation, not a question to memory."""


class Recipe(Value, frozen=True):
    """Weights of the features in `evidence`, and what they are called in an explanation."""

    name: str
    weights: dict[str, float]

    def weight(self, feature: str) -> float:
        return self.weights.get(feature, 0.0)


def chosen_recipe(
    query: Query, words: int, user_chars: float | None, assistant_chars: float | None, *, by_words: bool = False
) -> Recipe:
    """By who talks here, and whether the query is a question to memory or an ordinary message.

    `words` is how many words are looked for; the others how long a message of each is, on the whole; `by_words` where
    there are no vectors, or none of a model that reads the query's language.
    """
    share = assistant_share(user_chars, assistant_chars)
    is_direct = (query.is_question or query.wants_memory) and words <= LONGEST_DIRECT_QUESTION
    other = ASSISTANT_QUESTION if is_direct and _is_one_ask(query) else ASSISTANT
    fitted = BY_WORDS if by_words else WITH_VECTORS
    names = [name for name, part in ((CHAT, 1 - share), (other, share)) if part]
    weights = {
        feature: (1 - share) * chat + share * assistant
        for feature, chat, assistant in ((one, fitted[CHAT][one], fitted[other][one]) for one in fitted[CHAT])
    }
    if query.asks_assistant and other == ASSISTANT_QUESTION:
        weights["user"] *= -1  # what the agent itself said is asked for
    return Recipe(name="+".join(names) + (" by words" if by_words else ""), weights=weights)


def is_prose(recipe: Recipe) -> bool:
    """Whether it is for an ordinary message to an assistant, not for a question."""
    return ASSISTANT in recipe.name and ASSISTANT_QUESTION not in recipe.name


def assistant_share(user_chars: float | None, assistant_chars: float | None) -> float:
    """From 0, people chatting, to 1, a person with an assistant."""
    if not user_chars or not assistant_chars:
        return 0.0
    ratio = assistant_chars / user_chars
    share = math.log(max(ratio, 1e-9) / SAME_LENGTH) / math.log(MUCH_LONGER / SAME_LENGTH)
    return min(1.0, max(0.0, share))


def _is_one_ask(query: Query) -> bool:
    return len(query.sentences) <= 1


# ── The pure steps of ranking: what speaks for each candidate, and which of several alike is s ──

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Span = tuple[float, float]
"""Microseconds since 1970, from and up to; either may be infinite."""

IN_TIME = 3.0
NEAR_TIME = 1.0
DAY = 86_400_000_000
NEAR_DAYS = 2
"""What happened on a day is often told the day after."""
ECHO = 0.85
WITHOUT_SUBSTANCE = {DENIAL: -8.0, MEMORY_QUESTION: -8.0, BOILERPLATE: -3.0}
"""Enough to stand behind whatever says anything (D7)."""
TOOL_RESULT = -0.5
"""What a tool printed, or the host told the agent, is seldom what is remembered."""
SAME = 0.9
"""Cosine above which two messages say the same, and one is shown (A2)."""
IDENTICAL = 0.995
"""From here on, the same words."""
ABOUT_THE_SAME = 0.8
EQUAL_SCORES = 0.5
"""Scores this close are equals: the newer goes first (D5)."""


def weighed(evidence: Evidence, recipe: Recipe) -> Floats:
    """The recipe's sum."""
    total = np.zeros(len(evidence.rows))
    for name in FEATURES:
        if weight := recipe.weight(name):
            total += weight * evidence.features[name]
    return total


def timely(ts: NDArray[Any], spans: Sequence[tuple[Span, bool]]) -> Floats:
    """For what was said in the time asked about, and a little for what was said just before or soon after."""
    if not spans:
        return np.zeros(len(ts))
    best = np.full(len(ts), 0.0)
    for (start, end), is_exact in spans:
        inside = (ts >= start) & (ts < end)
        # Before the move is before it; but what happened on a day is often told the day after.
        is_closed = np.isfinite(start) and np.isfinite(end)
        near = is_closed & (ts >= start - DAY) & (ts < end + NEAR_DAYS * DAY)
        weight = IN_TIME if is_exact else NEAR_TIME
        best = np.maximum(best, np.where(inside, weight, np.where(near, min(weight, NEAR_TIME), 0.0)))
    return best


def substantial(rows: NDArray[Any]) -> Floats:
    """Denials, questions about memory and greetings stand behind what says something."""
    total = np.where(np.isin(rows["role"], (TOOL, SYSTEM)), TOOL_RESULT, 0.0)
    for flag, penalty in WITHOUT_SUBSTANCE.items():
        total += np.where(rows["flags"] & flag, penalty, 0.0)
    return total


def echoing(rows: NDArray[Any], evidence: Evidence) -> Floats:
    """An earlier question that asks the same resembles the query more than any answer does."""
    is_echo = ((rows["flags"] & QUESTION) > 0) & evidence.has_vector & (evidence.similarity > ECHO)
    return np.where(is_echo, WITHOUT_SUBSTANCE[MEMORY_QUESTION], 0.0)


def newer_first(scores: Floats, ts: NDArray[Any], likeness: NDArray[np.float32]) -> Floats:
    """Of two that are about the same thing and score the same, the newer moves up before the older one."""
    lead = scores[:, None] - scores[None, :]
    is_rival = (likeness >= ABOUT_THE_SAME) & (ts[None, :] > ts[:, None]) & (lead >= 0) & (lead < EQUAL_SCORES)
    moved = scores.copy()
    for older in np.flatnonzero(is_rival.any(axis=1)):
        rivals = np.flatnonzero(is_rival[older])
        for step, rival in enumerate(rivals[np.argsort(ts[rivals], kind="stable")], 1):
            moved[rival] = max(moved[rival], moved[older] + 1e-6 * step)
    return moved


def without_near_duplicates_of_other_numbers(
    likeness: NDArray[np.float32], numbers: NDArray[Any]
) -> NDArray[np.float32]:
    """Two weights of two days are not the same, however alike they sound."""
    return np.where(numbers[:, None] == numbers[None, :], likeness, np.minimum(likeness, SAME))


def once_each(order: Ints, likeness: NDArray[np.float32], rows: NDArray[Any]) -> tuple[Ints, dict[int, int]]:
    """Without those that say the same as a better one; and for each left out, the one that stands for it.

    Of two that are almost word for word the same, of the same side, the newer stands for both: what differs may be a
    correction that no rule has noticed.
    """
    has_twin = ((likeness > SAME).sum(axis=1) > 1).tolist()
    kept: list[int] = []
    stands_for: dict[int, int] = {}
    for at in order.tolist():
        twins = [one for one in kept if likeness[one, at] > SAME] if has_twin[at] else []
        if not twins:
            kept.append(at)
        elif all(likeness[one, at] < IDENTICAL and _restates(rows[at], rows[one]) for one in twins):
            kept[kept.index(twins[0])] = at
            kept = [one for one in kept if one not in twins]
            stands_for = {one: at if other in twins else other for one, other in stands_for.items()}
            stands_for |= dict.fromkeys(twins, at)
        else:
            stands_for[at] = twins[0]
    return np.array(kept, np.int64), stands_for


def _restates(new: Any, old: Any) -> bool:
    return bool(new["role"] == old["role"] and new["ts"] > old["ts"])
