from __future__ import annotations

from pathlib import Path

import pytest

from offbook.model.settings.sections import Embedding
from offbook.models import embedder, weights
from offbook.models.minilm import MiniLM


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
