"""Tunes the model that tells whether what was said later replaces what was said earlier (`offbook.models.relation`).

    python -m benchmarks.memory.fit.relation MODEL.onnx OUT.npz       needs torch; some minutes on a GPU, hours without

The installed embedding model is kept as it is; what is fitted are products of two thin matrices that are added to its
own, and its vectors. First pairs that are put together from frames (`frames.jsonl.gz`), which teach the shapes, then
pairs that were written one by one (`pairs.jsonl.gz`), each with pairs of unrelated messages.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from offbook.models.bert_weights import LAYERS, MATRICES, read_weights
from offbook.models.minilm import MAX_PIECES, WordPiece

RELATIONS = ("replaces", "repeats", "other")
RANK, RATE, BATCH = 32, 1e-3, 32
FRAME_EPOCHS, PAIR_EPOCHS, OF_EACH_FRAME, FRAMES_MIXED_IN = 2, 6, 260, 3_000
MOST_PIECES, FRAME_PIECES = 110, 60

Pair = tuple[list[int], list[int], int]


def main(model: Path, out: Path) -> None:
    import torch

    random.seed(0)
    torch.manual_seed(0)
    wordpiece = WordPiece(MAX_PIECES)
    pairs = [_pair(wordpiece, one["earlier"], one["later"], one["relation"], MOST_PIECES) for one in rows_of("pairs")]
    frames = [_pair(wordpiece, *one, FRAME_PIECES) for one in combined(rows_of("frames"))]
    net = network(model)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net.to(device)
    epochs(net, frames, FRAME_EPOCHS, RATE, unrelated=0.15)
    epochs(net, pairs, PAIR_EPOCHS, RATE / 2, unrelated=0.3, mixed_in=frames)
    np.savez_compressed(out, **net.tuned())


def combined(frames: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Pairs of sentences with values put in: another one in the later, where the frame says so."""
    found = []
    for frame in frames:
        for _ in range(OF_EACH_FRAME):
            old, new = random.sample(frame["values"], 2)
            other = random.choice(frame.get("others") or [""])
            relation = random.choices(RELATIONS, (0.46, 0.1, 0.44))[0]
            if not frame.get(relation):
                continue
            texts = [random.choice(frame["earlier"]), random.choice(frame[relation])]
            first, second = (one.replace("{A}", old).replace("{B}", new).replace("{O}", other) for one in texts)
            found.append((first[:1].upper() + first[1:], second[:1].upper() + second[1:], relation))
    return found


def epochs(
    net: Any, pairs: list[Pair], count: int, rate: float, *, unrelated: float, mixed_in: list[Pair] | None = None
) -> None:
    import torch
    from torch.nn import functional

    net.train()
    vectors = list(net.vectors.values())
    matrices = [one for one in net.parameters() if one.requires_grad and all(one is not other for other in vectors)]
    groups = [{"params": matrices, "lr": rate}, {"params": vectors, "lr": rate * 0.3}]
    optimiser = torch.optim.AdamW(groups, weight_decay=0.01)
    rates = [group["lr"] for group in optimiser.param_groups]
    step = steps = 0
    for _ in range(count):
        strangers = [(random.choice(pairs)[0], one[1], 2) for one in random.sample(pairs, int(unrelated * len(pairs)))]
        some = [*pairs, *strangers, *(random.sample(mixed_in, FRAMES_MIXED_IN) if mixed_in else [])]
        random.shuffle(some)
        steps = steps or count * math.ceil(len(some) / BATCH)
        for start in range(0, len(some), BATCH):
            batch = some[start : start + BATCH]
            share = min(1, step / (0.06 * steps)) * max(0.0, 1 - step / steps)
            for group, most in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = most * share
            wanted = torch.tensor([one[2] for one in batch], device=net.device)
            loss = functional.cross_entropy(net(batch), wanted, label_smoothing=0.05)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(matrices + vectors, 1.0)
            optimiser.step()
            step += 1


