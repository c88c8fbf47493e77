from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.log.audit_chain import micros
from offbook.search.evidence import (
    FEATURES,
    LENGTH_SHARE,
    MEASURED,
    SETTING,
    TERM_SATURATION,
    SaidWords,
    count_in_rows,
    rarity,
    term_scores,
)
from offbook.search.index.agent_index import AgentIndex
from offbook.search.index.rows import QUESTION, USER, word_numbers
from tests.unit.search.index.sayings import NOON, said
from tests.unit.search.small_index import asked_for, evidence, setting, small_index, unit

WORDS = ["cat", "dog", "fish", "tree", "boat"]
QUERY = unit(1, 0)
# Two episodes of session 1 (three hours apart), one of session 2.
SAID = [
    said(11, "cat cat dog", session=1, minutes=0),
    said(12, "fish", session=1, minutes=1, role="assistant"),
    said(13, "tree tree cat boat boat boat", session=2, minutes=2),
    said(14, "", session=1, minutes=3),
    said(15, "dog boat", session=1, minutes=200),
    said(16, "cat fish tree", session=1, minutes=201),
]
NEARNESS = {11: 0.9, 12: 0.1, 13: 0.5, 14: 0.2, 15: 0.7, 16: 0.3}
VECTORS = {place: unit(near, math.sqrt(1 - near**2)) for place, near in NEARNESS.items()}
EVERYBODY = range(6)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[AgentIndex]:
    opened = small_index(tmp_path / "index", SAID, VECTORS)
    yield opened
    opened.close()


def plain_bm25(texts: list[list[str]], words: list[str], idf: list[float], average: float) -> list[float]:
    """As in the books."""
    scores = []
    for text in texts:
        norm = TERM_SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * len(text) / average)
        counts = [text.count(word) for word in words]
        gains = [count * (TERM_SATURATION + 1) / (count + norm) for count in counts if count]
        weights = [weight for weight, count in zip(idf, counts, strict=True) if count]
        scores.append(sum(gain * weight for gain, weight in zip(gains, weights, strict=True)))
    return scores


texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=8), min_size=1, max_size=12)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60, deadline=None
)
@given(texts, st.lists(st.sampled_from([*WORDS, "whale"]), min_size=1, max_size=4, unique=True))
def test_bm25_is_that_of_the_books(
    tmp_path_factory: pytest.TempPathFactory, said_words: list[list[str]], asked: list[str]
) -> None:
    messages = [said(place, " ".join(words)) for place, words in enumerate(said_words, 1)]
    index = small_index(tmp_path_factory.mktemp("index") / "a", messages)
    rows, numbers = np.arange(len(messages)), word_numbers(asked)
    held = [sum(word in words for words in said_words) for word in asked]
    idf = [math.log(1 + (len(messages) - number + 0.5) / (number + 0.5)) for number in held]
    assert count_in_rows(index.rows, rows, numbers).tolist() == held
    assert rarity(np.array(held), len(messages)).tolist() == pytest.approx(idf)
    counts = SaidWords(index.rows, rows).counts(numbers)
    assert counts.tolist() == [[words.count(word) for word in asked] for words in said_words]
    average = max(sum(map(len, said_words)) / len(messages), 1.0)
    expected = plain_bm25(said_words, asked, idf, average)
    assert term_scores(index.rows, rows, numbers, np.array(idf)).tolist() == pytest.approx(expected)
    index.close()


def test_nothing_looked_for_and_nobody_looked_at(index: AgentIndex) -> None:
    nobody = np.empty(0, np.int64)
    assert SaidWords(index.rows, nobody).counts(word_numbers(["cat"])).shape == (0, 1)
    assert SaidWords(index.rows, np.arange(6)).counts(word_numbers([])).shape == (6, 0)
    assert term_scores(index.rows, nobody, word_numbers(["cat"]), np.array([1.0])).tolist() == []


def test_a_common_word_weighs_less_than_a_rare_one_and_never_less_than_nothing() -> None:
    weights = rarity(np.array([0, 1, 10, 99, 100, 500]), 100)
    assert (np.diff(weights) <= 0).all()
    assert (weights > 0).all()


def test_scores_are_counted_in_standard_deviations_of_the_sample(index: AgentIndex) -> None:
    found = evidence(index, asked_for(["cat"], [1.0], QUERY), EVERYBODY, EVERYBODY)
    assert set(found.features) == set(FEATURES)
    for name in MEASURED:
        assert found.features[name].mean() == pytest.approx(0, abs=1e-6), name
        assert found.features[name].std() == pytest.approx(1, abs=1e-6), name
    near = np.array(list(NEARNESS.values()))
    assert found.similarity.tolist() == pytest.approx(near, abs=0.01)
    assert found.features["meaning"].tolist() == pytest.approx((near - near.mean()) / near.std(), abs=0.05)


def test_where_all_are_the_same_nobody_stands_out(index: AgentIndex) -> None:
    found = evidence(index, asked_for(["whale"], [1.0]), EVERYBODY, EVERYBODY)
    for name in ("words", "window_words", "episode_words", "meaning"):
        assert found.features[name].tolist() == [0.0] * 6, name
    assert not found.has_vector.any()


def test_neighbours_are_those_of_the_session(index: AgentIndex) -> None:
    found = evidence(index, asked_for(["cat"], [1.0], QUERY), EVERYBODY, EVERYBODY).features
    meaning, words = found["meaning"].tolist(), found["words"].tolist()
    # 0, 1, 3, 4, 5 are session 1, in this order; 2 is alone in session 2.
    before = [None, 0, None, 1, 3, 4]
    after = [1, 3, None, 4, 5, None]
    for side, beside in (("previous", before), ("next", after)):
        for kind, own in (("meaning", meaning), ("words", words)):
            expected = [0.0 if other is None else own[other] for other in beside]
            assert found[f"{side}_{kind}"].tolist() == pytest.approx(expected), (side, kind)


def test_an_episode_is_what_was_said_in_one_go(index: AgentIndex) -> None:
    measured = setting(index, EVERYBODY).measured(asked_for(["cat"], [2.0], QUERY), (3.0, 4.0))
    episodes = [[0, 1, 3], [2], [4, 5]]
    said_words = [one.terms for one in SAID]
    near = list(NEARNESS.values())
    for rows in episodes:
        (score,) = plain_bm25([[word for row in rows for word in said_words[row]]], ["cat"], [2.0], 4.0)
        for row in rows:
            assert measured.alone["episode_words"][row] == pytest.approx(score)
            assert measured.alone["episode_best"][row] == pytest.approx(max(near[other] for other in rows), abs=0.01)
            mean = sum(near[other] for other in rows) / len(rows)
            assert measured.alone["episode_meaning"][row] == pytest.approx(mean, abs=0.01)
    windows = [[0, 1], [0, 1, 3], [2], [1, 3, 4], [3, 4, 5], [4, 5]]
    texts_of_windows = [[word for row in rows for word in said_words[row]] for rows in windows]
    assert measured.alone["window_words"].tolist() == pytest.approx(plain_bm25(texts_of_windows, ["cat"], [2.0], 9.0))


def test_what_has_no_vector_yet_is_neither_near_nor_far(tmp_path: Path) -> None:
    some = {place: vector for place, vector in VECTORS.items() if place != 16}
    index = small_index(tmp_path / "index", SAID, some)
    found = evidence(index, asked_for([], [], QUERY), EVERYBODY, EVERYBODY)
    assert found.has_vector.tolist() == [True] * 5 + [False]
    assert found.features["meaning"][5] == pytest.approx(0, abs=1e-6)
    index.close()


def test_facts_are_what_is_known_of_a_message(tmp_path: Path) -> None:
    asking = msgspec.structs.replace(said(3, "where is the cat?", minutes=2, role="assistant"), flags=QUESTION)
    index = small_index(tmp_path / "index", [said(1, "cat", speaker="Ada"), said(2, "dog", minutes=1), asking])
    noon = micros(NOON)
    asked = asked_for(["cat"], [1.0], at_micros=noon + 30 * 86_400_000_000)
    asked = replace(asked, speakers=frozenset({index.rows.speaker_number("ada")}))
    found = evidence(index, asked, range(3), range(3)).features
    assert found["speaker"].tolist() == [1, 0, 0]
    assert found["user"].tolist() == [1, 1, 0]
    assert found["question"].tolist() == [0, 0, 1]
    assert found["opening"].tolist() == [1, 0, 0]
    assert found["recency"].tolist() == pytest.approx([math.exp(-1)] * 3, abs=1e-3)
    by_side = replace(asked, speakers=frozenset(), roles=frozenset({USER}))
    assert evidence(index, by_side, range(3), range(3)).features["speaker"].tolist() == [1, 1, 0]
    future = replace(asked, at_micros=0)
    assert evidence(index, future, range(3), range(3)).features["recency"].tolist() == [1, 1, 1]
    index.close()


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60, deadline=None
)
@given(st.sets(st.sampled_from(EVERYBODY), min_size=1), st.sets(st.sampled_from(EVERYBODY), min_size=1))
def test_evidence_does_not_depend_on_who_else_is_looked_at(index: AgentIndex, some: set[int], sample: set[int]) -> None:
    asked = asked_for(["cat", "boat"], [1.0, 2.0], QUERY)
    everybody = evidence(index, asked, EVERYBODY, sorted(sample))
    few = evidence(index, asked, sorted(some), sorted(sample))
    assert few.rows.tolist() == sorted(some)
    for name in (*MEASURED, *SETTING):
        expected = everybody.features[name][sorted(some)].tolist()
        assert few.features[name].tolist() == pytest.approx(expected, abs=1e-5), name
