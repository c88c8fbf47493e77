"""Fits the model that tells whether what was said later replaces what was said earlier (`offbook.models.relation`).

    python -m benchmarks.memory.fit.relation MODEL.onnx PAIRS OUT                            needs torch and a GPU
    python -m benchmarks.memory.fit.relation MODEL.onnx PAIRS OUT --from relation.npz --taught A.npy B.npy

PAIRS is what `relation_data` writes. Starts from the installed embedding model, first with pairs that are made from
frames, which teach the shapes. Then, in each epoch: the pairs that were written, unrelated messages and ordinary
conversations beside them, each written otherwise (`otherwise`) and read twice with different parts of the network left
out; the two readings must agree (R-Drop).

With `--from` it goes on from weights that were fitted before, taught by what larger readers say of the same pairs and
of more that nobody labelled (`relation_teacher` writes it): the mean of theirs and of the weights before counts for
most of what is wanted. Two runs with other seeds, whose mean is mixed with the weights before. What then differs from
the embedding model is kept in whole numbers, with a scale for each column. Writes OUT/relation.npz.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.memory.fit.examples import RELATIONS, REPLACES, Example, Examples, load_examples, strangers
from benchmarks.memory.fit.network import auc, values_of
from benchmarks.memory.fit.relation_data import otherwise
from offbook.models.bert import EPSILON, HEADS, MATRICES, read_weights
from offbook.models.relation import SCALE, read_additions

START, END = 101, 102
"""The pieces around a text."""
PIECES_A_BATCH, PIECES_READ_AT_ONCE = 8_192, 32_768
LABEL_SMOOTHING, DROPOUT, AGREEMENT = 0.05, 0.12, 2.0
WARM_UP, WEIGHT_DECAY = 0.06, 0.01
STRANGERS = 0.5
"""Pairs of unrelated messages, as a share of those that were written."""
OF_ORDINARY = 0.6
"""Weight of a pair of an ordinary conversation: a few of them do replace."""
CHANGES_READ = 4
"""How often in an epoch: they are few beside the cases, and tell best whose statement it is."""
FRAMES_MIXED_IN, FRAME_STRANGERS = 4_000, 0.25
FIXED = ("words", "positions")
NAMES = {"head.weight": "relation.weight", "head.bias": "relation.bias"}
"""As the package calls them."""
Weights = dict[str, Any]


class Training(NamedTuple):
    epochs: int
    rate: float


ON_FRAMES, ON_PAIRS, TAUGHT = Training(1, 1.5e-4), Training(5, 1.5e-4), Training(9, 2e-4)
OF_TAUGHT = 0.7
"""How much what the larger readers say counts beside the label."""
OF_RUNS = 0.6
"""The rest are the weights before, which know better what has nothing to do with each other."""
UNKNOWN, OF_UNLABELLED, FRAMES_TAUGHT = -1, 0.5, 8_000
LARGEST = 127
"""Of the whole numbers that are kept."""


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="the installed embedding model, an ONNX file")
    parser.add_argument("pairs", type=Path, help="what relation_data wrote")
    parser.add_argument("out", type=Path, help="the folder to write to")
    parser.add_argument("--from", dest="before", type=Path, help="weights to go on from")
    parser.add_argument("--taught", type=Path, nargs="+", default=[], help="what larger readers say of the pairs")
    parser.add_argument("--seed", type=int, default=21)
    given = parser.parse_args()
    examples = load_examples(given.pairs)
    base = values_of(read_weights(given.model))
    given.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(given.seed)
    rng = random.Random(given.seed)

    if given.before:
        before = _on_device(with_additions(base, given.before))
        judge("before", before, examples.held_out)
        pairs = teachable(examples)
        said = (probabilities(before, pairs), *(_softmax(np.load(path).astype(np.float32)) for path in given.taught))
        wanted = _softmax(np.mean([np.log(one + 1e-7) for one in said], axis=0))
        runs = []
        for seed in (given.seed, given.seed + 1):
            torch.manual_seed(seed)
            run = {name: value.clone() for name, value in before.items()}
            teach(run, pairs, wanted, random.Random(seed))
            runs.append(run)
        mean = {name: (runs[0][name] + runs[1][name]) / 2 for name in before}
        weights = {name: OF_RUNS * mean[name] + (1 - OF_RUNS) * before[name] for name in before}
    else:
        head = np.random.default_rng(given.seed).normal(0, 0.04, (2 * base["words"].shape[1], len(RELATIONS)))
        weights = _on_device(base | {"head.weight": head, "head.bias": np.zeros(len(RELATIONS))})
        fit(weights, [examples.frames + strangers(examples.frames, FRAME_STRANGERS)], ON_FRAMES, rng)
        fit(weights, [all_of(examples, rng) + examples.restated for _ in range(ON_PAIRS.epochs)], ON_PAIRS, rng)
    judge("after", weights, examples.held_out)
    kept = additions({name: value.detach().cpu().numpy() for name, value in weights.items()}, base)
    np.savez_compressed(given.out / "relation.npz", **kept)
    judge("as it is kept", _on_device(with_additions(base, given.out / "relation.npz")), examples.held_out)


def all_of(examples: Examples, rng: random.Random) -> list[Example]:
    """What one epoch reads: each time written otherwise."""
    written = examples.pairs + examples.cases + CHANGES_READ * examples.changes
    ordinary = [one._replace(weight=OF_ORDINARY) for one in examples.ordinary]
    frames = rng.sample(examples.frames, min(FRAMES_MIXED_IN, len(examples.frames)))
    return otherwise(written + strangers(written, STRANGERS), rng) + ordinary + frames


def teachable(examples: Examples) -> list[Example]:
    """In the order in which `relation_teacher` labels them; the unlabelled last."""
    frames = examples.frames[:FRAMES_TAUGHT]
    ordinary = [one._replace(weight=OF_ORDINARY) for one in examples.ordinary]
    unlabelled = [one._replace(relation=UNKNOWN, weight=OF_UNLABELLED) for one in examples.unlabelled]
    return examples.pairs + examples.cases + examples.restated + examples.changes + frames + ordinary + unlabelled


def fit(weights: Weights, epochs: Sequence[Sequence[Example]], how: Training, rng: random.Random) -> None:
    """In place, by all the examples of each epoch, read twice: both must agree."""
    from torch.nn import functional

    def loss_of(some: list[Example], _places: Sequence[int]) -> Any:
        first, second = (functional.log_softmax(told(weights, some, DROPOUT), -1) for _ in range(2))
        misses = -(_labels(some, first) * (first + second)).sum(-1) / 2
        apart = ((first.exp() - second.exp()) * (first - second)).sum(-1) / 2
        return misses + AGREEMENT * apart

    descend(weights, epochs, how, rng, loss_of)


def teach(weights: Weights, pairs: Sequence[Example], wanted: NDArray[np.float32], rng: random.Random) -> None:
    """In place: what is `wanted` of each pair counts for most, its label for the rest where it has one."""
    import torch
    from torch.nn import functional

    said = torch.tensor(wanted, device=weights["words"].device)

    def loss_of(some: list[Example], places: Sequence[int]) -> Any:
        found = functional.log_softmax(told(weights, some, DROPOUT), -1)
        known = torch.tensor([[float(one.relation != UNKNOWN)] for one in some], device=said.device)
        share = 1 - (1 - OF_TAUGHT) * known
        aim = share * said[list(places)] + (1 - share) * _labels(some, found)
        return -(aim * found).sum(-1)

    descend(weights, [otherwise(pairs, rng) for _ in range(TAUGHT.epochs)], TAUGHT, rng, loss_of)


def _labels(some: Sequence[Example], like: Any) -> Any:
    import torch

    wanted = torch.full_like(like, LABEL_SMOOTHING / len(RELATIONS))
    wanted[range(len(some)), [max(one.relation, 0) for one in some]] += 1 - LABEL_SMOOTHING
    return wanted


def descend(
    weights: Weights,
    epochs: Sequence[Sequence[Example]],
    how: Training,
    rng: random.Random,
    loss_of: Callable[[list[Example], Sequence[int]], Any],
    most_pieces: int = PIECES_A_BATCH,
) -> None:
    """One pass over the batches of all epochs, in place."""
    import torch

    batches = [(examples, places) for examples in epochs for places in batches_of(examples, most_pieces, rng)]
    tuned = [value.requires_grad_() for name, value in weights.items() if name not in FIXED]
    optimiser = torch.optim.AdamW(tuned, lr=how.rate, weight_decay=WEIGHT_DECAY, betas=(0.9, 0.98))
    warm_up = max(1, int(WARM_UP * len(batches)))
    for number, (examples, places) in enumerate(batches):
        some = [examples[place] for place in places]
        cooling = 0.5 * (1 + math.cos(math.pi * max(0, number - warm_up) / max(1, len(batches) - warm_up)))
        for group in optimiser.param_groups:
            group["lr"] = how.rate * min(1.0, (number + 1) / warm_up) * cooling
        losses = loss_of(some, places)
        share = torch.tensor([one.weight for one in some], device=losses.device)
        loss = (losses * share / share.sum()).sum()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(tuned, 1.0)
        optimiser.step()
        if (number + 1) % 400 == 0:
            print(f"step {number + 1} of {len(batches)}: {float(loss):.4f}", flush=True)
    for value in tuned:
        value.requires_grad_(False)


def told(weights: Weights, examples: Sequence[Example], dropout: float = 0.0) -> Any:
    """A row for each pair, a column for each of `RELATIONS`. As `offbook.models.bert` reads them."""
    import torch
    from torch.nn import functional

    def norm(rows: Any, name: str) -> Any:
        return functional.layer_norm(rows, rows.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], EPSILON)

    def dropped(rows: Any) -> Any:
        return functional.dropout(rows, dropout) if dropout else rows

    words = weights["words"]
    pieces, types = (torch.from_numpy(part).to(words.device) for part in _padded(examples))
    count, length = pieces.shape
    width = words.shape[1]
    is_there = pieces > 0
    rows = words[pieces] + weights["positions"][:length] + weights["types"][types]
    rows = dropped(norm(rows, "embeddings.LayerNorm"))
    for at in range(sum(name.endswith(".query") for name in weights)):
        name = f"encoder.layer.{at}"
        heads = [
            (rows @ weights[f"{at}.{which}"] + weights[f"{name}.attention.self.{which}.bias"])
            .view(count, length, HEADS, width // HEADS)
            .transpose(1, 2)
            for which in MATRICES[:3]
        ]
        mixed = functional.scaled_dot_product_attention(*heads, attn_mask=is_there[:, None, None, :])
        mixed = mixed.transpose(1, 2).reshape(count, length, width)
        made = mixed @ weights[f"{at}.output"] + weights[f"{name}.attention.output.dense.bias"]
        rows = norm(rows + dropped(made), f"{name}.attention.output.LayerNorm")
        wide = functional.gelu(rows @ weights[f"{at}.widen"] + weights[f"{name}.intermediate.dense.bias"])
        made = wide @ weights[f"{at}.narrow"] + weights[f"{name}.output.dense.bias"]
        rows = norm(rows + dropped(made), f"{name}.output.LayerNorm")
    read = is_there[..., None].float()
    ends = torch.cat([rows[:, 0], (rows * read).sum(1) / read.sum(1)], 1)
    return ends @ weights["head.weight"] + weights["head.bias"]


def judge(name: str, weights: Weights, held_out: Sequence[Example]) -> None:
    """How well it tells what replaces from what does not."""
    if not held_out:
        return
    scores = probabilities(weights, held_out)[:, REPLACES]
    is_so = np.array([one.relation == REPLACES for one in held_out])
    least = np.quantile(scores[~is_so], 0.98)
    print(f"{name}: AUC {auc(scores, is_so):.4f}, found at 2 % false {(scores[is_so] > least).mean():.3f}", flush=True)


def probabilities(weights: Weights, examples: Sequence[Example]) -> NDArray[np.float32]:
    """A row for each pair, a column for each of `RELATIONS`."""
    import torch

    found = np.zeros((len(examples), len(RELATIONS)), np.float32)
    with torch.no_grad():
        for places in batches_of(examples, PIECES_READ_AT_ONCE):
            found[places] = told(weights, [examples[place] for place in places]).softmax(-1).cpu().numpy()
    return found


def _softmax(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: NDArray[np.float32] = odds / odds.sum(axis=1, keepdims=True)
    return shares


def batches_of(examples: Sequence[Example], most_pieces: int, rng: random.Random | None = None) -> list[list[int]]:
    """Places of pairs of about the same length, in another order each time where there is `rng`."""
    order = list(range(len(examples)))
    if rng:
        rng.shuffle(order)
    found: list[list[int]] = []
    for start in range(0, len(order), 6_000):
        batch: list[int] = []
        for place in sorted(order[start : start + 6_000], key=lambda place: _length(examples[place])):
            if batch and _length(examples[place]) * (len(batch) + 1) > most_pieces:
                found.append(batch)
                batch = []
            batch.append(place)
        found.append(batch)
    if rng:
        rng.shuffle(found)
    return found


def _length(example: Example) -> int:
    return len(example.earlier) + len(example.later) + 3


def _padded(examples: Sequence[Example]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    pieces = np.zeros((len(examples), max(map(_length, examples))), np.int64)
    types = np.zeros_like(pieces)
    for at, one in enumerate(examples):
        first, second = [START, *one.earlier, END], [*one.later, END]
        pieces[at, : len(first) + len(second)] = first + second
        types[at, len(first) : len(first) + len(second)] = 1
    return pieces, types


def _on_device(weights: Weights) -> Weights:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return {name: torch.tensor(np.array(value, np.float32), device=device) for name, value in weights.items()}


def with_additions(base: Weights, path: Path) -> Weights:
    added = read_additions(path)
    heads = {ours: added[theirs] for ours, theirs in NAMES.items()}
    return heads | {name: value + added.get(name, np.float32(0)) for name, value in base.items()}


def additions(weights: Weights, base: Weights) -> dict[str, NDArray[Any]]:
    """What is added to the base, by the names that `offbook.models.bert` knows, and the head."""
    found: dict[str, NDArray[Any]] = {}
    for name, value in weights.items():
        if name in NAMES:
            found[NAMES[name]] = value.astype(np.float16)
        elif name == "types" or value.ndim == 1:
            found[name] = (value - base[name]).astype(np.float16)
        elif name not in FIXED:
            change = value - base[name]
            scale = (np.abs(change).max(axis=0, keepdims=True) / LARGEST).astype(np.float16)
            whole = np.round(change / np.maximum(scale.astype(np.float32), np.finfo(np.float16).tiny))
            found |= {name: np.clip(whole, -LARGEST, LARGEST).astype(np.int8), name + SCALE: scale}
    return found


if __name__ == "__main__":
    main()
