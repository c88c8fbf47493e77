"""Fits the model that tells whether what was said later replaces what was said earlier (`offbook.models.relation`).

    python -m benchmarks.memory.fit.relation MODEL.onnx PAIRS OUT [--from relation.npz]      needs jax and optax

PAIRS is what `relation_data` writes. Starts from the installed embedding model: first pairs that are made from frames,
which teach the shapes; then the pairs that were written one by one, with unrelated messages and ordinary conversations
beside them. That takes minutes on a GPU and hours on two cores; `--from` goes on from weights that were fitted before,
for one epoch over what was written last and a share of the rest. Of what then differs from the embedding model, a
product of two thin matrices is kept for each of its matrices. Writes OUT/relation.npz.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.memory.fit.examples import RELATIONS, REPLACES, Example, Examples, load_examples, strangers
from benchmarks.memory.fit.network import Training, Weights, auc, hidden, length_of, mean, trained, values_of
from offbook.models.bert_weights import read_weights

START, END = 101, 102
"""The pieces around a text."""
LABEL_SMOOTHING = 0.05
RANK = 96
"""Of the products that are kept."""
PIECES_A_BATCH = 4_096
FRAME_STRANGERS, STRANGERS = 0.25, 0.7
"""Pairs of unrelated messages, as a share of those that were written."""
OF_ORDINARY = 0.6
"""Weight of a pair of an ordinary conversation: a few of them do replace."""
FRAMES_MIXED_IN = 3_000
ON_FRAMES, ON_PAIRS, GOING_ON = Training(1, 1.5e-4), Training(5, 1.5e-4), Training(1, 4e-5)
NEWEST_CASES, OF_THE_REST = 4_100, 0.12
"""What one epoch of `--from` reads: the pairs of the newest cases, and a share of all that was read before."""
FIXED = ("words", "positions")
NAMES = {"head.weight": "relation.weight", "head.bias": "relation.bias"}
"""As the package calls them."""


class Batch(NamedTuple):
    pieces: NDArray[np.int32]
    types: NDArray[np.int32]
    relations: NDArray[np.float32]
    weights: NDArray[np.float32]
    """0 where there is no pair."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="the installed embedding model, an ONNX file")
    parser.add_argument("pairs", type=Path, help="what relation_data wrote")
    parser.add_argument("out", type=Path, help="the folder to write to")
    parser.add_argument("--from", dest="before", type=Path, help="weights to go on from")
    given = parser.parse_args()
    examples = load_examples(given.pairs)
    base = values_of(read_weights(given.model))
    given.out.mkdir(parents=True, exist_ok=True)
    random.seed(1)

    if given.before:
        weights = with_additions(base, given.before)
        judge("before", weights, examples)
        weights = trained(weights, batches(going_on(examples), GOING_ON), GOING_ON, loss, fixed=FIXED)
    else:
        head = np.random.default_rng(1).normal(0, 0.04, (2 * base["words"].shape[1], len(RELATIONS)))
        weights = base | {"head.weight": head.astype(np.float32), "head.bias": np.zeros(len(RELATIONS), np.float32)}
        frames = examples.frames + strangers(examples.frames, FRAME_STRANGERS)
        weights = trained(weights, batches(frames, ON_FRAMES), ON_FRAMES, loss, fixed=FIXED)
        weights = trained(weights, batches(all_of(examples), ON_PAIRS), ON_PAIRS, loss, fixed=FIXED)
    np.savez_compressed(given.out / "relation.npz", **additions(weights, base))
    judge("after", weights, examples)


def all_of(examples: Examples) -> list[Example]:
    written = examples.pairs + examples.cases
    ordinary = [one._replace(weight=OF_ORDINARY) for one in examples.ordinary]
    return written + strangers(written, STRANGERS) + ordinary + random.sample(examples.frames, FRAMES_MIXED_IN)


def going_on(examples: Examples) -> list[Example]:
    newest = examples.cases[-NEWEST_CASES:]
    rest = all_of(examples._replace(cases=examples.cases[:-NEWEST_CASES]))
    return newest + strangers(newest, STRANGERS) + random.sample(rest, int(OF_THE_REST * len(rest)))


