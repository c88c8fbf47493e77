"""The forward pass in numpy is that of the runtime, and what is tuned changes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from offbook.model.errors import ModelUnavailable
from offbook.models.bert import HEADS, LAYERS, Bert, BertWeights, Pieces, read_weights
from offbook.models.glossary import in_english
from offbook.models.minilm import DIMENSIONS, MAX_PIECES, MiniLM, WordPiece

TEXTS = [
    "My daughter Ines is allergic to peanuts.",
    "Wir liefern nur dienstags aus, nie an anderen Tagen.",
    "def f(x: int) -> str:\n    return f'{x!r}'  # 猫がいる",
]


@pytest.fixture(scope="module")
def base(packaged: Path) -> BertWeights:
    return read_weights(packaged)


def pieces_of(texts: list[str]) -> list[Pieces]:
    wordpiece = WordPiece(MAX_PIECES)
    return [Pieces(pieces, [0] * len(pieces)) for pieces in (wordpiece.pieces(text, in_english) for text in texts)]


def test_its_vectors_are_those_of_the_runtime(base: BertWeights, minilm: MiniLM) -> None:
    hidden = Bert(base, {}).hidden(pieces_of(TEXTS))
    for rows, expected in zip(hidden, minilm.embed(TEXTS), strict=True):
        mean = rows.mean(axis=0)
        assert mean @ expected / np.linalg.norm(mean) > 0.999


def test_a_text_does_not_depend_on_its_company(base: BertWeights) -> None:
    bert = Bert(base, {})
    together = bert.hidden(pieces_of(TEXTS))
    for rows, pieces in zip(together, pieces_of(TEXTS), strict=True):
        assert rows.shape == (len(pieces.pieces), DIMENSIONS)
        (alone,) = bert.hidden([pieces])
        assert np.abs(rows - alone).max() < 1e-4


def test_what_is_tuned_is_added_to_the_base(base: BertWeights) -> None:
    (plain,) = Bert(base, {}).hidden(pieces_of(TEXTS[:1]))
    nothing = {"0.query": np.zeros((DIMENSIONS, DIMENSIONS), np.float32)}
    (same,) = Bert(base, nothing).hidden(pieces_of(TEXTS[:1]))
    assert np.array_equal(plain, same)
    something = {"0.query": np.full((DIMENSIONS, DIMENSIONS), 0.01, np.float32)}
    (other,) = Bert(base, something).hidden(pieces_of(TEXTS[:1]))
    assert not np.allclose(plain, other)
    assert DIMENSIONS % HEADS == 0
    assert len(base.matrices) == LAYERS


@pytest.mark.parametrize("data", [b"", b"\x08\x01"])
def test_a_file_that_is_another_model_is_told(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(ModelUnavailable, match="offbook model install"):
        read_weights(path)
