"""Small models made for a test: a tokenizer of whole words and an ONNX graph, in a folder as the hubs have them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = (
    "query",
    "passage",
    ":",
    "what",
    "does",
    "the",
    "cat",
    "eat",
    "fish",
    "a",
    "dog",
    "chases",
    "ball",
    "ferry",
    "leaves",
    "at",
    "nine",
    "in",
    "morning",
    "die",
    "katze",
    "frisst",
    "fisch",
)
SAME = {"katze": "cat", "frisst": "eat", "die": "the", "fisch": "fish"}
"""Words of another language that the model takes for these."""
DIMENSIONS = len(SPECIAL) + len(WORDS)
FLOAT, INT64 = 1, 7


# ── as protocol buffers are written, of which ONNX files are made ──


def _varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _node(kind: str, inputs: Sequence[str], output: str, **numbers: int) -> bytes:
    attributes = [_field(1, name) + _field(3, value) + _field(20, 2) for name, value in numbers.items()]
    fields = [*(_field(1, name) for name in inputs), _field(2, output), _field(4, kind)]
    return b"".join([*fields, *(_field(5, each) for each in attributes)])


def _tensor(name: str, values: NDArray[np.float32] | NDArray[np.int64]) -> bytes:
    kind = FLOAT if values.dtype == np.float32 else INT64
    dims = b"".join(_field(1, length) for length in values.shape)
    return dims + _field(2, kind) + _field(8, name) + _field(9, values.tobytes())


def _value(name: str, kind: int, dims: Sequence[str | int]) -> bytes:
    shape = b"".join(_field(1, _field(2 if isinstance(dim, str) else 1, dim)) for dim in dims)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, shape)))


def _graph(nodes: Sequence[bytes], constants: Sequence[bytes], inputs: Sequence[str], output: bytes) -> bytes:
    given = [_value(name, INT64, ("texts", "tokens")) for name in inputs]
    fields = [*(_field(1, node) for node in nodes), _field(2, "small"), *(_field(5, each) for each in constants)]
    graph = b"".join([*fields, *(_field(11, each) for each in given), _field(12, output)])
    return _field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 13))


# ── the models ──


def _tokenizer(folder: Path) -> NDArray[np.float32]:
    """Writes it; what each of its words means is a direction, the same for those that mean the same."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    numbers = {piece: number for number, piece in enumerate((*SPECIAL, *WORDS))}
    tokenizer = Tokenizer(WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()  # type: ignore[assignment]
    tokenizer.post_processor = TemplateProcessing(  # type: ignore[assignment]
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", numbers["[CLS]"]), ("[SEP]", numbers["[SEP]"])],
    )
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    table = np.zeros((DIMENSIONS, DIMENSIONS), dtype=np.float32)
    for word in WORDS:
        table[numbers[word], numbers[SAME.get(word, word)]] = 1.0
    table[numbers["[UNK]"], numbers["[UNK]"]] = table[numbers["[CLS]"], numbers["[CLS]"]] = 0.25
    return table


def embedding_folder(folder: Path) -> Path:
    """Vectors of tokens, DIMENSIONS numbers each."""
    table = _tokenizer(folder)
    nodes = [
        _node("Gather", ["table", "input_ids"], "plain"),
        _node("Cast", ["attention_mask"], "mask", to=FLOAT),
        _node("Unsqueeze", ["mask", "last"], "wide"),
        _node("Mul", ["plain", "wide"], "last_hidden_state"),
    ]
    constants = [_tensor("table", table), _tensor("last", np.array([2]))]
    output = _value("last_hidden_state", FLOAT, ("texts", "tokens", DIMENSIONS))
    (folder / "model.onnx").write_bytes(_graph(nodes, constants, ("input_ids", "attention_mask"), output))
    return folder


def cross_encoder_folder(folder: Path) -> Path:
    """How many words a pair of texts shares."""
    table = _tokenizer(folder)
    nodes = [
        _node("Gather", ["table", "input_ids"], "plain"),
        _node("Cast", ["attention_mask"], "all", to=FLOAT),
        _node("Cast", ["token_type_ids"], "later", to=FLOAT),
        _node("Sub", ["all", "later"], "earlier"),
        _node("Unsqueeze", ["earlier", "last"], "of_first"),
        _node("Unsqueeze", ["later", "last"], "of_second"),
        _node("Mul", ["plain", "of_first"], "first_words"),
        _node("Mul", ["plain", "of_second"], "second_words"),
        _node("ReduceSum", ["first_words", "tokens"], "first", keepdims=0),
        _node("ReduceSum", ["second_words", "tokens"], "second", keepdims=0),
        _node("Mul", ["first", "second"], "shared"),
        _node("ReduceSum", ["shared", "tokens"], "logits", keepdims=1),
    ]
    constants = [_tensor("table", table), _tensor("last", np.array([2])), _tensor("tokens", np.array([1]))]
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    (folder / "model.onnx").write_bytes(_graph(nodes, constants, inputs, _value("logits", FLOAT, ("texts", 1))))
    return folder
