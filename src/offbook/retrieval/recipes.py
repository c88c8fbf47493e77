"""Named recipes: how much each kind of evidence counts, for each kind of conversation.

People chatting and a person with an assistant are two worlds. Chat turns are short, the longer ones say more, and a
question names whose turn it is after. With an assistant the answers are long, what the *user* said is the
evidence, the message that opened an episode says what it was about, and the newest episode on a matter matters
most. Weights learnt on one collapse on the other, so the kind is noticed and the recipe chosen by it.
"""

from __future__ import annotations

import math

from offbook.retrieval.query import Query
from offbook.types import Value

SAME_LENGTH, MUCH_LONGER = 1.5, 3.0
"""An assistant's messages against the user's: up to the first it is a chat, from the second on an assistant."""
LONGEST_DIRECT_QUESTION = 16
"""Words. A longer message that ends in a question mark is a turn of a conversation, not a question to memory."""


class Recipe(Value, frozen=True):
    """Weights of the features in `evidence`."""

    name: str
    meaning: float = 0.0
    words: float = 0.0
    previous_meaning: float = 0.0
    previous_words: float = 0.0
    next_meaning: float = 0.0
    next_words: float = 0.0
    window_meaning: float = 0.0
    window_words: float = 0.0
    episode_words: float = 0.0
    episode_best: float = 0.0
    episode_meaning: float = 0.0
    length: float = 0.0
    speaker: float = 0.0
    user: float = 0.0
    question: float = 0.0
    opening: float = 0.0
    recency: float = 0.0

    def weight(self, feature: str) -> float:
        return float(getattr(self, feature))


CHAT = Recipe(
    name="chat",
    meaning=0.9,
    words=0.3,
    previous_meaning=0.2,
    previous_words=0.1,
    next_meaning=0.1,
    next_words=0.03,
    window_meaning=0.2,
    window_words=0.2,
    episode_words=0.5,
    episode_best=0.2,
    speaker=2.5,
    length=0.4,
    question=-0.4,
    opening=0.2,
)
ASSISTANT = Recipe(
    name="assistant",
    meaning=0.35,
    window_meaning=0.2,
    window_words=0.2,
    episode_words=0.3,
    episode_best=0.7,
    episode_meaning=0.2,
    user=1.2,
    opening=1.4,
    recency=1.0,
    speaker=1.0,
)
ASSISTANT_QUESTION = Recipe(
    name="assistant-question",
    meaning=0.8,
    words=0.4,
    previous_meaning=0.1,
    previous_words=0.05,
    next_meaning=0.05,
    window_meaning=0.2,
    window_words=0.2,
    episode_words=0.4,
    episode_best=0.3,
    user=0.8,
    opening=0.3,
    question=-0.5,
    recency=0.2,
    speaker=1.0,
)


def chosen_recipe(query: Query, words: int, user_chars: float | None, assistant_chars: float | None) -> Recipe:
    """By who talks here, and whether the query is a question to memory or an ordinary message.

    `words` is how many words are looked for; the others how long a message of each is, on the whole.
    """
    share = assistant_share(user_chars, assistant_chars)
    is_direct = (query.is_question or query.wants_memory) and words <= LONGEST_DIRECT_QUESTION
    other = ASSISTANT_QUESTION if is_direct and _is_one_ask(query) else ASSISTANT
    if share in (0.0, 1.0):
        return other if share else CHAT
    return _between(CHAT, other, share)


def by_words(recipe: Recipe) -> Recipe:
    """The recipe where there are no vectors: what meaning would have counted for, words count for."""
    return Recipe(
        name=f"{recipe.name} by words",
        words=recipe.words + recipe.meaning,
        previous_words=recipe.previous_words + recipe.previous_meaning,
        next_words=recipe.next_words + recipe.next_meaning,
        window_words=recipe.window_words + recipe.window_meaning,
        episode_words=recipe.episode_words + recipe.episode_best + recipe.episode_meaning,
        length=recipe.length / 2,
        speaker=recipe.speaker,
        user=recipe.user,
        question=recipe.question,
        opening=recipe.opening,
        recency=recipe.recency,
    )


def assistant_share(user_chars: float | None, assistant_chars: float | None) -> float:
    """From 0, people chatting, to 1, a person with an assistant."""
    if not user_chars or not assistant_chars:
        return 0.0
    ratio = assistant_chars / user_chars
    share = math.log(max(ratio, 1e-9) / SAME_LENGTH) / math.log(MUCH_LONGER / SAME_LENGTH)
    return min(1.0, max(0.0, share))


def _is_one_ask(query: Query) -> bool:
    return len(query.sentences) <= 1


def _between(one: Recipe, other: Recipe, share: float) -> Recipe:
    weights = {
        name: (1 - share) * one.weight(name) + share * other.weight(name)
        for name in Recipe.__struct_fields__
        if name != "name"
    }
    return Recipe(name=f"{one.name}+{other.name}", **weights)
