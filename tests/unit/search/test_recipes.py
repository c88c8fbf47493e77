from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from offbook.models import minilm
from offbook.search.evidence import FEATURES
from offbook.search.query import read_query
from offbook.search.ranking_weights import BY_WORDS, WITH_VECTORS
from offbook.search.recall import _is_read
from offbook.search.weights import (
    ASSISTANT,
    ASSISTANT_QUESTION,
    CHAT,
    LONGEST_DIRECT_QUESTION,
    assistant_share,
    chosen_recipe,
)

QUESTION = read_query("Where did I park the car?")
TURN = read_query("I parked the car behind the station today.")


@pytest.mark.parametrize(
    ("user_chars", "assistant_chars", "share"),
    [
        (None, None, 0.0),
        (100.0, None, 0.0),
        (None, 100.0, 0.0),
        (0.0, 100.0, 0.0),
        (100.0, 100.0, 0.0),
        (100.0, 150.0, 0.0),
        (100.0, 300.0, 1.0),
        (100.0, 5_000.0, 1.0),
        (5_000.0, 1.0, 0.0),
    ],
)
def test_who_talks_here_shows_in_the_lengths(
    user_chars: float | None, assistant_chars: float | None, share: float
) -> None:
    assert assistant_share(user_chars, assistant_chars) == pytest.approx(share)


@given(st.floats(1, 1e6), st.floats(1, 1e6), st.floats(1, 1e6))
def test_longer_answers_never_make_it_less_of_an_assistant(user: float, one: float, other: float) -> None:
    shorter, longer = sorted((one, other))
    assert 0.0 <= assistant_share(user, shorter) <= assistant_share(user, longer) <= 1.0


def test_people_chatting_have_one_recipe() -> None:
    assert chosen_recipe(QUESTION, 3, 80.0, 90.0).name == CHAT
    assert chosen_recipe(QUESTION, 3, 80.0, 90.0) == chosen_recipe(TURN, 5, 80.0, 90.0)
    assert chosen_recipe(QUESTION, 3, 80.0, 90.0).weights == WITH_VECTORS[CHAT]


def test_with_an_assistant_a_question_to_memory_is_no_ordinary_turn() -> None:
    assert chosen_recipe(QUESTION, 3, 80.0, 900.0).name == ASSISTANT_QUESTION
    assert chosen_recipe(TURN, 5, 80.0, 900.0).name == ASSISTANT
    assert chosen_recipe(QUESTION, LONGEST_DIRECT_QUESTION + 1, 80.0, 900.0).name == ASSISTANT
    several = read_query(
        "I moved to the old harbour town last year. My new house has a red door. Where is my car parked?"
    )
    assert len(several.sentences) > 1
    assert chosen_recipe(several, 9, 80.0, 900.0).name == ASSISTANT


@pytest.mark.parametrize("ratio", [1.6, 2.0, 2.5, 2.9])
def test_between_the_two_every_weight_is_between_theirs(ratio: float) -> None:
    recipe = chosen_recipe(QUESTION, 3, 100.0, 100.0 * ratio)
    share = assistant_share(100.0, 100.0 * ratio)
    assert recipe.name == "chat+assistant-question"
    for feature in FEATURES:
        one, other = WITH_VECTORS[CHAT][feature], WITH_VECTORS[ASSISTANT_QUESTION][feature]
        assert recipe.weight(feature) == pytest.approx((1 - share) * one + share * other)


def test_who_asks_for_the_agents_own_words_is_not_given_the_users() -> None:
    asked = read_query("What did you recommend for the harbour?")
    assert asked.asks_assistant
    recipe = chosen_recipe(asked, 2, 80.0, 900.0)
    assert recipe.weight("user") == -WITH_VECTORS[ASSISTANT_QUESTION]["user"] < 0


def test_a_recipe_weighs_features_that_there_are() -> None:
    for recipes in (WITH_VECTORS, BY_WORDS):
        assert set(recipes) == {CHAT, ASSISTANT, ASSISTANT_QUESTION}
    for weights in WITH_VECTORS.values():
        assert set(weights) == set(FEATURES)


def test_without_vectors_nothing_is_weighed_that_needs_them() -> None:
    for weights in BY_WORDS.values():
        assert {name for name in FEATURES if "meaning" in name or name == "episode_best"} == set(FEATURES) - set(
            weights
        )
    plain = chosen_recipe(QUESTION, 3, 80.0, 90.0, by_words=True)
    assert plain.name == "chat by words"
    assert plain.weight("words") > WITH_VECTORS[CHAT]["words"] > plain.weight("meaning") == 0


class OfFingerprint(NamedTuple):
    fingerprint: str
    name: str = "a model"
    dimensions: int = 4

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise AssertionError(texts)

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("Where did we put the keys?", True),
        ("Wo liegen die Schlüssel, bitte?", True),
        ("旧服务器什么时候关的?", True),
        ("Когда мы выключили старый сервер?", True),
        ("Πότε κλείσαμε τον παλιό διακομιστή;", False),
    ],
)
def test_which_language_is_another_one_depends_on_the_model(text: str, reads: bool) -> None:
    assert _is_read(OfFingerprint(minilm.fingerprint()), text) == reads
    assert _is_read(OfFingerprint("one that reads many languages"), text)
