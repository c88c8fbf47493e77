"""A small BERT in jax, for the models that are fitted here: as `offbook.models.bert` runs them in numpy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from offbook.models.bert import EPSILON, HEADS, MATRICES, BertWeights

LENGTHS = (12, 16, 24, 32, 48, 64, 80, 96, 132, 192, 288)
"""Texts are padded to one of these, so that few shapes have to be compiled."""
DROPOUT, WARM_UP = 0.1, 0.06

Weights = dict[str, Any]
Loss = Callable[[Weights, Any, Any], Any]
"""Of weights, a batch, and the key of the dice that training throws."""


class Training(NamedTuple):
    epochs: int
    rate: float
    weight_decay: float = 0.01
    seed: int = 1


def hidden(weights: Weights, pieces: Any, types: Any, key: Any) -> Any:
    """A row for each piece of each text. `key` is None where nothing is trained."""
    import jax
    import jax.numpy as jnp

    def dropped(rows: Any, number: int) -> Any:
        if key is None:
            return rows
        kept = jax.random.bernoulli(jax.random.fold_in(key, number), 1 - DROPOUT, rows.shape)
        return jnp.where(kept, rows / (1 - DROPOUT), 0)

    def norm(rows: Any, name: str) -> Any:
        centred = rows - rows.mean(-1, keepdims=True)
        spread = (centred * centred).mean(-1, keepdims=True)
        return centred / jnp.sqrt(spread + EPSILON) * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    count, length = pieces.shape
    width = weights["words"].shape[1]
    is_there = (pieces > 0)[:, None, None, :]
    rows = weights["words"][pieces] + weights["positions"][:length] + weights["types"][types]
    rows = dropped(norm(rows, "embeddings.LayerNorm"), 0)
    for at in range(layers_of(weights)):
        name = f"encoder.layer.{at}"

        def heads(which: str, rows: Any = rows, at: int = at, name: str = name) -> Any:
            made = rows @ weights[f"{at}.{which}"] + weights[f"{name}.attention.self.{which}.bias"]
            return made.reshape(count, length, HEADS, width // HEADS).transpose(0, 2, 1, 3)

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) * (width / HEADS) ** -0.5
        scores = jax.nn.softmax(jnp.where(is_there, scores, -1e4), -1)
        mixed = (scores @ heads("value")).transpose(0, 2, 1, 3).reshape(count, length, width)
        made = mixed @ weights[f"{at}.output"] + weights[f"{name}.attention.output.dense.bias"]
        rows = norm(rows + dropped(made, 3 * at + 1), f"{name}.attention.output.LayerNorm")
        wide = rows @ weights[f"{at}.widen"] + weights[f"{name}.intermediate.dense.bias"]
        made = jax.nn.gelu(wide, approximate=False) @ weights[f"{at}.narrow"] + weights[f"{name}.output.dense.bias"]
        rows = norm(rows + dropped(made, 3 * at + 2), f"{name}.output.LayerNorm")
    return rows


def mean(rows: Any, pieces: Any) -> Any:
    """Of the rows of each text, without what it is padded with."""
    import jax.numpy as jnp

    is_there = (pieces > 0)[..., None]
    return (rows * is_there).sum(1) / jnp.maximum(1, is_there.sum(1))


def layers_of(weights: Weights) -> int:
    return sum(name.endswith(".query") for name in weights)


def values_of(base: BertWeights) -> dict[str, NDArray[np.float32]]:
    """All of a model by name: its matrices (`0.query`), its vectors, `words`, `positions` and `types`."""
    matrices = {f"{at}.{name}": layer[name] for at, layer in enumerate(base.matrices) for name in MATRICES}
    words = base.words.astype(np.float32) * base.word_scales
    return {**matrices, **base.vectors, "types": base.types, "words": words, "positions": base.positions}


def trained(
    weights: Weights, batches: Sequence[Any], how: Training, loss: Loss, *, fixed: Sequence[str] = ()
) -> Weights:
    """After all the batches, in their order. What is `fixed` stays."""
    import jax
    import optax

    schedule = optax.warmup_cosine_decay_schedule(0.0, how.rate, int(WARM_UP * len(batches)), len(batches))
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=how.weight_decay))
    kept = {name: weights[name] for name in fixed}
    tuned = {name: value for name, value in weights.items() if name not in kept}
    state = optimiser.init(tuned)

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(tuned: Weights, state: Any, kept: Weights, batch: Any, key: Any) -> Any:
        found, slope = jax.value_and_grad(lambda some: loss(some | kept, batch, key))(tuned)
        changes, state = optimiser.update(slope, state, tuned)
        return optax.apply_updates(tuned, changes), state, found

    key, started, losses = jax.random.PRNGKey(how.seed), time.monotonic(), []
    for number, batch in enumerate(batches):
        tuned, state, found = step(tuned, state, kept, batch, jax.random.fold_in(key, number))
        losses.append(float(found))
        if (number + 1) % 100 == 0:
            spent = time.monotonic() - started
            print(f"step {number + 1} of {len(batches)}: {np.mean(losses[-100:]):.4f}, {spent:.0f} s", flush=True)
    return {name: np.asarray(value) for name, value in tuned.items()} | kept


def length_of(longest: int) -> int:
    return next(length for length in LENGTHS if longest <= length)


def auc(scores: Sequence[float] | NDArray[np.float32], is_so: NDArray[np.bool_]) -> float:
    """How often one that is so scores higher than one that is not."""
    hits, misses = int(is_so.sum()), int((~is_so).sum())
    ranks = np.argsort(np.argsort(np.asarray(scores))) + 1
    return float((ranks[is_so].sum() - hits * (hits + 1) / 2) / max(1, hits * misses))
