"""Which passages mean this: exact for a few thousand, by sign codes and rescoring above.

A vector is kept as 8-bit numbers and a scale, beside one bit a dimension. Above `EXACT_UP_TO` the bits of all
passages are compared first (48 bytes each), and the best few hundred then by their numbers: as good as exact for
what recall needs, without a graph to build, and crash-safe because it only grows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offbook.retrieval.index.records import Growing, Records

EXACT_UP_TO = 6_000
RESCORED = 400
BLOCK = 32_768
"""Codes compared at a time: what comes between stays in the processor's cache."""

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


def quantised(vectors: Floats) -> NDArray[np.int8]:
    """Unit vectors as bytes: a 4-byte scale, then a byte a dimension."""
    scale = np.abs(vectors).max(axis=1, keepdims=True).astype(np.float32) / 127
    scale[scale == 0] = 1
    whole = np.rint(vectors / scale).astype(np.int8)
    return np.concatenate([scale.view(np.int8), whole], axis=1)


def is_sound(data: bytes, dimensions: int) -> bool:
    return len(data) == dimensions + 4


class VectorIndex:
    """The passages of one agent by one model. One thread appends; any may search."""

    def __init__(self, folder: Path, dimensions: int, *, count: int) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.dimensions = dimensions
        self._code_words = -(-dimensions // 64)
        passage = np.dtype(
            [("row", "<u4"), ("part", "<u2"), ("spare", "<u2"), ("scale", "<f4"), ("whole", "i1", dimensions)]
        )
        self._passages = Records(folder / "passages", passage, count)
        self._codes = Records(folder / "codes", np.dtype(("<u8", self._code_words)), count)
        rows = self._passages.view()["row"]
        self.embedded = 0
        """How many rows have vectors."""
        self._first_passage = Growing(np.empty(0, np.int64))
        self._passage_counts = Growing(np.empty(0, np.int64))
        self._note(np.array(rows, np.int64), 0)

    @property
    def count(self) -> int:
        return self._passages.count

    def has(self, rows: int) -> NDArray[np.bool_]:
        """Which of the first `rows` rows have vectors."""
        known = self._first_passage.view()
        has = np.zeros(rows, bool)
        shared = min(rows, len(known))
        has[:shared] = known[:shared] >= 0
        return has

    # ── writing ──

    def append(self, rows: Rows, parts: NDArray[np.int64], data: NDArray[np.int8]) -> None:
        """`data` as `quantised` made it. The passages of a row come together."""
        block = np.zeros(len(rows), self._passages.dtype)
        block["row"], block["part"] = rows, parts
        block["scale"] = np.ascontiguousarray(data[:, :4]).view(np.float32)[:, 0]
        block["whole"] = data[:, 4:]
        first = self._passages.count
        self._codes.append(_codes(block["whole"], self._code_words))
        self._passages.append(block)
        self._note(rows, first)

    def sync(self) -> None:
        self._passages.sync()
        self._codes.sync()

    def close(self) -> None:
        self._passages.close()
        self._codes.close()

    # ── reading ──

    def nearest(self, query: Floats, limit: int, allowed: NDArray[np.bool_] | None = None) -> tuple[Rows, Floats]:
        """The rows of the passages nearest to the query and how near they are, best first; a row may come twice."""
        passages = self._passages.view()
        if allowed is not None:
            is_open = _in(allowed, passages["row"])
            chosen = np.flatnonzero(is_open)
        else:
            chosen = None
        count = len(passages) if chosen is None else len(chosen)
        if count > EXACT_UP_TO:
            chosen = self._by_codes(query, max(limit, RESCORED), chosen, len(passages))
        elif chosen is None:
            chosen = np.arange(len(passages))
        similarity = self._similarity(passages[chosen], query)
        order = np.argsort(-similarity, kind="stable")[:limit]
        return passages["row"][chosen[order]].astype(np.int64), similarity[order]

    def of_rows(self, rows: Rows, query: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """For each row: how near its nearest passage is, the mean of its passages as a unit vector, and whether it
        has any."""
        known = self._first_passage.view()
        first = (
            np.where(rows < len(known), known[np.minimum(rows, max(len(known) - 1, 0))], -1)
            if len(known)
            else np.full(len(rows), -1)
        )
        has = first >= 0
        nearest = np.zeros(len(rows), np.float32)
        mean = np.zeros((len(rows), self.dimensions), np.float32)
        if not has.any():
            return nearest, mean, has
        counts = self._passage_counts.view()[rows[has]]
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        within = np.arange(counts.sum()) - np.repeat(starts, counts)
        passages = self._passages.view()[np.repeat(first[has], counts) + within]
        vectors = passages["whole"].astype(np.float32) * passages["scale"][:, None]
        nearest[has] = np.maximum.reduceat(vectors @ query, starts)
        sums = np.add.reduceat(vectors, starts, axis=0) if len(vectors) != len(counts) else vectors
        mean[has] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
        return nearest, mean, has

    def best_part(self, row: int, query: Floats) -> int | None:
        """Which of the row's passages is nearest."""
        known = self._first_passage.view()
        if row >= len(known) or known[row] < 0:
            return None
        passages = self._passages.view()[known[row] : known[row] + self._passage_counts.view()[row]]
        return int(passages["part"][int(self._similarity(passages, query).argmax())])

    # ── how ──

    def _similarity(self, passages: NDArray[Any], query: Floats) -> Floats:
        similarity: Floats = (passages["whole"].astype(np.float32) @ query) * passages["scale"]
        return similarity

    def _by_codes(self, query: Floats, wanted: int, chosen: Rows | None, count: int) -> Rows:
        codes = self._codes.view()[:count]
        if chosen is not None:
            codes = codes[chosen]
        mine = _codes(query[None, :], self._code_words)[0]
        distances = np.empty(len(codes), np.uint16)
        for start in range(0, len(codes), BLOCK):
            differing = np.bitwise_count(codes[start : start + BLOCK] ^ mine)
            total = differing[:, 0].astype(np.uint16)
            for word in range(1, self._code_words):
                total += differing[:, word]
            distances[start : start + BLOCK] = total
        # The distance within which the wanted ones lie: a histogram costs less than sorting them all.
        within = np.cumsum(np.bincount(distances, minlength=self._code_words * 64 + 1))
        nearest = np.flatnonzero(distances <= int(np.searchsorted(within, wanted)))[: wanted * 4]
        return nearest if chosen is None else chosen[nearest]

    def _note(self, rows: Rows, first_passage: int) -> None:
        """Where each row's passages begin and how many they are. A row embedded again counts from its last time."""
        if not len(rows):
            return
        missing = int(rows.max()) + 1 - self._first_passage.count
        if missing > 0:
            self._first_passage.append(np.full(missing, -1, np.int64))
            self._passage_counts.append(np.zeros(missing, np.int64))
        starts = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]]))
        counts = np.diff(np.concatenate([starts, [len(rows)]]))
        chosen = rows[starts]
        self.embedded += int((self._first_passage.view()[np.unique(chosen)] < 0).sum())
        self._first_passage.view()[chosen] = starts + first_passage
        self._passage_counts.view()[chosen] = counts


def _codes(vectors: NDArray[Any], words: int) -> NDArray[np.uint64]:
    bits = np.packbits(vectors > 0, axis=1)
    padded = np.zeros((len(vectors), words * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64)


def _in(allowed: NDArray[np.bool_], rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Rows that came after `allowed` was made are not in it."""
    inside = rows < len(allowed)
    found = np.zeros(len(rows), bool)
    found[inside] = allowed[rows[inside]]
    return found
