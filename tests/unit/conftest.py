from __future__ import annotations

from pathlib import Path

import pytest

from offbook.model.settings.sections import Embedding
from offbook.models import embedder, weights
from offbook.models.minilm import MiniLM
from offbook.models.relation import RelationModel
from tests.unit.projections.doubles import WordsJudge


class _Shared(MiniLM):
    def close(self) -> None:
        """Others go on with it."""


@pytest.fixture(scope="session")
def _loaded(tmp_path_factory: pytest.TempPathFactory) -> MiniLM:
    return _Shared(weights.ensure(weights.MINILM, tmp_path_factory.mktemp("models")))


@pytest.fixture
def one_model(_loaded: MiniLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real model, which every memory of a process shares: to load it takes longer than most tests."""

    def shared(embedding: Embedding, folder: Path) -> MiniLM:
        return _loaded

    monkeypatch.setattr(embedder, "open_local", shared)


@pytest.fixture(autouse=True)
def words_judge(monkeypatch: pytest.MonkeyPatch) -> WordsJudge:
    """What replaces what is judged by a few lines: the real model takes a tenth of a second for each message."""
    judge = WordsJudge()
    monkeypatch.setattr(RelationModel, "replaces", lambda _self, pairs: judge.replaces(pairs))
    return judge
