"""Fits the reader of sentences (`offbook.models.sentence_kinds`): what kind each is, whose voice, whether to keep it.

    python -m benchmarks.memory.fit.sentences MODEL.onnx SENTENCES OUT      needs jax, optax; half an hour on two cores

SENTENCES is what `sentence_data` writes. A network that is small enough to read a message in a millisecond learns first
to give a text the vector that the installed embedding model gives it, then what the labels say. Writes
OUT/sentence-kinds.npz.
"""

from __future__ import annotations

import argparse
import pickle
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.memory.fit.network import (
    LENGTHS,
    Training,
    Weights,
    auc,
    hidden,
    length_of,
    mean,
    trained,
    values_of,
)
from offbook.models.bert import EPSILON
from offbook.models.bert_weights import MATRICES, read_weights

KINDS = 9
OUTPUTS = KINDS + 2
"""The kinds, own voice, keeping."""
WIDTH, WIDE, LAYERS, POSITIONS, VECTOR = 96, 384, 3, 288, 384
MOST_SENTENCES = 32
PIECES_A_BATCH = 4_096
WORDS_DROPPED = 0.08
TO_VECTORS, TO_LABELS = Training(5, 2e-3), Training(12, 1e-3, weight_decay=0.02)
OF_CASES = 0.5
"""Weight of a sentence of the cases that `relation` is fitted to: among them there is more to keep than elsewhere."""

Window = dict[str, Any]


class Batch(NamedTuple):
    pieces: NDArray[np.int32]
    types: NDArray[np.int32]
    sentences: NDArray[np.float32]
    """For each text and sentence, which of its pieces are of it, so that they sum up to one."""
    marks: NDArray[np.int32]
    """Where each sentence begins."""
    answers: NDArray[np.float32]
    weights: NDArray[np.float32]
    """0 where a sentence is not there, or not labelled."""
    with_kind: NDArray[np.float32]
    vectors: NDArray[np.float32]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="the installed embedding model, an ONNX file")
    parser.add_argument("sentences", type=Path, help="what sentence_data wrote")
    parser.add_argument("out", type=Path, help="the folder to write to")
    parser.add_argument("--hold-out", action="store_true", help="leave out every fifth message, and judge by it")
    given = parser.parse_args()
    kept = pickle.loads(given.sentences.read_bytes())
    labelled: list[Window] = kept["labelled"]
    others: list[Window] = kept["others"]
    held_out = [one for one in labelled if one["is_held_out"]] if given.hold_out else []
    fitted = [one for one in labelled if not (given.hold_out and one["is_held_out"])]
    base = read_weights(given.model)
    given.out.mkdir(parents=True, exist_ok=True)

    weights = small(values_of(base)["words"])
    with_vectors = [one for one in fitted + others if "vector" in one]
    weights = trained(weights, epochs(with_vectors, TO_VECTORS), TO_VECTORS, vector_loss)
    weights.pop("vector.weight")
    weights = trained(weights, epochs(fitted, TO_LABELS), TO_LABELS, label_loss)
    save(weights, given.out / "sentence-kinds.npz")
    if held_out:
        judge(told(weights, held_out), held_out)


# ── What is learnt ──


def logits(weights: Weights, batch: Batch, key: Any) -> Any:
    """A row for each sentence of each text: told by its mark, and by the mean of its pieces."""
    import jax.numpy as jnp

    rows = hidden(weights, batch.pieces, batch.types, key, WORDS_DROPPED)
    firsts = jnp.take_along_axis(rows, batch.marks[:, :, None], 1)
    return jnp.concatenate([firsts, batch.sentences @ rows], -1) @ weights["head.weight"] + weights["head.bias"]


def label_loss(weights: Weights, batch: Batch, key: Any) -> Any:
    import jax
    import jax.numpy as jnp

    found = logits(weights, batch, key)
    kinds = -(batch.answers[..., :KINDS] * jax.nn.log_softmax(found[..., :KINDS])).sum(-1) * batch.with_kind
    wanted, said = batch.answers[..., KINDS:], found[..., KINDS:]
    sides = (jnp.maximum(said, 0) - said * wanted + jnp.log1p(jnp.exp(-jnp.abs(said)))).sum(-1)
    return ((kinds + sides) * batch.weights).sum() / batch.weights.sum()


def vector_loss(weights: Weights, batch: Batch, key: Any) -> Any:
    import jax.numpy as jnp

    rows = hidden(weights, batch.pieces, batch.types, key, WORDS_DROPPED)
    made = mean(rows, batch.pieces) @ weights["vector.weight"]
    made /= jnp.sqrt((made * made).sum(-1, keepdims=True) + EPSILON)
    likeness = (made * batch.vectors).sum(-1)
    # Among the texts of the batch, its own vector is the one that it is most like.
    scores = 16 * made @ batch.vectors.T
    scores -= scores.max(-1, keepdims=True)
    chosen = jnp.diagonal(scores) - jnp.log(jnp.exp(scores).sum(-1))
    return (1 - likeness).mean() * 8 - chosen.mean()


def told(weights: Weights, windows: Sequence[Window]) -> list[NDArray[np.float32]]:
    """For each text a row of probabilities for each of its sentences."""
    import jax

    run = jax.jit(lambda batch: logits(weights, batch, None))
    found: dict[int, NDArray[np.float32]] = {}
    numbered = [one | {"number": number} for number, one in enumerate(windows)]
    for batch in drawn(numbered, np.random.default_rng(1)):
        rows = np.asarray(run(made(batch)))
        kinds = np.exp(rows[..., :KINDS] - rows[..., :KINDS].max(-1, keepdims=True))
        answers = np.concatenate([kinds / kinds.sum(-1, keepdims=True), 1 / (1 + np.exp(-rows[..., KINDS:]))], -1)
        for at, one in enumerate(batch):
            found[one["number"]] = answers[at, : len(one["spans"])]
    return [found[number] for number in range(len(windows))]


# ── Batches ──


def epochs(windows: Sequence[Window], how: Training) -> list[Batch]:
    rng = np.random.default_rng(how.seed)
    return [made(batch) for _ in range(how.epochs) for batch in drawn(windows, rng)]


def drawn(windows: Sequence[Window], rng: np.random.Generator) -> Iterator[list[Window]]:
    """In any order, texts of about the same length together."""
    by_length: defaultdict[int, list[Window]] = defaultdict(list)
    for one in windows:
        if len(one["pieces"]) <= LENGTHS[-1]:
            by_length[length_of(len(one["pieces"]))].append(one)
    found: list[list[Window]] = []
    for length, some in by_length.items():
        order, size = rng.permutation(len(some)), PIECES_A_BATCH // length
        found += [[some[at] for at in order[start : start + size]] for start in range(0, len(some), size)]
    for at in rng.permutation(len(found)):
        yield found[at]


def made(windows: Sequence[Window]) -> Batch:
    """Of one shape for each length: what is missing is empty."""
    length = length_of(max(len(one["pieces"]) for one in windows))
    count = PIECES_A_BATCH // length
    most = next(size for size in (2, 4, 8, 16, MOST_SENTENCES) if max(len(one["spans"]) for one in windows) <= size)
    batch = Batch(
        np.zeros((count, length), np.int32),
        np.zeros((count, length), np.int32),
        np.zeros((count, most, length), np.float32),
        np.zeros((count, most), np.int32),
        np.zeros((count, most, OUTPUTS), np.float32),
        np.zeros((count, most), np.float32),
        np.zeros((count, most), np.float32),
        np.zeros((count, VECTOR), np.float32),
    )
    for at, one in enumerate(windows):
        batch.pieces[at, : len(one["pieces"])] = one["pieces"]
        batch.vectors[at] = one.get("vector", 0)
        for number, (start, end) in enumerate(one["spans"]):
            batch.sentences[at, number, start:end] = 1 / (end - start)
            batch.marks[at, number] = start
            label = one["answers"][number] if "answers" in one else None
            if label is not None:
                batch.weights[at, number] = OF_CASES if one["set"] == "cases" else 1
                batch.with_kind[at, number] = label[0] >= 0
                batch.answers[at, number] = label
    return batch


