"""Which settings this version acts on: those that some module reads. For the reference pages.

Read from the source, so that no list has to be kept: `settings.server.port`, and `caps.attempts` where `caps` was made
of `settings.summarizer` or came in as a `Summarizer`. Where the name is known only as it runs, `getattr(words, kind)`,
all of that section is read. What hosts are told of the settings (`config`) is not counted: that is no acting on them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec
from msgspec import inspect

import offbook
from offbook.model.settings import Settings, catalogue

Place = tuple[str, ...]
"""Where a setting stands: `("memory", "compaction", "threshold")`; all of the settings are at `()`."""


@cache
def settings_in_effect() -> frozenset[str]:
    package = Path(offbook.__file__).parent
    sources = [path for path in package.rglob("*.py") if path.parent != package / "model" / "settings"]
    read = {place for path in sources for place in places_read(path.read_text(encoding="utf-8"))}
    return frozenset(setting.name for setting in catalogue() if tuple(setting.attributes) in read)


def places_read(source: str) -> set[Place]:
    if not any(name in source for name in ("settings", *_sections())):
        return set()  # there is nothing else to begin with; to parse it takes a hundred times as long
    nodes = list(ast.walk(ast.parse(source)))
    names = _Names(_sections())
    # Twice: what a name stands for may be said with a name that is only made further down.
    for _ in range(2):
        for node in nodes:
            names.learn(node)
    return {place for node in nodes for place in names.read_by(node)}


@cache
def _sections() -> Mapping[str, frozenset[Place]]:
    """Where the values of each class of settings stand."""
    found: dict[str, set[Place]] = {}

    def walk(struct: type[msgspec.Struct], place: Place) -> None:
        found.setdefault(struct.__name__, set()).add(place)
        for field in msgspec.structs.fields(struct):
            kind = inspect.type_info(field.type)
            if isinstance(kind, inspect.StructType):
                walk(kind.cls, (*place, field.name))

    walk(Settings, ())
    return {name: frozenset(places) for name, places in found.items()}


class _Names:
    """What the names of one module stand for. One name in two functions may be two things: it is taken for both."""

    def __init__(self, sections: Mapping[str, frozenset[Place]]) -> None:
        self._sections = sections
        self._known: dict[str, set[Place]] = {"settings": {()}}

    def learn(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                self._note(_name(target), self.places(value))
            case ast.arg(arg=name, annotation=ast.expr() as annotation):
                self._note(name, self._of_class(annotation))
            case _:
                pass

    def read_by(self, node: ast.AST) -> set[Place]:
        """What is read right there."""
        match node:
            case ast.Attribute():
                return self.places(node)
            case ast.Call(func=ast.Name(id="getattr"), args=[holder, name]) if not isinstance(name, ast.Constant):
                return {(*place, field) for place in self.places(holder) for field in self._fields_at(place)}
            case _:
                return set()

    def places(self, node: ast.AST) -> set[Place]:
        match node:
            case ast.Name(id=name):
                return self._known.get(name, set())
            case ast.Attribute(value=holder, attr=attribute):
                inside = {(*place, attribute) for place in self.places(holder)}
                return inside | self._known.get(attribute.lstrip("_"), set()) if _is_self(holder) else inside
            case ast.Call(func=ast.Attribute(value=holder, attr="for_agent")):
                return self.places(holder)
            case ast.IfExp(body=body, orelse=orelse):
                return self.places(body) | self.places(orelse)
            case ast.BoolOp(values=values):
                return {place for value in values for place in self.places(value)}
            case _:
                return set()

    def _fields_at(self, place: Place) -> set[str]:
        depth = len(place)
        names = (setting.attributes for setting in catalogue())
        return {each[depth] for each in names if each[:depth] == place and len(each) == depth + 1}

    def _of_class(self, annotation: ast.expr) -> set[Place]:
        named = {each.id for each in _names_in(annotation)}
        return {place for name in named for place in self._sections.get(name, ())}

    def _note(self, name: str, places: set[Place]) -> None:
        if name and places:
            self._known.setdefault(name, set()).update(places)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _name(target: ast.expr) -> str:
    """`budget`, or `settings` for `self._settings`."""
    if isinstance(target, ast.Attribute):
        return target.attr.lstrip("_")
    return target.id if isinstance(target, ast.Name) else ""


def _names_in(node: ast.expr) -> Iterator[ast.Name]:
    return (each for each in ast.walk(node) if isinstance(each, ast.Name))
