"""Which embedder the settings ask for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from offbook.model.errors import ModelUnavailable
from offbook.model.settings.sections import Embedding
from offbook.models import weights
from offbook.models.protocols import Embedder

NO_MODEL = "none"
LOCAL_NAMES = frozenset({"Xenova/all-MiniLM-L6-v2", "all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"})
"""All of them are the one that runs here, whatever the endpoint."""


def is_local(embedding: Embedding) -> bool:
    return embedding.model in LOCAL_NAMES


def open_embedder(embedding: Embedding, folder: Path, *, environ: Mapping[str, str] = os.environ) -> Embedder:
    """Ready to embed. `folder` keeps the weights of local models; ModelUnavailable says why there is none."""
    if embedding.model == NO_MODEL:
        raise ModelUnavailable("embeddings are switched off: set embedding.model to all-MiniLM-L6-v2 to have them")
    return open_local(embedding, folder) if is_local(embedding) else open_remote(embedding, environ)


def open_local(embedding: Embedding, folder: Path) -> Embedder:
    from offbook.models.minilm import DIMENSIONS, MiniLM

    if embedding.dimensions != DIMENSIONS:
        raise ModelUnavailable(wrong_dimensions(embedding, DIMENSIONS))
    try:
        return MiniLM(weights.ensure(weights.MINILM, folder), name=embedding.model)
    except ImportError as error:
        raise ModelUnavailable(
            f"what runs the embedding model is not installed, or does not load here ({error}): "
            "run `pip install --upgrade numpy onnxruntime tokenizers`, or set embedding.endpoint and embedding.model"
        ) from error


def open_remote(embedding: Embedding, environ: Mapping[str, str]) -> Embedder:
    """Nothing is sent before the first text."""
    from offbook.models.openai_embeddings import OpenAIEmbedder

    if embedding.endpoint is None:
        raise ModelUnavailable(
            f"{embedding.model!r} is not a model that runs here: set embedding.endpoint to the OpenAI-compatible "
            "server that has it (such as http://127.0.0.1:11434/v1), or embedding.model to all-MiniLM-L6-v2"
        )
    return OpenAIEmbedder(
        embedding.endpoint,
        embedding.model,
        dimensions=embedding.dimensions,
        key=environ.get(embedding.api_key_variable, "").strip() or None,
        key_variable=embedding.api_key_variable,
    )


def wrong_dimensions(embedding: Embedding, made: int) -> str:
    return (
        f"{embedding.model} makes vectors of {made} numbers, the setting embedding.dimensions says "
        f"{embedding.dimensions}: set it to {made}"
    )
