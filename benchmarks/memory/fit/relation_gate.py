"""The gate of `relation`: from the vectors of two messages, whether the model needs to read them at all.

A small network over the vectors that the embedding model gives anyway, so that thousands of pairs are looked at in the
time that the model takes for one. It is fitted to the same pairs, the ordinary conversations weighing most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory.fit.relation_data import REPLACES, Example, Examples

VECTOR = 384
HIDDEN, DROPOUT = 48, 0.3
EPOCHS, BATCH, RATE, WEIGHT_DECAY = 25, 256, 1e-3, 0.1
STRANGERS = 4_000
"""Pairs of unrelated messages in each epoch."""
OF_REPLACING, OF_OTHERS, OF_ORDINARY = 1.0, 0.3, 3.0
"""Weights of the pairs."""

Embed = Callable[[Sequence[list[int]]], Any]
"""Gives texts in pieces their vectors of length one, as the rows of a tensor."""


def fit_gate(examples: Examples, embed: Embed) -> Any:
    """A network that gives the log odds that the later message replaces the earlier, from their `features`."""
    import torch
    from torch.nn import functional

    torch.manual_seed(1)
    # The cases come first: strangers take their earlier message from them, the later also from the pairs.
    fitted = [*examples.cases, *examples.pairs, *examples.ordinary]
    cases, written = len(examples.cases), len(examples.cases) + len(examples.pairs)
    first, second = embed([one.earlier for one in fitted]), embed([one.later for one in fitted])
    wanted = torch.tensor([float(one.relation == REPLACES) for one in fitted], device=first.device)
    weights = torch.tensor(
        [_weight(one, is_ordinary=at >= written) for at, one in enumerate(fitted)], device=first.device
    )
    gate = _new_gate().to(first.device)
    optimiser = torch.optim.AdamW(gate.parameters(), RATE, weight_decay=WEIGHT_DECAY)

    def step(loss: Any) -> None:
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    for _ in range(EPOCHS):
        for some in torch.randperm(len(fitted), device=first.device).split(BATCH):
            odds = gate(features(first[some], second[some]))[:, 0]
            losses = functional.binary_cross_entropy_with_logits(odds, wanted[some], reduction="none")
            step((losses * weights[some]).mean())
        strangers = torch.randint(cases, (STRANGERS,)), torch.randint(written, (STRANGERS,))
        for earlier, later in zip(*(one.to(first.device).split(BATCH) for one in strangers), strict=True):
            odds = gate(features(first[earlier], second[later]))[:, 0]
            step(functional.softplus(odds).mean())
    gate.eval()
    return gate


def gate_scores(gate: Any, embed: Embed, examples: Sequence[Example]) -> list[float]:
    """For each pair the log odds that the later replaces the earlier."""
    import torch

    first, second = embed([one.earlier for one in examples]), embed([one.later for one in examples])
    with torch.no_grad():
        found: list[float] = gate(features(first, second))[:, 0].tolist()
    return found


def save_gate(gate: Any, path: Path) -> None:
    kept = [one.detach().cpu().numpy().astype(np.float16) for one in gate.parameters()]
    np.savez_compressed(path, **{f"p{at}": one for at, one in enumerate(kept)})


def features(first: Any, second: Any) -> Any:
    """Of the vectors of two messages, scaled so that all are of about the same size."""
    import torch

    return torch.cat([first * second * 8, (first - second).abs() * 4, first * 4, second * 4], 1)


def _new_gate() -> Any:
    from torch import nn

    return nn.Sequential(nn.Linear(4 * VECTOR, HIDDEN), nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(HIDDEN, 1))


def _weight(example: Example, *, is_ordinary: bool) -> float:
    if is_ordinary:
        return OF_ORDINARY
    return OF_REPLACING if example.relation == REPLACES else OF_OTHERS
