"""The product's own model with a memory, for this benchmark only: embedding all the data takes many minutes of a core.

A vector is kept under the hash of its text, in a file for each fingerprint. A text that comes alone is a question:
it is embedded every time, so that the time of a question is what it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import Lock
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from offbook.model.settings.sections import Embedding
from offbook.models import embedder as opening
from offbook.models.protocols import Embedder

KEY_BYTES = 16
AT_ONCE = 64


class CachingEmbedder:
    """An `Embedder`; threads share it."""

    def __init__(self, model: Embedder, folder: Path) -> None:
        self.name = model.name
        self.fingerprint = model.fingerprint
        self.dimensions = model.dimensions
        self.embedded = 0
        self._model = model
        self._lock = Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self._record = np.dtype([("key", "u1", KEY_BYTES), ("vector", "<f4", self.dimensions)])
        self._path = folder / f"vectors-{sha256(self.fingerprint.encode()).hexdigest()[:16]}"
        self._kept: dict[bytes, NDArray[np.float32]] = {}
        self._read_bytes = 0
        self._load()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(texts) == 1:
            return self._model.embed(texts)
        keys = [sha256(text.encode(errors="replace")).digest()[:KEY_BYTES] for text in texts]
        if any(key not in self._kept for key in keys):
            self._load()  # another run may have made them
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._kept}
        for first in range(0, len(missing), AT_ONCE):
            self._add(dict(list(missing.items())[first : first + AT_ONCE]))
        return np.stack([self._kept[key] for key in keys])

    def close(self) -> None:
        """It goes on: another memory of the same run uses it next."""

    def _add(self, texts: dict[bytes, str]) -> None:
        block = np.empty(len(texts), self._record)
        block["key"] = np.frombuffer(b"".join(texts), np.uint8).reshape(-1, KEY_BYTES)
        block["vector"] = self._model.embed(list(texts.values()))
        with self._lock, self._path.open("ab") as file:
            file.write(block.tobytes())
        self._kept.update(zip(texts, block["vector"], strict=True))
        self.embedded += len(texts)

    def _load(self) -> None:
        """What the file holds by now. Runs may share it: each adds whole records at the end."""
        with self._lock, self._path.open("ab+") as file:
            file.seek(self._read_bytes)
            data = file.read()
        whole = len(data) // self._record.itemsize * self._record.itemsize
        self._read_bytes += whole
        for row in np.frombuffer(data[:whole], self._record):
            self._kept[row["key"].tobytes()] = row["vector"]


@contextmanager
def remembered_vectors(cache: Path, models: Path | None = None) -> Iterator[CachingEmbedder]:
    """Whatever opens the local model meanwhile gets this one. `models`: where the weights are, if not in the cache."""
    embedder = CachingEmbedder(opening.open_embedder(Embedding(), models or cache / "models"), cache)
    with patch.object(opening, "open_embedder", lambda *_, **__: embedder):
        yield embedder
