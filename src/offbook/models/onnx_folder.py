"""A model as the hubs have it: a folder with `tokenizer.json` and an ONNX graph. Texts, or pairs of them, become the
numbers that the graph reads, and what it makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from offbook.model.errors import ModelUnavailable
from offbook.models.embedder import readable
from offbook.models.minilm import batches, open_session

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

TOKENIZER = "tokenizer.json"
GRAPHS = ("model.onnx", "model_quantized.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx")
"""Where a graph lies, in the order in which it is looked for."""
MAX_TOKENS = 512
"""What BERT and its kin read, where the folder does not say less."""
CHARS_PER_TOKEN = 16
"""More of a text is not looked at: no tokenizer needs so many characters for a token of plain words."""
PADS = ("[PAD]", "<pad>")


class Batch(NamedTuple):
    """Which texts, what the graph makes of them, and which of their tokens are theirs."""

    texts: list[int]
    made: NDArray[Any]
    mask: NDArray[np.int64]


class _Config(msgspec.Struct, frozen=True):
    """Of `config.json`, what concerns us."""

    max_position_embeddings: int | None = None


def graph_in(folder: Path) -> Path:
    """ModelUnavailable says what the folder lacks."""
    if not folder.is_dir():
        raise ModelUnavailable(f"there is no folder {folder}: name one that holds {TOKENIZER} and {GRAPHS[0]}")
    found = [path for name in GRAPHS if (path := folder / name).is_file()]
    missing = [] if (folder / TOKENIZER).is_file() else [TOKENIZER]
    missing += [] if found else [GRAPHS[0]]
    if missing:
        raise ModelUnavailable(f"{folder} holds no {' and no '.join(missing)}: export the model to ONNX into it")
    return found[0]


class OnnxFolder:
    """Nothing in it changes after it was made, so threads share it without a lock."""

    def __init__(self, folder: Path, *, max_tokens: int | None = None) -> None:
        """ModelUnavailable says why it cannot be used."""
        self.graph = graph_in(folder)
        try:
            self._session = open_session(self.graph, mend="name the folder of another model")
            self._tokenizer = _tokenizer(folder, min(max_tokens or MAX_TOKENS, _longest(folder)))
        except ImportError as error:
            raise ModelUnavailable(
                f"what runs a model here is not installed, or does not load ({error}): "
                "run `pip install --upgrade numpy onnxruntime tokenizers`"
            ) from error
        self._inputs = {each.name for each in self._session.get_inputs()}
        if not {"input_ids", "attention_mask"} <= self._inputs:
            raise ModelUnavailable(f"{self.graph} reads no input_ids and attention_mask: it is no model of texts")
        self._pad = next((number for name in PADS if (number := self._tokenizer.token_to_id(name)) is not None), 0)

    def over_texts(self, texts: Sequence[str]) -> Iterator[Batch]:
        """By batches of like length."""
        return self._run([self._tokenizer.encode(_cut(text)) for text in texts])

    def over_pairs(self, first: str, seconds: Sequence[str]) -> Iterator[Batch]:
        """The same for a text beside each of others."""
        return self._run([self._tokenizer.encode(_cut(first), _cut(second)) for second in seconds])

    def _run(self, encodings: Sequence[Encoding]) -> Iterator[Batch]:
        import numpy as np

        for batch in batches([len(each.ids) for each in encodings]):
            longest = max(len(encodings[at].ids) for at in batch)
            ids = np.full((len(batch), longest), self._pad, dtype=np.int64)
            mask, kinds = np.zeros_like(ids), np.zeros_like(ids)
            for row, at in enumerate(batch):
                length = len(encodings[at].ids)
                ids[row, :length] = encodings[at].ids
                mask[row, :length] = 1
                kinds[row, :length] = encodings[at].type_ids
            given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}
            try:
                made = self._session.run(None, {name: given[name] for name in given if name in self._inputs})[0]
            except Exception as error:  # what it raises has no other base; for want of memory, mostly
                raise ModelUnavailable(f"onnxruntime could not read {len(batch)} texts: {error}") from error
            yield Batch(batch, made, mask)


def _cut(text: str) -> str:
    return readable(text[: MAX_TOKENS * CHARS_PER_TOKEN])


def _longest(folder: Path) -> int:
    try:
        said = msgspec.json.decode((folder / "config.json").read_bytes(), type=_Config).max_position_embeddings
    except (OSError, msgspec.MsgspecError):
        said = None
    return min(said or MAX_TOKENS, MAX_TOKENS)


def _tokenizer(folder: Path, max_tokens: int) -> Tokenizer:
    from tokenizers import Tokenizer

    read: Callable[[str], Tokenizer] = Tokenizer.from_file
    try:
        tokenizer = read(str(folder / TOKENIZER))
    except Exception as error:  # what it raises has no other base
        raise ModelUnavailable(f"{folder / TOKENIZER} cannot be read ({error}): fetch it again") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer
