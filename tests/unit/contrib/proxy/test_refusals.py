from __future__ import annotations

import pytest

from offbook.contrib.proxy.naming import MOST_IN_A_ROW, MOST_MODELS, REFUSED_SECONDS, Refusals


def test_a_model_is_left_alone_for_a_while_when_it_refused_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr("offbook.contrib.proxy.naming.time.monotonic", lambda: now)
    refusals = Refusals()
    for _ in range(MOST_IN_A_ROW - 1):
        assert not refusals.refused("gemma")
    refusals.taken("gemma")
    for number in range(MOST_IN_A_ROW):
        assert not refusals.is_on("gemma")
        assert refusals.refused("gemma") is (number == MOST_IN_A_ROW - 1)
    assert refusals.is_on("gemma")
    assert not refusals.is_on("another")
    now += REFUSED_SECONDS
    assert not refusals.is_on("gemma")
    assert refusals.refused("gemma")  # tried once more, and that was enough


def test_only_so_many_models_are_remembered() -> None:
    refusals = Refusals()
    for number in range(MOST_MODELS + 1):
        for _ in range(MOST_IN_A_ROW):
            refusals.refused(f"model {number}")
    assert not refusals.is_on("model 0")
    assert refusals.is_on(f"model {MOST_MODELS}")
    assert len(refusals._until) == MOST_MODELS
