"""Reading the rows of a SQLite file page by page, so that a damaged page costs only what stands on it.

SQLite itself gives up at the first such page, and what lies below a damaged inner page cannot be reached through it.
The format: sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

HEADER_BYTES = 100
MAGIC = b"SQLite format 3\0"
USUAL_PAGE_BYTES = 4096
INDEX_INNER, TABLE_INNER, INDEX_LEAF, TABLE_LEAF = 2, 5, 10, 13
INNER = (INDEX_INNER, TABLE_INNER)
LARGEST_VALUE_BYTES = 1_000_000_000
_FIXED = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}
"""Bytes of a value by its type; above 11 they are in the type itself."""

Value = int | float | str | bytes | None


class Damaged(ValueError):
    """What is there is not as SQLite writes it."""


class Row(NamedTuple):
    rowid: int | None
    """None in an index, and in a table without row ids."""
    values: tuple[Value, ...]


class Tree(NamedTuple):
    """A table or an index, as the file's own list names it."""

    kind: str
    name: str
    table: str
    root: int


class Pages:
    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.has_header = self._data[: len(MAGIC)] == MAGIC
        said = int.from_bytes(self._data[16:18]) if self.has_header else USUAL_PAGE_BYTES
        self.page_bytes = 65_536 if said == 1 else said
        if self.page_bytes not in {2**power for power in range(9, 17)}:
            self.page_bytes = USUAL_PAGE_BYTES
        self._usable = self.page_bytes - (self._data[20] if self.has_header else 0)
        self.number = -(-len(self._data) // self.page_bytes)
        self.damaged: set[int] = set()
        """Pages that something leads to, and that cannot be what it leads to."""
        self._reached: set[int] = {1}

    @property
    def schema_version(self) -> int:
        return int.from_bytes(self._data[60:64]) if self.has_header else 0

    @property
    def application_id(self) -> int:
        return int.from_bytes(self._data[68:72]) if self.has_header else 0

    def close(self) -> None:
        self._data.close()

    def trees(self) -> list[Tree]:
        """Nothing where the first page is damaged."""
        found = []
        for row in self.rows(1, is_index=False):
            match row.values:
                case (str(kind), str(name), str(table), int(root), *_) if kind in ("table", "index") and root:
                    found.append(Tree(kind, name, table, root))
        return found

    def rows(self, root: int, *, is_index: bool) -> Iterator[Row]:
        """Of the tree that begins at this page, as far as one page leads to another."""
        wanted = (INDEX_INNER, INDEX_LEAF) if is_index else (TABLE_INNER, TABLE_LEAF)
        waiting, seen = [root], {root}
        while waiting:
            page = waiting.pop()
            try:
                kind, cells, below = self._page(page)
                if kind not in wanted:
                    raise Damaged
            except Damaged:
                self.damaged.add(page)
                continue
            self._reached.add(page)
            yield from self._rows_on(page, kind, cells)
            fresh = [each for each in below if each not in seen]
            seen.update(fresh)
            waiting += reversed(fresh)  # in their order: a table that is filled in order is packed tightly

    def unreached(self) -> Iterator[tuple[Row, bool]]:
        """Rows on pages that nothing leads to any more and that are not free; and whether each is of an index or a
        table without row ids. Asked after every tree was read."""
        free = self._free()
        for page in range(2, self.number + 1):
            if page in self._reached or page in free:
                continue
            with suppress(Damaged):
                kind, cells, _ = self._page(page)
                if kind != TABLE_INNER:
                    for row in self._rows_on(page, kind, cells):
                        yield row, kind != TABLE_LEAF

    def _rows_on(self, page: int, kind: int, cells: list[int]) -> Iterator[Row]:
        if kind == TABLE_INNER:
            return
        for at in cells:
            try:
                yield self._row(page, kind, at)
            except (Damaged, struct.error, IndexError, UnicodeDecodeError):
                self.damaged.add(page)

    def _page(self, page: int) -> tuple[int, list[int], list[int]]:
        """Its kind, where its cells begin in the file, and the pages below it."""
        if not 1 <= page <= self.number:
            raise Damaged
        start = (page - 1) * self.page_bytes
        head = start + (HEADER_BYTES if page == 1 else 0)
        if start + self.page_bytes > len(self._data):
            raise Damaged
        kind, count = self._data[head], int.from_bytes(self._data[head + 3 : head + 5])
        if kind not in (*INNER, INDEX_LEAF, TABLE_LEAF):
            raise Damaged
        first = head + (12 if kind in INNER else 8)
        end = first + 2 * count
        if end > start + self._usable:
            raise Damaged
        offsets = struct.unpack(f">{count}H", self._data[first:end])
        cells = [start + offset for offset in offsets]
        if any(not end <= cell < start + self._usable for cell in cells):
            raise Damaged
        below = []
        if kind in INNER:
            below = [int.from_bytes(self._data[cell : cell + 4]) for cell in cells]
            below.append(int.from_bytes(self._data[head + 8 : head + 12]))
        return kind, cells, below

    def _row(self, page: int, kind: int, at: int) -> Row:
        at += 4 if kind in INNER else 0
        size, at = self._varint(at)
        if size > LARGEST_VALUE_BYTES:
            raise Damaged
        rowid: int | None = None
        if kind == TABLE_LEAF:
            rowid, at = self._varint(at)
            rowid -= (rowid >> 63) << 64
        payload = self._payload(page, at, size, is_table=kind == TABLE_LEAF)
        return Row(rowid, _values(payload))

    def _payload(self, page: int, at: int, size: int, *, is_table: bool) -> bytes:
        usable = self._usable
        most = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
        if size <= most:
            local = size
        else:
            least = (usable - 12) * 32 // 255 - 23
            local = least + (size - least) % (usable - 4)
            local = local if local <= most else least
        if at + local + (4 if local < size else 0) > page * self.page_bytes:
            raise Damaged
        found = bytearray(self._data[at : at + local])
        following = int.from_bytes(self._data[at + local : at + local + 4]) if local < size else 0
        chain: list[int] = []
        while len(found) < size:
            if not 2 <= following <= self.number or len(chain) > size // (usable - 4) + 1:
                raise Damaged
            chain.append(following)
            start = (following - 1) * self.page_bytes
            found += self._data[start + 4 : start + min(usable, 4 + size - len(found))]
            following = int.from_bytes(self._data[start : start + 4])
        if following and chain:
            raise Damaged  # the last page of a value leads nowhere
        self._reached.update(chain)
        return bytes(found)

    def _varint(self, at: int) -> tuple[int, int]:
        value, length = _varint(self._data, at)
        return value, at + length

    def _free(self) -> set[int]:
        """As far as the list of free pages can be followed."""
        free: set[int] = set()
        trunk = int.from_bytes(self._data[32:36]) if self.has_header else 0
        while 2 <= trunk <= self.number and trunk not in free:
            free.add(trunk)
            start = (trunk - 1) * self.page_bytes
            count = int.from_bytes(self._data[start + 4 : start + 8])
            if count > self._usable // 4 - 2:
                break
            free.update(struct.unpack(f">{count}I", self._data[start + 8 : start + 8 + 4 * count]))
            trunk = int.from_bytes(self._data[start : start + 4])
        return free


def _varint(data: bytes | mmap.mmap, at: int) -> tuple[int, int]:
    """The value, and how many bytes it has."""
    value = 0
    for length in range(1, 9):
        byte = data[at + length - 1]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, length
    return value << 8 | data[at + 8], 9


def _values(payload: bytes) -> tuple[Value, ...]:
    end, at = _varint(payload, 0)
    if end > len(payload):
        raise Damaged
    kinds = []
    while at < end:
        kind, length = _varint(payload, at)
        kinds.append(kind)
        at += length
    values = []
    for kind in kinds:
        if kind in (10, 11):
            raise Damaged
        size = _FIXED[kind] if kind < 12 else (kind - 12) // 2
        piece = payload[end : end + size]
        if len(piece) < size:
            raise Damaged
        end += size
        values.append(_value(kind, piece))
    if end != len(payload):
        raise Damaged
    return tuple(values)


def _value(kind: int, piece: bytes) -> Value:
    if kind == 0:
        return None
    if kind == 7:
        return float(struct.unpack(">d", piece)[0])
    if kind in (8, 9):
        return kind - 8
    if kind < 7:
        return int.from_bytes(piece, signed=True)
    return piece if kind % 2 == 0 else piece.decode()
