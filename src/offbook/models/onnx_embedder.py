"""Embedding models in a folder of their own, `$OFFBOOK_HOME/models/NAME`: a tokenizer, an ONNX graph, and
`offbook-model.json`, which says how texts become vectors with it. `embedding.model` names it `local:NAME`."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from offbook.model.errors import ModelUnavailable
from offbook.model.types import Value
from offbook.models.embedder import INSTALLED
from offbook.models.onnx_folder import OnnxFolder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MANIFEST = "offbook-model.json"
PIECE_BYTES = 1 << 20

Pooling = Literal["mean", "cls"]


class Manifest(Value, frozen=True):
    """What is known of an installed model."""

    name: str
    dimensions: int
    pooling: Pooling = "mean"
    query_prefix: str = ""
    """Put before a question, as the model was trained: `query: `."""
    passage_prefix: str = ""
    max_tokens: int = 512
    files: dict[str, str] = msgspec.field(default_factory=dict)
    """SHA-256 of each file in the folder."""
    source: str = ""
    is_pinned: bool = False
    """Its files are those that this version of Offbook knows; else those that were seen when it was installed."""


def folder_of(model: str, models: Path) -> Path:
    name = model.removeprefix(INSTALLED)
    if not name or name in (".", "..") or Path(name).name != name:
        raise ModelUnavailable(
            f"embedding.model is {model!r}: write {INSTALLED}NAME, as `offbook model status` shows it"
        )
    return models / name


def read_manifest(folder: Path) -> Manifest:
    """ModelUnavailable says that it is not installed, or not to be read."""
    try:
        return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise ModelUnavailable(
            f"no embedding model is installed in {folder}: run `offbook model install multilingual`, or "
            "`offbook model install FOLDER` for one of your own"
        ) from None
    except (OSError, msgspec.MsgspecError) as error:
        raise ModelUnavailable(f"{folder / MANIFEST} cannot be read ({error}): install the model again") from error


def fingerprint_of(manifest: Manifest) -> str:
    """Known without loading it."""
    how = (manifest.pooling, manifest.query_prefix, manifest.passage_prefix, str(manifest.max_tokens), "unit length")
    parts = [*how, *(f"{name}={digest}" for name, digest in sorted(manifest.files.items()))]
    return f"{manifest.name}:{sha256(chr(0).join(parts).encode()).hexdigest()[:16]}"


def file_digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def damaged_files(folder: Path, manifest: Manifest) -> list[str]:
    """Those that are missing, or other than when it was installed."""
    return [
        name
        for name, digest in manifest.files.items()
        if not (folder / name).is_file() or file_digest(folder / name) != digest
    ]


class OnnxEmbedder:
    """An `Embedder`. A question and a passage may be told apart by what is put before them."""

    def __init__(self, folder: Path, *, name: str, manifest: Manifest | None = None) -> None:
        """ModelUnavailable says why it cannot be used. With a `manifest`, its files are not looked at."""
        if manifest is None:
            manifest = read_manifest(folder)
            if damaged := damaged_files(folder, manifest):
                raise ModelUnavailable(
                    f"{', '.join(damaged)} in {folder} is not what was installed: run `offbook model install` again"
                )
        self.name = name
        self._manifest = manifest
        self.fingerprint = fingerprint_of(manifest)
        self.dimensions = manifest.dimensions
        self._model: OnnxFolder | None = OnnxFolder(folder, max_tokens=manifest.max_tokens)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._vectors([self._manifest.passage_prefix + text for text in texts])

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self._vectors([self._manifest.query_prefix + text])

    def close(self) -> None:
        """A call that runs in another thread comes to its end."""
        self._model = None

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        if self._model is None:
            raise ModelUnavailable("the embedding model is closed")
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for batch, made, mask in self._model.over_texts(texts):
            pooled = _pooled(made, mask, self._manifest.pooling)
            if pooled.shape[1] != self.dimensions:
                raise ModelUnavailable(
                    f"{self.name} makes vectors of {pooled.shape[1]} numbers, its {MANIFEST} says {self.dimensions}"
                )
            length = np.linalg.norm(pooled, axis=1, keepdims=True)
            vectors[batch] = pooled / np.where(length > 0, length, 1.0)
        return vectors


def _pooled(made: NDArray[np.float32], mask: NDArray[np.int64], pooling: Pooling) -> NDArray[np.float32]:
    import numpy as np

    if made.ndim == 2:  # the graph does it itself
        return made
    if made.ndim != 3:
        raise ModelUnavailable(f"it makes numbers of {made.ndim} dimensions: it is no embedding model")
    if pooling == "cls":
        return made[:, 0]
    # Sum and mean are the same direction, and the length becomes 1.
    return np.asarray(np.einsum("tph,tp->th", made, mask.astype(np.float32)), dtype=np.float32)
