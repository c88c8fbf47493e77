"""The weights of the embedding model that is installed, read from its ONNX file: for models that are tuned from it.

Only what is needed of the format (protobuf: a field's number and wire type, then its value) is read here, so that no
library for it has to be installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from offbook.model.errors import ModelUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
