"""The real model, on pairs that nobody needs to think about. How good it is is measured by `benchmarks/memory`."""

from __future__ import annotations

from pathlib import Path

import pytest

from offbook.model.errors import ModelUnavailable
from offbook.models.relation import PAIRS_AT_ONCE, RelationModel
from offbook.projections.links import REPLACES
from tests.unit.statements.said import DATABASE, MOVED

REPLACED = [
    (DATABASE, MOVED),
    ("I live in Lisbon.", "I moved to Berlin, so I no longer live in Lisbon."),
    ("We only deploy on Tuesday mornings.", "From now on we deploy on Thursdays instead of Tuesdays."),
    ("My phone number is 555-1234.", "My phone number has changed, it is 555-9876 now."),
]
BESIDE = [
    ("I have a cat.", "I have a dog."),
    (DATABASE, "My daughter Ines is allergic to peanuts."),
    ("My dog is called Rex.", "Where is Rex?"),
    ("My brother works in Hamburg.", "I moved to Leipzig."),
    ("The server is in Frankfurt.", "I moved to Leipzig last week."),
    ("My parents live in Porto.", "I moved from Berlin to Lisbon in March."),
    ("Mi hermana se llama Inés y vive en Sevilla.", "I moved from Berlin to Lisbon in March."),
    ("The staging database runs on Postgres 14.", "We upgraded production to Postgres 16."),
    ("My brother plays the trombone.", "My brother has moved to Madrid."),
]


@pytest.fixture(scope="module")
def model(packaged: Path, tmp_path_factory: pytest.TempPathFactory) -> RelationModel:
    return RelationModel(tmp_path_factory.mktemp("models"))


def test_what_replaces_is_told_from_what_stands_beside(model: RelationModel) -> None:
    scores = model.replaces([*REPLACED, *BESIDE])
    assert [score >= REPLACES for score in scores[: len(REPLACED)]] == [True] * len(REPLACED)
    assert [score < REPLACES for score in scores[len(REPLACED) :]] == [True] * len(BESIDE)


def test_a_pair_does_not_depend_on_its_company(model: RelationModel) -> None:
    pairs = [*REPLACED, *BESIDE[-4:]]
    again = [*pairs, *REPLACED]
    assert len(again) > PAIRS_AT_ONCE
    together = model.replaces(again)
    assert together[len(pairs) :] == pytest.approx(together[: len(REPLACED)], abs=1e-4)
    assert together[: len(pairs)] == pytest.approx([model.replaces([pair])[0] for pair in pairs], abs=1e-3)
    assert model.replaces([]) == []


@pytest.mark.parametrize("text", ["", " ", "\ud800", "x" * 100_000, "猫" * 5_000, "[SEP] [CLS]"])
def test_whatever_the_texts_there_is_a_score(text: str, model: RelationModel) -> None:
    for score in model.replaces([(text, DATABASE), (DATABASE, text), (text, text)]):
        assert 0 <= score <= 1


def test_without_weights_it_says_so(tmp_path: Path, unpackaged: None) -> None:
    with pytest.raises(ModelUnavailable):
        RelationModel(tmp_path).replaces([(DATABASE, MOVED)])