def told(weights: Weights, batch: Batch, key: Any) -> Any:
    """A row for each pair, a column for each of `RELATIONS`."""
    import jax.numpy as jnp

    rows = hidden(weights, batch.pieces, batch.types, key)
    ends = jnp.concatenate([rows[:, 0], mean(rows, batch.pieces)], 1)
    return ends @ weights["head.weight"] + weights["head.bias"]


def loss(weights: Weights, batch: Batch, key: Any) -> Any:
    import jax

    wanted = batch.relations * (1 - LABEL_SMOOTHING) + LABEL_SMOOTHING / len(RELATIONS)
    losses = -(wanted * jax.nn.log_softmax(told(weights, batch, key))).sum(-1)
    return (losses * batch.weights).sum() / batch.weights.sum()


def judge(name: str, weights: Weights, examples: Examples) -> None:
    """By what was held out: how well it tells what replaces from what does not."""
    import jax

    if not examples.held_out:
        return
    run = jax.jit(lambda weights, batch: jax.nn.softmax(told(weights, batch, None)))
    scores, is_so = [], []
    for batch in batches(examples.held_out, Training(1, 0)):
        there = batch.weights > 0
        scores += np.asarray(run(weights, batch))[there, REPLACES].tolist()
        is_so += (batch.relations[there, REPLACES] > 0).tolist()
    kept = np.array(is_so)
    least = np.quantile(np.array(scores)[~kept], 0.97)
    print(
        f"{name}: AUC {auc(scores, kept):.4f}, found at 3 % false {(np.array(scores)[kept] > least).mean():.3f}",
        flush=True,
    )


def batches(examples: Sequence[Example], how: Training) -> list[Batch]:
    """Each epoch in another order, pairs of about the same length together."""
    rng = np.random.default_rng(how.seed)
    found = []
    for _ in range(how.epochs):
        by_length: dict[int, list[Example]] = {}
        for one in examples:
            by_length.setdefault(length_of(len(one.earlier) + len(one.later) + 3), []).append(one)
        made = []
        for length, some in by_length.items():
            order, size = rng.permutation(len(some)), PIECES_A_BATCH // length
            for start in range(0, len(some), size):
                made.append(_batch([some[at] for at in order[start : start + size]], length, size))
        found += [made[at] for at in rng.permutation(len(made))]
    return found


def _batch(examples: Sequence[Example], length: int, size: int) -> Batch:
    batch = Batch(
        np.zeros((size, length), np.int32),
        np.zeros((size, length), np.int32),
        np.zeros((size, len(RELATIONS)), np.float32),
        np.zeros(size, np.float32),
    )
    for at, one in enumerate(examples):
        first, second = [START, *one.earlier, END], [*one.later, END]
        batch.pieces[at, : len(first) + len(second)] = first + second
        batch.types[at, len(first) : len(first) + len(second)] = 1
        batch.relations[at, one.relation] = 1
        batch.weights[at] = one.weight
    return batch


def with_additions(base: Weights, path: Path) -> Weights:
    with np.load(path) as kept:
        added = {name: kept[name].astype(np.float32) for name in kept.files}
    weights = {ours: added[theirs] for ours, theirs in NAMES.items()}
    for name, value in base.items():
        if f"{name}.a" in added:
            weights[name] = value + added[f"{name}.a"] @ added[f"{name}.b"]
        else:
            weights[name] = value + added.get(name, np.float32(0))
    return weights


def additions(weights: Weights, base: Weights) -> dict[str, NDArray[np.float16]]:
    """What is added to the base, by the names that `offbook.models.bert` knows, and the head."""
    found: dict[str, NDArray[Any]] = {}
    for name, value in weights.items():
        if name in NAMES:
            found[NAMES[name]] = value
        elif name in FIXED:
            continue
        elif name == "types" or value.ndim == 1:
            found[name] = value - base[name]
        else:
            left, sizes, right = np.linalg.svd(value - base[name], full_matrices=False)
            roots = np.sqrt(sizes[:RANK])
            found |= {f"{name}.a": left[:, :RANK] * roots, f"{name}.b": roots[:, None] * right[:RANK]}
    return {name: value.astype(np.float16) for name, value in found.items()}


if __name__ == "__main__":
    main()
