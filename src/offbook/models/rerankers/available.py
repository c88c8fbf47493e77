"""Which second reader the setting `rerank.reader` asks for, and how it stands with it, without asking it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from offbook.model.errors import ModelUnavailable
from offbook.model.settings import Settings
from offbook.model.types import Value
from offbook.models.onnx_folder import graph_in
from offbook.models.protocols import Reranker
from offbook.models.rerankers.chat import ChatReader
from offbook.models.summarizers.available import open_summarizer
from offbook.models.summarizers.host import HostSummarizer
from offbook.models.worker import IN_PROCESS, Worker

NOT_CONFIGURED = (
    "nobody reads again: set rerank.reader (host, openai:MODEL, anthropic:MODEL, endpoint:MODEL, onnx:/path/to/folder)"
)
CHAT = ("host", "openai", "anthropic")
"""Models that the settings `summarizer.…` know how to reach."""


def open_reranker(
    settings: Settings,
    agent_id: str,
    *,
    models: Path,
    host: HostSummarizer,
    worker: Worker = IN_PROCESS,
    environ: Mapping[str, str] = os.environ,
) -> Reranker:
    """Ready to read; nothing is sent before the first question. ModelUnavailable says what is missing."""
    given = settings.rerank
    if given.reader is None:
        raise ModelUnavailable(NOT_CONFIGURED)
    kind, _, model = given.reader.partition(":")
    if kind in CHAT:
        # Somebody waits: it is asked once, and not for longer than that.
        asking = msgspec.structs.replace(settings.summarizer, attempts=1, timeout=given.deadline)
        reached = msgspec.structs.replace(settings, summarizer=asking)
        found = open_summarizer(given.reader, reached, agent_id, models=models, host=host, environ=environ)
        assert found is not None
        return ChatReader(found)
    if kind == "endpoint":
        return _endpoint(model.strip(), settings, environ)
    if kind == "onnx":
        from offbook.models.rerankers.cross_encoder import CrossEncoder

        return CrossEncoder(_folder(model), worker)
    raise ModelUnavailable(
        f"rerank.reader is {given.reader!r}: write host, openai:MODEL, anthropic:MODEL, endpoint:MODEL or "
        "onnx:/path/to/folder"
    )


def _endpoint(model: str, settings: Settings, environ: Mapping[str, str]) -> Reranker:
    from offbook.models.rerankers.endpoint import EndpointReader

    given = settings.rerank
    if given.endpoint is None:
        raise ModelUnavailable("rerank.reader names an endpoint: set rerank.endpoint to where that is")
    if not model:
        raise ModelUnavailable("rerank.reader names no model: write endpoint:MODEL, as its server calls it")
    return EndpointReader(
        given.endpoint,
        model,
        key=environ.get(given.api_key_variable, "").strip() or None,
        key_variable=given.api_key_variable,
        timeout_seconds=given.deadline.total_seconds(),
    )


def _folder(path: str) -> Path:
    if not path.strip():
        raise ModelUnavailable("rerank.reader names no folder: write onnx:/path/to/folder")
    return Path(path.strip()).expanduser()


class ReaderStatus(Value, frozen=True):
    """As far as can be told without asking or loading it."""

    reader: str | None
    problem: str | None = None


def reader_status(settings: Settings, models: Path, *, environ: Mapping[str, str] = os.environ) -> ReaderStatus:
    reader = settings.rerank.reader
    if reader is None:
        return ReaderStatus(reader=None)
    try:
        if reader.partition(":")[0] == "onnx":
            graph_in(_folder(reader.partition(":")[2]))
        else:
            host = HostSummarizer()
            open_reranker(settings, settings.default_agent, models=models, host=host, environ=environ).close()
    except ModelUnavailable as error:
        return ReaderStatus(reader=reader, problem=error.detail)
    return ReaderStatus(reader=reader)