def network(model: Path) -> Any:
    import torch
    from torch import nn
    from torch.nn import functional

    base = read_weights(model)

    def fixed(values: Any) -> Any:
        return nn.Parameter(torch.tensor(np.asarray(values, np.float32)), requires_grad=False)

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = fixed(base.words.astype(np.float32) * base.word_scales)
            self.positions, self.types = fixed(base.positions), fixed(base.types)
            self.matrices, self.a, self.b, self.vectors = (nn.ParameterDict() for _ in range(4))
            for at, layer in enumerate(base.matrices):
                for name in MATRICES:
                    rows, columns = layer[name].shape
                    self.matrices[f"{at}_{name}"] = fixed(layer[name])
                    self.a[f"{at}_{name}"] = nn.Parameter(torch.randn(rows, RANK) / math.sqrt(rows))
                    self.b[f"{at}_{name}"] = nn.Parameter(torch.zeros(RANK, columns))
            for name, value in base.vectors.items():
                self.vectors[name.replace(".", "/")] = nn.Parameter(torch.tensor(np.asarray(value, np.float32)))
            self.head = nn.Linear(768, len(RELATIONS))

        @property
        def device(self) -> Any:
            return self.head.weight.device

        def linear(self, rows: Any, at: int, name: str, bias: str) -> Any:
            added = functional.dropout(rows, 0.1, self.training) @ self.a[f"{at}_{name}"] @ self.b[f"{at}_{name}"]
            return rows @ self.matrices[f"{at}_{name}"] + added + self.vectors[bias.replace(".", "/")]

        def norm(self, rows: Any, name: str) -> Any:
            weight, bias = (self.vectors[f"{name}.{one}".replace(".", "/")] for one in ("weight", "bias"))
            return functional.layer_norm(rows, (384,), weight, bias, 1e-12)

        def forward(self, batch: list[Pair]) -> Any:
            texts = [[101, *first, 102, *second, 102] for first, second, _ in batch]
            kinds = [[0] * (len(first) + 2) + [1] * (len(second) + 1) for first, second, _ in batch]
            width = max(map(len, texts))
            ids = torch.tensor([one + [0] * (width - len(one)) for one in texts], device=self.device)
            types = torch.tensor([one + [0] * (width - len(one)) for one in kinds], device=self.device)
            mask = torch.tensor([[1.0] * len(one) + [0.0] * (width - len(one)) for one in texts], device=self.device)
            rows = self.words[ids] + self.positions[:width][None] + self.types[types]
            rows = self.norm(rows, "embeddings.LayerNorm")
            hidden = (1 - mask)[:, None, None, :] * -1e4
            for at in range(LAYERS):
                rows = self.layer(rows, at, hidden)
            mean = (rows * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            return self.head(torch.cat([rows[:, 0], mean], 1))

        def layer(self, rows: Any, at: int, hidden: Any) -> Any:
            name, (count, width, _) = f"encoder.layer.{at}", rows.shape

            def heads(which: str) -> Any:
                made = self.linear(rows, at, which, f"{name}.attention.self.{which}.bias")
                return made.view(count, width, 12, 32).transpose(1, 2)

            mixed = functional.scaled_dot_product_attention(
                heads("query"), heads("key"), heads("value"), attn_mask=hidden
            )
            mixed = mixed.transpose(1, 2).reshape(count, width, 384)
            made = self.linear(mixed, at, "output", f"{name}.attention.output.dense.bias")
            rows = self.norm(rows + functional.dropout(made, 0.1, self.training), f"{name}.attention.output.LayerNorm")
            wide = functional.gelu(self.linear(rows, at, "widen", f"{name}.intermediate.dense.bias"))
            made = self.linear(wide, at, "narrow", f"{name}.output.dense.bias")
            return self.norm(rows + functional.dropout(made, 0.1, self.training), f"{name}.output.LayerNorm")

        def tuned(self) -> dict[str, Any]:
            """What is added to the base, by the names that `offbook.models.bert` knows."""
            found = {}
            for at in range(LAYERS):
                for name in MATRICES:
                    found[f"{at}.{name}.a"] = self.a[f"{at}_{name}"]
                    found[f"{at}.{name}.b"] = self.b[f"{at}_{name}"]
            found |= {"relation.weight": self.head.weight.T, "relation.bias": self.head.bias}
            kept = {name: value.detach().cpu().numpy().astype(np.float16) for name, value in found.items()}
            for name, value in base.vectors.items():
                moved = self.vectors[name.replace(".", "/")].detach().cpu().numpy() - value
                kept[name] = moved.astype(np.float16)
            return kept

    return Network()


def _pair(wordpiece: WordPiece, earlier: str, later: str, relation: str, most: int) -> Pair:
    first, second = (wordpiece.pieces(text)[1:-1][:most] for text in (earlier, later))
    return first, second, RELATIONS.index(relation)


def rows_of(name: str) -> list[dict[str, Any]]:
    packed = files("benchmarks.memory.fit").joinpath(f"{name}.jsonl.gz").read_bytes()
    return [json.loads(line) for line in gzip.decompress(packed).decode().splitlines()]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
