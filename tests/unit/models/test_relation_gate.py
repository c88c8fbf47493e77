"""The real gate over the real vectors: what it must let through, and what it need not."""

from __future__ import annotations

import numpy as np

from offbook.models.minilm import MiniLM
from offbook.models.relation_gate import DIMENSIONS, LEAST, scores
from tests.unit.models.test_relation import REPLACED

UNRELATED = [
    ("What is another word for leverage?", "My daughter starts school in September."),
    ("Convert 350 Fahrenheit to Celsius for me.", "The nightly job failed twice."),
    ("How long does cooked rice keep in the fridge?", "I fixed the failing import test."),
]


def test_corrections_pass_and_most_of_what_is_unrelated_does_not(minilm: MiniLM) -> None:
    vectors = {text: minilm.embed([text])[0] for pair in [*REPLACED, *UNRELATED] for text in pair}

    def gate(pairs: list[tuple[str, str]]) -> list[float]:
        earlier, later = (np.array([vectors[pair[at]] for pair in pairs]) for at in (0, 1))
        assert earlier.shape == (len(pairs), DIMENSIONS)
        return [float(score) for score in scores(earlier, later)]

    assert min(gate(REPLACED)) >= LEAST
    assert max(gate(UNRELATED)) < min(gate(REPLACED))
