"""Fits the gate of `relation`: from the vectors of two messages, whether the model needs to read them at all.

    python -m benchmarks.memory.fit.relation_gate MODEL.onnx PAIRS OUT      needs jax and optax

A small network over the vectors that the embedding model gives anyway, so that thousands of pairs are looked at in the
time that the model takes for one. It is fitted to the same pairs, the ordinary conversations weighing most. Writes
OUT/relation-gate.npz.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.memory.fit.examples import REPLACES, load_examples
from benchmarks.memory.fit.network import Training, Weights, auc, hidden, length_of, mean, trained, values_of
from offbook.models import relation_gate
from offbook.models.bert import read_weights

START, END = 101, 102
VECTOR, HIDDEN, DROPOUT = 384, 48, 0.3
FITTING = Training(25, 1e-3, weight_decay=0.1)
BATCH, PIECES_A_BATCH = 256, 8_192
STRANGERS = 4_000
"""Pairs of unrelated messages in each epoch."""
OF_REPLACING, OF_OTHERS, OF_ORDINARY = 1.0, 0.3, 3.0
"""Weights of the pairs."""


class Batch(NamedTuple):
    earlier: NDArray[np.float32]
    later: NDArray[np.float32]
    wanted: NDArray[np.float32]
    weights: NDArray[np.float32]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="the installed embedding model, an ONNX file")
    parser.add_argument("pairs", type=Path, help="what relation_data wrote")
    parser.add_argument("out", type=Path, help="the folder to write to")
    given = parser.parse_args()
    examples = load_examples(given.pairs)
    base = values_of(read_weights(given.model))
    fitted = [*examples.cases, *examples.pairs, *examples.ordinary]
    written = len(examples.cases) + len(examples.pairs)
    found = vectors(base, [text for one in [*fitted, *examples.held_out] for text in (one.earlier, one.later)])
    earlier, later = found[::2], found[1::2]
    wanted = np.array([one.relation == REPLACES for one in fitted], np.float32)
    weights = np.where(wanted > 0, OF_REPLACING, OF_OTHERS).astype(np.float32)
    weights[written:] = OF_ORDINARY

    rng = np.random.default_rng(FITTING.seed)
    batches = []
    for _ in range(FITTING.epochs):
        order = rng.permutation(len(fitted))
        for start in range(0, len(order) - BATCH, BATCH):
            some = order[start : start + BATCH]
            batches.append(Batch(earlier[some], later[some], wanted[some], weights[some]))
        for _ in range(STRANGERS // BATCH):
            first, second = rng.integers(len(examples.cases), size=BATCH), rng.integers(written, size=BATCH)
            batches.append(Batch(earlier[first], later[second], np.zeros(BATCH), np.ones(BATCH)))
    gate = trained(_new_gate(rng), [batches[at] for at in rng.permutation(len(batches))], FITTING, loss)
    given.out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(given.out / "relation-gate.npz", **{name: one.astype(np.float16) for name, one in gate.items()})
    if examples.held_out:
        scores = odds(gate, earlier[len(fitted) :], later[len(fitted) :], None)
        is_so = np.array([one.relation == REPLACES for one in examples.held_out])
        passed = (np.asarray(scores)[is_so] > relation_gate.LEAST).mean()
        print(f"AUC {auc(np.asarray(scores), is_so):.4f}, of those that replace {passed:.3f} pass")


def loss(gate: Weights, batch: Batch, key: Any) -> Any:
    import jax

    found = odds(gate, batch.earlier, batch.later, key)
    losses = jax.nn.softplus(found) - found * batch.wanted
    return (losses * batch.weights).mean()


def odds(gate: Weights, earlier: Any, later: Any, key: Any) -> Any:
    """Log odds that the later message replaces the earlier, as `offbook.models.relation_gate` reckons them."""
    import jax
    import jax.numpy as jnp

    features = jnp.concatenate([earlier * later * 8, jnp.abs(earlier - later) * 4, earlier * 4, later * 4], 1)
    rows = jnp.maximum(features @ gate["p0"].T + gate["p1"], 0)
    if key is not None:
        rows = jnp.where(jax.random.bernoulli(key, 1 - DROPOUT, rows.shape), rows / (1 - DROPOUT), 0)
    return (rows @ gate["p2"].T + gate["p3"])[:, 0]


def vectors(base: Weights, texts: list[list[int]]) -> NDArray[np.float32]:
    """A row of length one for each text, as the embedding model gives it."""
    import jax

    base = {name: jax.numpy.asarray(value) for name, value in base.items()}
    run = jax.jit(lambda pieces: mean(hidden(base, pieces, pieces * 0, None), pieces))
    found = np.empty((len(texts), VECTOR), np.float32)
    by_length: dict[int, list[int]] = {}
    for at, one in enumerate(texts):
        by_length.setdefault(length_of(len(one) + 2), []).append(at)
    for length, places in by_length.items():
        size = PIECES_A_BATCH // length
        for start in range(0, len(places), size):
            some = places[start : start + size]
            pieces = np.zeros((size, length), np.int32)
            for row, at in enumerate(some):
                pieces[row, : len(texts[at]) + 2] = [START, *texts[at], END]
            found[some] = np.asarray(run(pieces))[: len(some)]
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def _new_gate(rng: np.random.Generator) -> Weights:
    first = rng.uniform(-1, 1, (HIDDEN, 4 * VECTOR)) * (4 * VECTOR) ** -0.5
    last = rng.uniform(-1, 1, (1, HIDDEN)) * HIDDEN**-0.5
    values = {"p0": first, "p1": np.zeros(HIDDEN), "p2": last, "p3": np.zeros(1)}
    return {name: value.astype(np.float32) for name, value in values.items()}


if __name__ == "__main__":
    main()
