"""Which passages mean this: exact for a few thousand, by sign codes and rescoring above.

A vector is kept as 8-bit numbers and a scale, beside one bit a dimension. Above `EXACT_UP_TO` the bits of all
passages are compared first (48 bytes each), and the best few hundred then by their numbers: as good as exact for
what recall needs, without a graph to build, and crash-safe because it only grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offbook.model.private_files import make_folders
from offbook.search.index.records import Growing, Records

EXACT_UP_TO = 6_000
RESCORED = 400
BLOCK = 32_768
"""Codes compared at a time: what comes between stays in the processor's cache."""

# Products are `vecdot`s and not `@`: for what is this small, the threads that BLAS would start cost many times more.
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


@dataclass(frozen=True)
class Passages:
    """The vectors of some rows' passages, side by side."""

    has: NDArray[np.bool_]
    """Which of the rows have any."""
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    whole: Floats
    scale: Floats

    def similarity(self, query: Floats) -> tuple[Floats, Floats]:
        """For each row: how near its nearest passage is, and how near they are on the whole; 0 where it has none."""
        nearest, mean = np.zeros(len(self.has), np.float32), np.zeros(len(self.has), np.float32)
        if len(self.starts):
            each = np.vecdot(self.whole, query) * self.scale
            nearest[self.has] = np.maximum.reduceat(each, self.starts)
            mean[self.has] = np.add.reduceat(each, self.starts) / self.counts
        return nearest, mean


class VectorIndex:
    """The passages of one agent by one model. One thread appends; any may search."""

    def __init__(self, folder: Path, dimensions: int, *, count: int) -> None:
        make_folders(folder)
        self.dimensions = dimensions
        self._code_words = -(-dimensions // 64)
        passage = np.dtype(
            [("row", "<u4"), ("part", "<u2"), ("spare", "<u2"), ("scale", "<f4"), ("whole", "i1", dimensions)]
        )
        self._passages = Records(folder / "passages", passage, count)
        # A file for each 64 bits: what is compared at a time lies side by side (7 ms for a million against 18).
        self._codes = [Records(folder / f"codes-{word}", np.dtype("<u8"), count) for word in range(self._code_words)]
        rows = self._passages.view()["row"]
        self.embedded = 0
        """How many rows have vectors."""
        self._first_passage = Growing(np.empty(0, np.int64))
        self._passage_counts = Growing(np.empty(0, np.int64))
        self._note(np.array(rows, np.int64), np.array(self._passages.view()["part"], np.int64), 0)

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
        for word, codes in enumerate(_codes(block["whole"], self._code_words).T):
            self._codes[word].append(codes)
        self._passages.append(block)
        self._note(rows, parts, first)

    def sync(self) -> None:
        for records in (self._passages, *self._codes):
            records.sync()

    def close(self) -> None:
        for records in (self._passages, *self._codes):
            records.close()

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
        similarity = self._similarity(passages if chosen is None else passages[chosen], query)
        order = np.argsort(-similarity, kind="stable")[:limit]
        best = order if chosen is None else chosen[order]
        return passages["row"][best].astype(np.int64), similarity[order]

    def passages_of(self, rows: Rows) -> Passages:
        """The passages of these rows, to be compared with any query."""
        known = self._first_passage.view()
        first = np.full(len(rows), -1, np.int64)
        inside = rows < len(known)
        first[inside] = known[rows[inside]]
        has = first >= 0
        counts = self._passage_counts.view()[rows[has]]
        starts = np.cumsum(counts) - counts
        at = np.repeat(first[has] - starts, counts) + np.arange(counts.sum())
        chosen = self._passages.view()[at]
        return Passages(has, starts, counts, chosen["whole"].astype(np.float32), np.array(chosen["scale"]))

    def means(self, rows: Rows) -> Floats:
        """The mean of each row's passages as a unit vector; zeros where it has none."""
        passages = self.passages_of(rows)
        mean = np.zeros((len(rows), self.dimensions), np.float32)
        if passages.has.any():
            sums = np.add.reduceat(passages.whole * passages.scale[:, None], passages.starts, axis=0)
            mean[passages.has] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
        return mean

    def best_part(self, row: int, query: Floats) -> int | None:
        """Which of the row's passages is nearest."""
        known = self._first_passage.view()
        if row >= len(known) or known[row] < 0:
            return None
        passages = self._passages.view()[known[row] : known[row] + self._passage_counts.view()[row]]
        best = int(self._similarity(passages, query).argmax()) if len(passages) > 1 else 0
        return int(passages["part"][best])

    # ── how ──

    def _similarity(self, passages: NDArray[Any], query: Floats) -> Floats:
        similarity: Floats = np.vecdot(passages["whole"].astype(np.float32), query) * passages["scale"]
        return similarity

    def _by_codes(self, query: Floats, wanted: int, chosen: Rows | None, count: int) -> Rows:
        distances = self._distances(query, chosen, count)
        # The distance within which the wanted ones lie: a histogram costs less than sorting them all.
        within = np.cumsum(np.bincount(distances, minlength=self._code_words * 64 + 1))
        edge = int(np.searchsorted(within, wanted))
        closer = np.flatnonzero(distances < edge)
        # Any number may lie just there ("ok", a thousand times): the newest of them.
        nearest = np.concatenate([closer, np.flatnonzero(distances == edge)[-(4 * wanted - len(closer)) :]])
        return nearest if chosen is None else chosen[nearest]

    def _distances(self, query: Floats, chosen: Rows | None, count: int) -> NDArray[np.uint16]:
        """In how many bits each code differs from the query's."""
        mine = _codes(query[None, :], self._code_words)[0]
        codes = [records.view()[:count] if chosen is None else records.view()[chosen] for records in self._codes]
        distances = np.zeros(len(codes[0]), np.uint16)
        for start in range(0, len(distances), BLOCK):
            block = distances[start : start + BLOCK]
            for word, column in enumerate(codes):
                block += np.bitwise_count(column[start : start + BLOCK] ^ mine[word])
        return distances

    def _note(self, rows: Rows, parts: NDArray[np.int64], first_passage: int) -> None:
        """Where each row's passages begin and how many they are. A row embedded again counts from its last time."""
        if not len(rows):
            return
        missing = int(rows.max()) + 1 - self._first_passage.count
        if missing > 0:
            self._passage_counts.append(np.zeros(missing, np.int64))
            self._first_passage.append(np.full(missing, -1, np.int64))
        starts = np.flatnonzero(np.concatenate([[True], (rows[1:] != rows[:-1]) | (parts[1:] <= parts[:-1])]))
        counts = np.diff(np.concatenate([starts, [len(rows)]]))
        chosen = rows[starts]
        self.embedded += int((self._first_passage.view()[np.unique(chosen)] < 0).sum())
        # In this order: who reads meanwhile never finds a first passage without their number.
        self._passage_counts.view()[chosen] = counts
        self._first_passage.view()[chosen] = starts + first_passage


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