# ── What is begun with, and what is kept ──


def small(words: NDArray[np.float32]) -> Weights:
    """A network to begin with: its words are the embedding model's, in fewer dimensions."""
    rng = np.random.default_rng(1)
    centred = words - words.mean(0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    narrow = centred @ axes[:, ::-1][:, :WIDTH]
    narrow *= 0.5 / narrow.std()

    def random(*shape: int) -> NDArray[np.float64]:
        return rng.normal(0, shape[0] ** -0.5, shape)

    weights: dict[str, NDArray[Any]] = {
        "words": narrow,
        "positions": rng.normal(0, 0.05, (POSITIONS, WIDTH)),
        "types": np.zeros((2, WIDTH)),
        "embeddings.LayerNorm.weight": np.ones(WIDTH),
        "embeddings.LayerNorm.bias": np.zeros(WIDTH),
        "head.weight": random(2 * WIDTH, OUTPUTS),
        "head.bias": np.zeros(OUTPUTS),
        "vector.weight": random(WIDTH, VECTOR),
    }
    shapes = dict(zip(MATRICES, [(WIDTH, WIDTH)] * 4 + [(WIDTH, WIDE), (WIDE, WIDTH)], strict=True))
    for at in range(LAYERS):
        name = f"encoder.layer.{at}"
        weights |= {f"{at}.{which}": random(*shape) for which, shape in shapes.items()}
        weights |= {f"{name}.attention.self.{which}.bias": np.zeros(WIDTH) for which in ("query", "key", "value")}
        for part in ("attention.output", "output"):
            weights[f"{name}.{part}.dense.bias"] = np.zeros(WIDTH)
            weights[f"{name}.{part}.LayerNorm.weight"] = np.ones(WIDTH)
            weights[f"{name}.{part}.LayerNorm.bias"] = np.zeros(WIDTH)
        weights[f"{name}.intermediate.dense.bias"] = np.zeros(WIDE)
    return {name: np.asarray(value, np.float32) for name, value in weights.items()}


def save(weights: Weights, path: Path) -> None:
    """Words as whole numbers and a scale each, all the rest in half precision."""
    values = {name: np.asarray(value) for name, value in weights.items()}
    words = values.pop("words")
    scales = np.maximum(np.abs(words).max(1, keepdims=True) / 127, 1e-8)
    np.savez_compressed(
        path,
        words=np.round(words / scales).astype(np.int8),
        word_scales=scales.astype(np.float32),
        **{name: value.astype(np.float16) for name, value in values.items()},
    )


# ── How good it is ──


def judge(found: Sequence[NDArray[np.float32]], windows: Sequence[Window]) -> None:
    for part in sorted({one["set"] for one in windows}):
        both = [
            (row, label)
            for one, rows in zip(windows, found, strict=True)
            if one["set"] == part
            for row, label in zip(rows, one["answers"], strict=True)
            if label is not None
        ]
        rows, labels = np.array([row for row, _ in both]), np.array([label for _, label in both])
        with_kind, is_own, is_kept = labels[:, 0] >= 0, labels[:, KINDS] > 0.5, labels[:, -1] > 0.5
        right = (rows[with_kind, :KINDS].argmax(1) == labels[with_kind, :KINDS].argmax(1)).mean()
        print(
            f"{part or 'first'}: {len(rows)} sentences, kind {right:.3f}, own AUC {auc(rows[:, KINDS], is_own):.3f}, "
            f"keep AUC {auc(rows[:, -1], is_kept):.3f}, kept {(rows[is_kept, -1] > 0.5).mean():.3f}, "
            f"falsely {(rows[~is_kept, -1] > 0.5).mean():.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
