"""Whether two exports are the same, and where they are not, how much of each kind of record is."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

LOG = ("message", "mark")
"""Kinds of records that all others come from."""


class Kind(NamedTuple):
    """Records of one kind in two exports."""

    one: int
    other: int
    same: int


class Same(NamedTuple):
    what: str
    messages: int
    is_same: bool
    """Byte by byte, every file."""
    kinds: dict[str, Kind]

    @property
    def has_same_log(self) -> bool:
        return all(len(set(self.kinds[kind])) == 1 for kind in LOG if kind in self.kinds)


def compared(what: str, messages: int, one: Path, other: Path) -> Same:
    first, second = _digests(one), _digests(other)
    ours, theirs = _records(one), _records(other)
    kinds = {
        kind: Kind(ours[kind].total(), theirs[kind].total(), (ours[kind] & theirs[kind]).total())
        for kind in sorted(ours.keys() | theirs.keys())
    }
    return Same(what, messages, first == second, kinds)


def _records(folder: Path) -> defaultdict[str, Counter[bytes]]:
    """Of each kind, however they are ordered: digests of their lines."""
    found: defaultdict[str, Counter[bytes]] = defaultdict(Counter)
    for path in folder.glob("agents/*/memory.jsonl"):
        with path.open("rb") as lines:
            for line in lines:
                found[msgspec.json.decode(line)["type"]][hashlib.sha256(line).digest()] += 1
    return found


def _digests(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): _digest(path) for path in folder.rglob("*") if path.is_file()}


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def format_difference(same: Same, kinds: Sequence[str] | None = None) -> str:
    """In how far those kinds, or all of them, are the same."""
    kinds = [kind for kind in kinds or same.kinds if kind in same.kinds]
    different = {kind: same.kinds[kind] for kind in kinds if len(set(same.kinds[kind])) > 1}
    if not different:
        is_turned = not same.is_same and set(kinds) == set(same.kinds)
        how = "in another order" if is_turned else "the same"
        return f"{how}, {sum(same.kinds[kind].one for kind in kinds):,} records"
    return "differ: " + ", ".join(
        f"{each.one - each.same:,} of {each.one:,} {kind}s" for kind, each in different.items()
    )
