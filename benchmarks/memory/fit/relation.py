"""Fits the model that tells whether what was said later replaces what was said earlier (`offbook.models.relation`).

    python -m benchmarks.memory.fit.relation MODEL.onnx ../shared/data OUT      needs torch; ten minutes on a GPU

Starts from the installed embedding model. First pairs that are made from frames, which teach the shapes; then, three
times from there, the pairs that were written one by one, with unrelated messages and ordinary conversations beside
them (`relation_data`). The three are averaged, and of what then differs from the embedding model, a product of two thin
matrices is kept for each of its matrices. Writes OUT/relation.npz, and OUT/relation-gate.npz (`relation_gate`).
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.memory.fit.relation_data import (
    RELATIONS,
    REPLACES,
    Example,
    Examples,
    auc,
    read_examples,
    shuffled_batches,
    strangers,
)
from benchmarks.memory.fit.relation_gate import fit_gate, gate_scores, save_gate
from offbook.models.bert import EPSILON, Pieces
from offbook.models.bert_weights import HEADS, LAYERS, MATRICES, BertWeights, read_weights

START, END = 101, 102
"""The pieces around a text."""
WIDTH = 384
DROPOUT, LABEL_SMOOTHING, WEIGHT_DECAY, WARM_UP = 0.1, 0.05, 0.01, 0.06
TEXTS_AT_ONCE = 256
RANK = 96
"""Of the products that are kept."""
FRAME_STRANGERS, STRANGERS = 0.25, 0.7
"""Pairs of unrelated messages, as a share of those that were written."""
OF_ORDINARY = 0.6
"""Weight of a pair of an ordinary conversation: a few of them do replace."""
FRAMES_MIXED_IN = 3_000


class Training(NamedTuple):
    seed: int
    epochs: int
    rate: float


ON_FRAMES = Training(seed=0, epochs=1, rate=1.5e-4)
FINE_TUNINGS = (
    Training(seed=1, epochs=4, rate=1.5e-4),
    Training(seed=2, epochs=6, rate=1.5e-4),
    Training(seed=3, epochs=4, rate=2.5e-4),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="the installed embedding model, an ONNX file")
    parser.add_argument("data", type=Path, help="the folder of the ordinary conversations")
    parser.add_argument("out", type=Path, help="the folder to write to")
    parser.add_argument("--hold-out", action="store_true", help="leave out every eighth case and print the AUC on them")
    given = parser.parse_args()
    examples = read_examples(given.data, hold_out=given.hold_out)
    print(", ".join(f"{len(some)} {name}" for name, some in examples._asdict().items()), flush=True)
    base = read_weights(given.model)
    given.out.mkdir(parents=True, exist_ok=True)

    embed = Network.of(base).vectors
    gate = fit_gate(examples, embed)
    save_gate(gate, given.out / "relation-gate.npz")
    if examples.held_out:
        print(f"gate: AUC {auc(gate_scores(gate, embed, examples.held_out), examples.held_out):.4f}", flush=True)

    additions = kept_additions(fitted(base, examples), base)
    np.savez_compressed(given.out / "relation.npz", **additions)
    if examples.held_out:
        network = Network.of(base, additions)
        print(f"model: AUC {auc(network.scores(examples.held_out), examples.held_out):.4f}", flush=True)


# ── The network ──


class Network:
    """The embedding model with a head that tells the relation, in torch.

    Its matrices, its vectors and what marks the later text (`types`) are `tuned`; words and positions are not.
    """

    def __init__(self, tables: dict[str, Any], tuned: dict[str, Any]) -> None:
        self._tables = tables
        self.tuned = {name: value.detach().clone().requires_grad_() for name, value in tuned.items()}
        self.device = tables["words"].device
        self.is_training = False

    @classmethod
    def of(cls, base: BertWeights, additions: dict[str, Any] | None = None) -> Network:
        """The base, with a new head; or with what `kept_additions` gave."""
        import torch

        def tensors(values: dict[str, NDArray[Any]]) -> dict[str, Any]:
            device = "cuda" if torch.cuda.is_available() else "cpu"
            return {name: torch.tensor(np.asarray(one, np.float32), device=device) for name, one in values.items()}

        words = base.words.astype(np.float32) * base.word_scales
        tuned = base_values(base)
        if additions is None:
            head = torch.nn.Linear(2 * WIDTH, len(RELATIONS))
            tuned |= {"relation.weight": head.weight.detach().numpy().T, "relation.bias": head.bias.detach().numpy()}
        else:
            added = {name: value.astype(np.float32) for name, value in additions.items()}
            for name, value in tuned.items():
                tuned[name] = value + (added[name] if name in added else added[f"{name}.a"] @ added[f"{name}.b"])
            tuned |= {name: added[name] for name in ("relation.weight", "relation.bias")}
        return cls(tensors({"words": words, "positions": base.positions}), tensors(tuned))

    def with_tuned(self, tuned: dict[str, Any]) -> Network:
        return Network(self._tables, tuned)

    def logits(self, examples: Sequence[Example]) -> Any:
        """A row for each pair, a column for each of `RELATIONS`."""
        import torch

        rows, mask = self._hidden([_both(one) for one in examples])
        ends = torch.cat([rows[:, 0], _mean(rows, mask)], 1)
        return self._dropped(ends) @ self.tuned["relation.weight"] + self.tuned["relation.bias"]

    def scores(self, examples: Sequence[Example]) -> list[float]:
        """For each pair how likely it is that the later takes the earlier's place."""
        import torch

        found: list[float] = []
        with torch.no_grad():
            for start in range(0, len(examples), TEXTS_AT_ONCE):
                logits = self.logits(examples[start : start + TEXTS_AT_ONCE])
                found += logits.softmax(1)[:, REPLACES].tolist()
        return found

    def vectors(self, texts: Sequence[list[int]]) -> Any:
        """A row of length one for each text, as the embedding model gives it."""
        import torch
        from torch.nn import functional

        found = []
        with torch.no_grad():
            for start in range(0, len(texts), TEXTS_AT_ONCE):
                some = [
                    Pieces([START, *one, END], [0] * (len(one) + 2)) for one in texts[start : start + TEXTS_AT_ONCE]
                ]
                found.append(functional.normalize(_mean(*self._hidden(some)), dim=1))
        return torch.cat(found)

    def _hidden(self, texts: Sequence[Pieces]) -> tuple[Any, Any]:
        """For each text a row for each of its pieces, padded to the longest; and which of them are pieces (1 or 0)."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        def padded(rows: Sequence[Sequence[int]]) -> Any:
            return pad_sequence([torch.tensor(row) for row in rows], batch_first=True).to(self.device)

        pieces, types = padded([one.pieces for one in texts]), padded([one.types for one in texts])
        mask = padded([[1] * len(one.pieces) for one in texts]).float()
        count, width = pieces.shape
        tables = self._tables
        rows = tables["words"][pieces] + tables["positions"][:width] + self.tuned["types"][types]
        rows = self._dropped(self._norm(rows, "embeddings.LayerNorm"))
        hidden = ((1 - mask)[:, None, None, :] * -1e4).expand(count, HEADS, width, width)
        for at in range(LAYERS):
            rows = self._layer(rows, at, hidden)
        return rows, mask

    def _layer(self, rows: Any, at: int, hidden: Any) -> Any:
        from torch.nn import functional

        name, (count, width, _) = f"encoder.layer.{at}", rows.shape

        def heads(which: str) -> Any:
            made = self._linear(rows, f"{at}.{which}", f"{name}.attention.self.{which}.bias")
            return made.view(count, width, HEADS, WIDTH // HEADS).transpose(1, 2)

        mixed = functional.scaled_dot_product_attention(heads("query"), heads("key"), heads("value"), attn_mask=hidden)
        mixed = mixed.transpose(1, 2).reshape(count, width, WIDTH)
        made = self._linear(mixed, f"{at}.output", f"{name}.attention.output.dense.bias")
        rows = self._norm(rows + self._dropped(made), f"{name}.attention.output.LayerNorm")
        wide = functional.gelu(self._linear(rows, f"{at}.widen", f"{name}.intermediate.dense.bias"))
        made = self._linear(wide, f"{at}.narrow", f"{name}.output.dense.bias")
        return self._norm(rows + self._dropped(made), f"{name}.output.LayerNorm")

    def _linear(self, rows: Any, matrix: str, bias: str) -> Any:
        return rows @ self.tuned[matrix] + self.tuned[bias]

    def _norm(self, rows: Any, name: str) -> Any:
        from torch.nn import functional

        weight, bias = self.tuned[f"{name}.weight"], self.tuned[f"{name}.bias"]
        return functional.layer_norm(rows, (WIDTH,), weight, bias, EPSILON)

    def _dropped(self, rows: Any) -> Any:
        from torch.nn import functional

        return functional.dropout(rows, DROPOUT, self.is_training)


def base_values(base: BertWeights) -> dict[str, NDArray[np.float32]]:
    """What is tuned of the base, by name: its matrices (`0.query`), its vectors, and `types`."""
    matrices = {f"{at}.{name}": layer[name] for at, layer in enumerate(base.matrices) for name in MATRICES}
    return {**matrices, **base.vectors, "types": base.types}


def _both(example: Example) -> Pieces:
    first, second = [START, *example.earlier, END], [*example.later, END]
    return Pieces(first + second, [0] * len(first) + [1] * len(second))


def _mean(rows: Any, mask: Any) -> Any:
    return (rows * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


# ── The training ──


def fitted(base: BertWeights, examples: Examples) -> Network:
    """The average of the fine-tunings, which all start from the same training on frames."""
    import torch

    torch.manual_seed(ON_FRAMES.seed)
    network = Network.of(base)
    train(network, ON_FRAMES, lambda: examples.frames + strangers(examples.frames, FRAME_STRANGERS))
    written = examples.pairs + examples.cases
    ordinary = [one._replace(weight=OF_ORDINARY) for one in examples.ordinary]

    def epoch() -> list[Example]:
        return written + strangers(written, STRANGERS) + ordinary + random.sample(examples.frames, FRAMES_MIXED_IN)

    found = []
    for training in FINE_TUNINGS:
        tuned = network.with_tuned(network.tuned)
        train(tuned, training, epoch)
        found.append(tuned.tuned)
    return network.with_tuned({name: torch.stack([one[name] for one in found]).mean(0) for name in network.tuned})


def train(network: Network, training: Training, epoch: Callable[[], list[Example]]) -> None:
    """`epoch` gives the pairs of an epoch, some of them drawn anew each time."""
    import torch
    from torch.nn import functional

    random.seed(training.seed)
    torch.manual_seed(training.seed)
    batches = [batch for _ in range(training.epochs) for batch in shuffled_batches(epoch())]
    weights = list(network.tuned.values())
    optimiser = torch.optim.AdamW(weights, training.rate, weight_decay=WEIGHT_DECAY)

    def share_of_rate(step: int) -> float:
        return min(1.0, step / (WARM_UP * len(batches))) * (1 - step / len(batches))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, share_of_rate)
    network.is_training = True
    for step, batch in enumerate(batches):
        with torch.autocast(network.device.type, dtype=torch.bfloat16, enabled=network.device.type == "cuda"):
            logits = network.logits(batch)
        relations = torch.tensor([one.relation for one in batch], device=network.device)
        shares = torch.tensor([one.weight for one in batch], device=network.device)
        losses = functional.cross_entropy(logits.float(), relations, label_smoothing=LABEL_SMOOTHING, reduction="none")
        loss = (losses * shares).mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimiser.step()
        schedule.step()
        if step % 500 == 0:
            print(f"{training}: step {step} of {len(batches)}, loss {loss.item():.3f}", flush=True)
    network.is_training = False


def kept_additions(network: Network, base: BertWeights) -> dict[str, Any]:
    """What is added to the base, by the names that `offbook.models.bert` knows, and the head."""
    tuned = {name: value.detach().cpu().numpy() for name, value in network.tuned.items()}
    found = {name: tuned.pop(name) for name in ("relation.weight", "relation.bias")}
    for name, value in base_values(base).items():
        moved = tuned[name] - value
        if name == "types" or moved.ndim == 1:
            found[name] = moved
            continue
        left, sizes, right = np.linalg.svd(moved, full_matrices=False)
        roots = np.sqrt(sizes[:RANK])
        found |= {f"{name}.a": left[:, :RANK] * roots, f"{name}.b": roots[:, None] * right[:RANK]}
    return {name: value.astype(np.float16) for name, value in found.items()}


if __name__ == "__main__":
    main()
