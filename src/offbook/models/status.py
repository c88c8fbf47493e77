"""How it stands with the models that run here or are asked elsewhere, found out without loading or asking any."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from offbook.model.errors import ModelUnavailable
from offbook.model.settings.sections import Embedding, Summarizer
from offbook.model.types import Value
from offbook.models import weights
from offbook.models.embedder import NO_MODEL, is_installed, is_local, open_remote, wrong_dimensions
from offbook.models.minilm import DIMENSIONS, fingerprint
from offbook.models.onnx_embedder import damaged_files, fingerprint_of, folder_of, read_manifest

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


class SummarizerStatus(Value, frozen=True):
    """Of the small model that writes summaries here."""

    model: str
    is_wanted: bool
    """Whether `summarizer.order` names it."""
    is_runnable: bool
    """Whether what runs it is installed."""
    where: str | None = None
    is_verified: bool | None = None
    """Whether the file's SHA-256 is right. None: there is no file."""
    problem: str | None = None
    """Why it cannot be used, and what to do."""


def model_status(embedding: Embedding, folder: Path, *, environ: Mapping[str, str] = os.environ) -> ModelStatus:
    if embedding.model == NO_MODEL:
        return ModelStatus(model=embedding.model, kind="off", dimensions=embedding.dimensions)
    if is_installed(embedding):
        return _of_installed(embedding, folder)
    return _of_local(embedding, folder) if is_local(embedding) else _of_endpoint(embedding, environ)


def summarizer_status(summarizer: Summarizer, folder: Path) -> SummarizerStatus | None:
    """None: it is not asked for, and not in `folder`. In its package it may be for somebody else."""
    from offbook.models.summarizers.available import is_small_local
    from offbook.models.summarizers.llama import NOT_INSTALLED, is_runnable

    model = weights.SMOLLM2
    is_wanted = any(is_small_local(spec) for spec in summarizer.order)
    if not is_wanted and not weights.cached(model, folder).is_file():
        return None
    path, is_verified, problem = _looked_at(model, folder)
    problems = (problem, None if is_runnable() else NOT_INSTALLED)
    return SummarizerStatus(
        model=Path(model.file).stem,
        is_wanted=is_wanted,
        is_runnable=is_runnable(),
        where=str(path) if path else None,
        is_verified=is_verified,
        problem="; ".join(filter(None, problems)) or None,
    )


def _of_installed(embedding: Embedding, folder: Path) -> ModelStatus:
    try:
        own = folder_of(embedding.model, folder)
        manifest = read_manifest(own)
        damaged = damaged_files(own, manifest)
    except (ModelUnavailable, OSError) as error:
        return ModelStatus(model=embedding.model, kind="local", dimensions=embedding.dimensions, problem=str(error))
    problem = f"{', '.join(damaged)} is not what was installed: install it again" if damaged else None
    if problem is None and embedding.dimensions != manifest.dimensions:
        problem = wrong_dimensions(embedding, manifest.dimensions)
    return ModelStatus(
        model=embedding.model,
        kind="local",
        dimensions=manifest.dimensions,
        where=str(own),
        fingerprint=fingerprint_of(manifest),
        is_verified=not damaged,
        problem=problem,
    )


def _of_local(embedding: Embedding, folder: Path) -> ModelStatus:
    path, is_verified, problem = _looked_at(weights.MINILM, folder)
    missing = [name for name in RUNTIME if find_spec(name) is None]
    if is_verified is not False:  # damage is told before all else
        if missing:
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


def _looked_at(model: weights.PackagedModel, folder: Path) -> tuple[Path | None, bool | None, str | None]:
    """Where it is, whether it is whole, and what is wrong with it."""
    path = weights.find(model, folder)
    if path is None:
        return None, None, model.missing
    try:
        is_verified = weights.is_whole(model, path)
    except OSError as error:
        return path, None, f"{model.called} cannot be read: {error}"
    return path, is_verified, None if is_verified else model.damaged(path)


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
