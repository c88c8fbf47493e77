"""How it stands with the embedding model, found out without loading it or asking anybody."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from offbook.errors import ModelUnavailable
from offbook.models import weights
from offbook.models.minilm import DIMENSIONS, fingerprint
from offbook.models.opening import NO_MODEL, is_local, open_remote, wrong_dimensions
from offbook.settings import Embedding
from offbook.types import Value

RUNTIME = ("numpy", "onnxruntime", "tokenizers")


class ModelStatus(Value, frozen=True):
    model: str
    kind: Literal["local", "endpoint", "off"]
    dimensions: int
    where: str | None = None
    """A file, or an address."""
    fingerprint: str | None = None
    is_verified: bool | None = None
    """Whether the file's SHA-256 is right. None: there is no file."""
    problem: str | None = None
    """Why it cannot be used, and what to do. Of an endpoint: as far as can be told without asking it."""


def model_status(embedding: Embedding, folder: Path, *, environ: Mapping[str, str] = os.environ) -> ModelStatus:
    if embedding.model == NO_MODEL:
        return ModelStatus(model=embedding.model, kind="off", dimensions=embedding.dimensions)
    return _of_local(embedding, folder) if is_local(embedding) else _of_endpoint(embedding, environ)


def _of_local(embedding: Embedding, folder: Path) -> ModelStatus:
    path = weights.find(folder)
    is_verified = None
    missing = [name for name in RUNTIME if find_spec(name) is None]
    try:
        is_verified = weights.are_whole(path) if path else None
        problem = None if path else weights.MISSING
    except OSError as error:
        problem = f"the embedding model cannot be read: {error}"
    if is_verified is False:
        problem = weights.DAMAGED.format(path=path)
    elif missing:
        problem = f"what runs the embedding model is not installed: run `pip install {' '.join(missing)}`"
    elif embedding.dimensions != DIMENSIONS:
        problem = wrong_dimensions(embedding, DIMENSIONS)
    return ModelStatus(
        model=embedding.model,
        kind="local",
        dimensions=DIMENSIONS,
        where=str(path) if path else None,
        fingerprint=fingerprint(),
        is_verified=is_verified,
        problem=problem,
    )


def _of_endpoint(embedding: Embedding, environ: Mapping[str, str]) -> ModelStatus:
    made_by, problem = None, None
    try:
        embedder = open_remote(embedding, environ)
    except ModelUnavailable as error:
        problem = error.detail
    else:
        made_by = embedder.fingerprint
        embedder.close()
    return ModelStatus(
        model=embedding.model,
        kind="endpoint",
        dimensions=embedding.dimensions,
        where=embedding.endpoint if problem is None else None,
        fingerprint=made_by,
        problem=problem,
    )
