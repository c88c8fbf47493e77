"""The forward pass of a small BERT in numpy: for a model that is tuned from the installed one, beside it, at a fifth of
the memory that a second session of the runtime would take. On the caller's thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from offbook.model.errors import ModelUnavailable

if TYPE_CHECKING:
    from numpy.typing import NDArray


EPSILON = 1e-12


class Pieces(NamedTuple):
    """A text as the model reads it: its pieces, and which of two texts each is of."""

    pieces: Sequence[int]
    types: Sequence[int]


class Bert:
    """Nothing in it changes after it was made, so threads share it without a lock."""

    def __init__(self, base: BertWeights, tuned: Mapping[str, NDArray[np.float32]]) -> None:
        """`tuned`: what is added to the base's matrices (`0.query`) and vectors, by their names, `types` among them."""
        self._base = base
        self._types = base.types + tuned.get("types", np.float32(0))
        self._vectors = {name: value + tuned.get(name, np.float32(0)) for name, value in base.vectors.items()}
        self._layers = [
            _Layer.of(
                f"encoder.layer.{at}",
                {name: matrices[name] + tuned.get(f"{at}.{name}", np.float32(0)) for name in MATRICES},
                self._vectors,
            )
            for at, matrices in enumerate(base.matrices)
        ]

    def hidden(self, texts: Sequence[Pieces]) -> list[NDArray[np.float32]]:
        """For each text a row for each of its pieces. All texts go through a layer together, without padding."""
        base = self._base
        pieces = [piece for one in texts for piece in one.pieces]
        places = np.concatenate([np.arange(len(one.pieces)) for one in texts])
        types = [kind for one in texts for kind in one.types]
        words = base.words[pieces] * base.word_scales[pieces]
        rows = self._norm(words + base.positions[places] + self._types[types], "embeddings.LayerNorm")
        ends = np.cumsum([len(one.pieces) for one in texts])
        for layer in self._layers:
            rows = self._through(layer, rows, ends)
        return np.split(rows, ends[:-1])

    def _through(self, layer: _Layer, rows: NDArray[np.float32], ends: NDArray[np.int64]) -> NDArray[np.float32]:
        count, width = rows.shape
        size = width // HEADS
        made = rows @ layer.attend
        made += layer.attend_bias
        query, key, value = made.reshape(count, 3, HEADS, size).transpose(1, 2, 0, 3)
        mixed = np.empty_like(rows)
        start = 0
        for end in ends:
            scores = query[:, start:end] @ key[:, start:end].transpose(0, 2, 1)
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=-1, keepdims=True)
            mixed[start:end] = (scores @ value[:, start:end]).transpose(1, 0, 2).reshape(end - start, -1)
            start = end
        made = mixed @ layer.output
        made += self._vectors[f"{layer.name}.attention.output.dense.bias"]
        made += rows
        rows = self._norm(made, f"{layer.name}.attention.output.LayerNorm")
        wide = rows @ layer.widen
        wide += self._vectors[f"{layer.name}.intermediate.dense.bias"]
        made = _gelu(wide) @ layer.narrow
        made += self._vectors[f"{layer.name}.output.dense.bias"]
        made += rows
        return self._norm(made, f"{layer.name}.output.LayerNorm")

    def _norm(self, rows: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        centred: NDArray[np.float32] = rows - rows.mean(axis=-1, keepdims=True)
        spread = np.einsum("rw,rw->r", centred, centred)[:, None] / np.float32(rows.shape[1])
        centred /= np.sqrt(spread + np.float32(EPSILON))
        centred *= self._vectors[f"{name}.weight"]
        centred += self._vectors[f"{name}.bias"]
        return centred


class _Layer(NamedTuple):
    """Its matrices; those of attention side by side, so that one product makes query, key and value."""

    name: str
    attend: NDArray[np.float32]
    attend_bias: NDArray[np.float32]
    output: NDArray[np.float32]
    widen: NDArray[np.float32]
    narrow: NDArray[np.float32]

    @classmethod
    def of(
        cls, name: str, matrices: Mapping[str, NDArray[np.float32]], vectors: Mapping[str, NDArray[np.float32]]
    ) -> _Layer:
        scale = np.float32((matrices["query"].shape[1] / HEADS) ** -0.5)
        biases = {which: vectors[f"{name}.attention.self.{which}.bias"] for which in ("query", "key", "value")}
        attend = np.concatenate([matrices["query"] * scale, matrices["key"], matrices["value"]], axis=1)
        attend_bias = np.concatenate([biases["query"] * scale, biases["key"], biases["value"]])
        return cls(name, attend, attend_bias, matrices["output"], matrices["widen"], matrices["narrow"])


def _gelu(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """In place, by the error function's usual approximation (Abramowitz and Stegun 7.1.26): numpy has none."""
    scaled = np.abs(values)
    scaled *= np.float32(0.7071067811865476)
    step = scaled * np.float32(0.3275911)
    step += np.float32(1)
    np.reciprocal(step, out=step)
    series = step * np.float32(1.061405429)
    for weight in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series += np.float32(weight)
        series *= step
    scaled *= scaled
    np.negative(scaled, out=scaled)
    series *= np.exp(scaled, out=scaled)
    np.subtract(np.float32(1), series, out=series)
    np.copysign(series, values, out=series)
    series += np.float32(1)
    series *= np.float32(0.5)
    values *= series
    return values


# ── The weights of the embedding model that is installed, read from its ONNX file ──
# For models that are tuned from it.
# Only what is needed of the format (protobuf: a field's number and wire type, then its value) is read here, so that
# no library for it has to be installed.


LAYERS, HEADS = 6, 12
MATRICES = ("query", "key", "value", "output", "widen", "narrow")
"""Of each layer, in the order in which the file holds them."""
_GRAPH, _INITIALIZER = 7, 5
_DIMS, _TYPE, _NAME, _RAW = 1, 2, 8, 9
_FLOAT, _INT8 = 1, 3


class BertWeights(NamedTuple):
    """Matrices as whole numbers and their scales; vectors as they are."""

    words: NDArray[np.int8]
    word_scales: NDArray[np.float32]
    positions: NDArray[np.float32]
    types: NDArray[np.float32]
    matrices: list[dict[str, NDArray[np.float32]]]
    """Of each layer, by `MATRICES`."""
    vectors: dict[str, NDArray[np.float32]]
    """Biases and norms, by their names in the file without `inner.`."""


def read_weights(path: Path) -> BertWeights:
    import numpy as np

    tensors = dict(_tensors(path.read_bytes()))
    scaled = [name.removesuffix("_q") for name in tensors if name.startswith("val_") and name.endswith("_q")]
    if len(scaled) != LAYERS * len(MATRICES):
        raise ModelUnavailable(f"{path} is not the model that is expected there: run `offbook model install`")
    matrices = [(tensors[f"{name}_q"] * tensors[f"{name}_scale"]).astype(np.float32) for name in scaled]
    width = len(MATRICES)
    embeddings = "inner.embeddings"
    positions = f"{embeddings}.position_embeddings.weight"
    return BertWeights(
        words=tensors[f"{embeddings}.word_embeddings.weight_q"],
        word_scales=tensors[f"{embeddings}.word_embeddings.weight_scale"],
        positions=(tensors[f"{positions}_q"] * tensors[f"{positions}_scale"]).astype(np.float32),
        types=tensors[f"{embeddings}.token_type_embeddings.weight"],
        matrices=[dict(zip(MATRICES, matrices[at * width : (at + 1) * width], strict=True)) for at in range(LAYERS)],
        vectors={
            name.removeprefix("inner."): value
            for name, value in tensors.items()
            if name.endswith((".bias", "LayerNorm.weight"))
        },
    )


def _tensors(data: bytes) -> Iterator[tuple[str, NDArray[Any]]]:
    import numpy as np

    types: dict[int, np.dtype[Any]] = {_FLOAT: np.dtype("<f4"), _INT8: np.dtype("i1")}
    for field, graph in _fields(memoryview(data)):
        if field != _GRAPH or isinstance(graph, int):
            continue
        for inner, tensor in _fields(graph):
            if inner != _INITIALIZER or isinstance(tensor, int):
                continue
            name, kind, shape, raw = "", 0, [], None
            for number, value in _fields(tensor):
                if number == _DIMS:
                    shape += [value] if isinstance(value, int) else _packed(value)
                elif number == _TYPE and isinstance(value, int):
                    kind = value
                elif number == _NAME and not isinstance(value, int):
                    name = bytes(value).decode()
                elif number == _RAW and not isinstance(value, int):
                    raw = value
            if raw is not None and kind in types:
                yield name, np.frombuffer(raw, types[kind]).reshape(shape)


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
        elif wire == 2:
            size, at = _varint(data, at)
            yield number, data[at : at + size]
            at += size
        else:
            at += {1: 8, 5: 4}[wire]


def _packed(data: memoryview) -> list[int]:
    found: list[int] = []
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        found.append(value)
    return found


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
