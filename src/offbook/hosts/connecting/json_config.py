"""A JSON configuration with our server in it, or without. Comments and layout stay."""

from __future__ import annotations

from typing import Any

from offbook.errors import InvalidInput
from offbook.hosts.connecting.server import NAME, checked_entry, renewed
from offbook.hosts.openclaw.editing import MISSING, Edit, Path, applied, edited, value_at
from offbook.hosts.openclaw.json5 import parse
from offbook.hosts.openclaw.plan import dotted


class Draft:
    """Changes to one file, each on top of those before it."""

    def __init__(self, text: str) -> None:
        """Raises InvalidInput. An empty file is an empty object."""
        self._text = text if text.strip() else "{}\n"
        self.config = parse(self._text).value
        if not isinstance(self.config, dict):
            raise InvalidInput("it holds no object")
        self._edits: list[Edit] = []

    def put(self, path: Path, value: Any) -> None:
        if value_at(self.config, path) == value:
            return
        for length in range(1, len(path)):
            holder = value_at(self.config, path[:length])
            kind, named = (list, "list") if isinstance(path[length], int) else (dict, "object")
            if holder is not MISSING and not isinstance(holder, kind):
                raise InvalidInput(f"{dotted(path[:length])} is no {named}: mend that first")
        self._edit(Edit(path, value))

    def take(self, path: Path) -> None:
        if value_at(self.config, path) is not MISSING:
            self._edit(Edit(path, MISSING))

    def prune(self, path: Path) -> None:
        """What is empty now, from there up to a member of the root, was there for us."""
        while path and value_at(self.config, path) in ({}, []):
            self.take(path)
            path = path[:-1]

    def _edit(self, edit: Edit) -> None:
        self.config = applied(self.config, edit)
        self._edits.append(edit)

    @property
    def text(self) -> str:
        return edited(self._text, self._edits)

    @property
    def is_changed(self) -> bool:
        return bool(self._edits)


def add_server(draft: Draft, servers: tuple[str, ...], entry: dict[str, Any]) -> None:
    """What somebody added to our entry stays. Raises InvalidInput where what stands under our name is not ours."""
    path: Path = (*servers, NAME)
    found = value_at(draft.config, path)
    if found is MISSING:
        draft.put(path, entry)
        return
    known = checked_entry(found, dotted(path), entry["command"])
    for name, value in renewed(known, entry).items():
        if name == "env":
            for variable in known.get("env", {}).keys() - value.keys():
                draft.take((*path, "env", variable))
            for variable, text in value.items():
                draft.put((*path, "env", variable), text)
        else:
            draft.put((*path, name), value)


def remove_server(draft: Draft, servers: tuple[str, ...]) -> None:
    """Raises InvalidInput where what stands under our name is not ours."""
    path: Path = (*servers, NAME)
    found = value_at(draft.config, path)
    if found is MISSING:
        return
    checked_entry(found, dotted(path))
    draft.take(path)
    draft.prune(servers)
