"""A second reader on this machine: a cross-encoder, which reads the question and a passage together and says how well
they go together. It runs where the embedding model does, beside the process that serves."""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path
from typing import NamedTuple

from offbook.model.errors import ModelUnavailable
from offbook.model.summary import Usage
from offbook.models.onnx_folder import OnnxFolder
from offbook.models.protocols import Reading, ReadingTask
from offbook.models.rerankers.endpoint import described
from offbook.models.summarizers.remote import fingerprint_of
from offbook.models.worker import Worker

LONGEST_QUERY_CHARS = 1_000
"""Question and passage share 512 tokens: a longer question would leave no room for the passage."""


class CrossEncoder:
    """A `Reranker`."""

    def __init__(self, folder: Path, worker: Worker) -> None:
        """ModelUnavailable says why it cannot be used."""
        self._folder, self._worker = folder, worker
        self.name = f"onnx:{folder.name}"
        self.fingerprint = worker.call("embed", _about, folder).fingerprint

    def expected(self, task: ReadingTask) -> Usage:
        return Usage()

    def read(self, task: ReadingTask) -> Reading:
        texts = [described(one) for one in task.passages]
        scores = self._worker.call("embed", _scores, self._folder, task.query[:LONGEST_QUERY_CHARS], texts)
        return Reading(order=sorted(range(len(scores)), key=lambda at: (-scores[at], at)), usage=Usage())

    def close(self) -> None:
        return  # it goes with the worker


# ── in the worker ──


class _About(NamedTuple):
    fingerprint: str


_opening = threading.Lock()


@cache
def _open(folder: Path) -> OnnxFolder:
    return OnnxFolder(folder)


def _opened(folder: Path) -> OnnxFolder:
    with _opening:  # two readings come at once, and one model is enough
        return _open(folder)


def _about(folder: Path) -> _About:
    graph = _opened(folder).graph
    state = graph.stat()
    return _About(fingerprint_of("cross-encoder", str(graph), str(state.st_size), str(state.st_mtime_ns)))


def _scores(folder: Path, query: str, texts: list[str]) -> list[float]:
    scores = [0.0] * len(texts)
    for batch, made, _ in _opened(folder).over_pairs(query, texts):
        if made.ndim != 2 or made.shape[1] not in (1, 2):
            shape = "x".join(map(str, made.shape))
            raise ModelUnavailable(f"{folder} is no cross-encoder: it makes {shape} numbers of {len(batch)} pairs")
        relevance = made[:, 0] if made.shape[1] == 1 else made[:, 1] - made[:, 0]
        for at, score in zip(batch, relevance.tolist(), strict=True):
            scores[at] = float(score)
    return scores
