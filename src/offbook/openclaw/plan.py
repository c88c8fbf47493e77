"""Changes to a configuration that are meant, and what is in their way; nothing is written yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from offbook.client.config_files.editing import MISSING, Edit, Path, applied, dotted, value_at
from offbook.model.errors import InvalidInput

_KINDS: dict[type, str] = {dict: "object", list: "list"}


@dataclass(frozen=True)
class Change:
    path: Path
    before: Any
    after: Any
    why: str

    @property
    def name(self) -> str:
        """`plugins.load.paths[0]`, as the host writes it."""
        return dotted(self.path)


@dataclass
class Plan:
    """`obstacles` keep it from being carried out; `notes` are worth knowing."""

    config: dict[str, Any]
    """As the host reads it, with what it includes."""
    file: dict[str, Any] | None = None
    """As the one file has it that can be written, where that is less."""
    changes: list[Change] = field(default_factory=list)
    obstacles: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def edits(self) -> list[Edit]:
        return [Edit(change.path, change.after) for change in self.changes]

    def put(self, path: Path, value: Any, why: str) -> None:
        before = value_at(self.config, path)
        if before is MISSING or type(before) is not type(value) or before != value:
            self._change(path, before, value, why)

    def take(self, path: Path, why: str) -> None:
        before = value_at(self.config, path)
        if before is not MISSING:
            self._change(path, before, MISSING, why)

    def add_item(self, path: Path, item: str, why: str) -> None:
        items = self.items(path)
        if item not in items:
            self._change((*path, len(items)), MISSING, item, why)

    def take_item(self, path: Path, item: str, why: str) -> None:
        items = self.items(path)
        if item in items:
            self._change((*path, items.index(item)), item, MISSING, why)

    def items(self, path: Path) -> list[Any]:
        found = value_at(self.config, path)
        if found is not MISSING and not isinstance(found, list):
            raise InvalidInput(f"{dotted(path)} is no list: mend that first (`openclaw config validate`)")
        return list(found) if isinstance(found, list) else []

    def prune(self, path: Path) -> None:
        """What is empty now, from there up to the root's members, was there for us only."""
        while path and value_at(self.config, path) in ({}, []):
            self.take(path, "nothing is left in it")
            path = path[:-1]

    def is_elsewhere(self, path: Path) -> bool:
        """Whether it comes from another file, which is not ours to change."""
        own = [value_at(self.config if self.file is None else self.file, path[:length]) for length in range(len(path))]
        return any(isinstance(one, dict) and "$include" in one for one in own)

    def _change(self, path: Path, before: Any, after: Any, why: str) -> None:
        for length in range(len(path)):
            own = value_at(self.config if self.file is None else self.file, path[:length])
            holder = value_at(self.config, path[:length])
            if isinstance(own, dict) and "$include" in own:
                where = dotted(path[:length]) or "all of it"
                self._stop(f"{where} comes from another file ($include): change it there, by hand")
            kind = list if isinstance(path[length], int) else dict
            if holder is not MISSING and not isinstance(holder, kind):
                where = dotted(path[:length])
                raise InvalidInput(f"{where} is no {_KINDS[kind]}: mend that first (`openclaw config validate`)")
        self.config = applied(self.config, Edit(path, after))
        self.changes.append(Change(path, before, after, why))

    def _stop(self, why: str) -> None:
        if why not in self.obstacles:
            self.obstacles.append(why)
