from __future__ import annotations

import math

import numpy as np
import pytest

from offbook.models.word_rarity import RAREST, rarity_in_general
from offbook.search.index.rows import word_numbers
from offbook.search.probability import QueryWords, capitalised, probability, spoken, standing, word_signals
from offbook.search.probability_weights import BY_WORDS, WITH_VECTORS
from offbook.search.words import query_terms

PROMPT = "Help me plan the birthday party for Roswitha, with snacks for twelve kids."
NAME = query_terms("Roswitha")[0]


def rarity_of(text: str) -> list[float]:
    return rarity_in_general(word_numbers(query_terms(text))).tolist()


def test_a_name_is_rarer_than_a_word_that_everybody_uses() -> None:
    write, summary, thornbury = rarity_of("write summary thornbury")
    assert write < summary < thornbury == RAREST
    assert rarity_of("warum")[0] < rarity_of("Roswitha")[0]


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        (PROMPT, {"help": 0.5, NAME: 1.0}),
        ("Joaquin visits next week. Dinner with him?", {"joaquin": 0.5, "dinner": 0.5}),
        # Where many words have capitals they say little: German, headings.
        ("Wie reinige ich die Dachrinne mit der Leiter?", {"wie": 0.5, "dachrinn": 0.5, "leiter": 0.5}),
        ("为什么天空是蓝色的？", {}),
    ],
)
def test_what_is_written_as_names_are(text: str, weights: dict[str, float]) -> None:
    assert {term: capitalised(text).get(term) for term in weights} == weights


def test_a_shared_name_says_more_than_a_shared_everyday_word() -> None:
    terms = query_terms(PROMPT)
    asked = QueryWords.of(PROMPT, terms)
    held = np.array([[term == NAME for term in terms], [term == "help" for term in terms], [False] * len(terms)])
    found = word_signals(asked, held, np.ones(len(terms)))
    for name in ("name", "rarest", "share"):
        assert found[name][0] > found[name][1] >= found[name][2] == 0.0
    everywhere = word_signals(asked, held, np.zeros(len(terms)))
    assert everywhere["name"][0] == everywhere["rarest"][0] == 0.0


def test_the_first_stands_out_by_what_is_below_it() -> None:
    found = standing(np.array([9.0, 5.0, 5.0, 4.0, 4.0]))
    assert found["lead"][0] == 5.0
    assert found["behind"].tolist() == [0.0, 4.0, 4.0, 5.0, 5.0]
    assert found["place"][0] == 0.0


def test_what_is_said_for_good_states_something() -> None:
    fact = spoken("My daughter Ines is allergic to peanuts.", is_user=True)
    assert fact["states"] > spoken("ok, thanks!", is_user=True)["states"]
    assert spoken("", is_user=True) == {"states": 0.0}


@pytest.mark.parametrize("by_words", [False, True])
def test_nothing_shared_is_no_memory_and_a_name_makes_one_likelier(by_words: bool) -> None:
    weights = BY_WORDS if by_words else WITH_VECTORS
    nothing = {"memory": 3.0, "user": 1.0, "states": 0.9, "chars": 4.5, "lead": 0.5, "score": 1.0, "behind": 1.0}
    shared = {"name": 1.0, "rarest": 0.5, "share": 0.3, "best_share": 0.3, "score": 6.0, "behind": 0.0, "lead": 3.0}
    assert probability(nothing, by_words=by_words) < 0.12
    assert probability({**nothing, **shared}, by_words=by_words) > 3 * probability(nothing, by_words=by_words)
    assert set(weights) >= {"bias", "share", "rarest", "score", "user", "states"}


def test_what_holds_all_that_is_asked_comes_to_mind_however_large_the_memory_is() -> None:
    held = {"share": 1.0, "rarest": 0.5, "states": 1.0, "terms": math.log1p(4), "memory": math.log1p(100_000)}
    for by_words in (True, False):
        assert probability(held, by_words=by_words) >= 0.5
        for missing in ({"share": 0.4}, {"rarest": 0.0}, {"states": 0.0}):
            assert probability(held | missing, by_words=by_words) < 0.12


def test_one_fact_among_messages_that_are_all_alike_comes_to_mind() -> None:
    """It stands out by twenty deviations, more than anything that was fitted: that must not speak against it."""
    alone = {
        "meaning": 19.5,
        "words": 22.0,
        "window_meaning": 6.9,
        "episode_words": 1.6,
        "score": 20.6,
        "lead": 5.0,
        "cosine": 0.82,
        "above": 0.75,
        "best_above": 0.75,
        "share": 1.0,
        "best_share": 1.0,
        "terms": math.log1p(3),
        "memory": math.log1p(248),
        "chars": math.log1p(65),
        "user": 1.0,
        "states": 0.3,
    }
    assert probability(alone, by_words=False) > 0.2
