"""JSON5 as the host reads it, with the place of every value, so that one can change and the rest stays as written."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from offbook.model.errors import InvalidInput

_TRIVIA = re.compile(r"(?:[\s\ufeff]+|//[^\n\r\u2028\u2029]*|/\*.*?\*/)+", re.DOTALL)
_NAME = re.compile(r"[^\W\d][\w$\u200c\u200d]*|\$[\w$]*")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|Infinity|NaN|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_PLAIN = {quote: re.compile(rf"[^{quote}\\\n\r]*") for quote in "\"'"}
"""What stands for itself in a text between such quotes: taken at once, as a file may hold megabytes of it."""
_DEEPEST = 200
"""No configuration is nested like that; Python's own limit would end the program instead of telling."""


@dataclass(frozen=True)
class Node:
    """A value and where it stands. `parts` are the members of an object by name, or the items of a list by number."""

    value: Any
    start: int
    end: int
    parts: dict[str | int, Part] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """One member or item: from where, its value, and the comma behind it, if any."""

    start: int
    node: Node
    comma: int | None


def parse(text: str) -> Node:
    """The whole document. Raises InvalidInput, naming line and column."""
    reader = _Reader(text)
    reader.skip()
    node = reader.value(0)
    reader.skip()
    if reader.at < len(text):
        raise reader.fault("nothing more may follow")
    return node


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fault(self, what: str) -> InvalidInput:
        before = self.text[: self.at]
        column = self.at - (before.rfind("\n") + 1) + 1
        return InvalidInput(f"line {before.count(chr(10)) + 1}, column {column}: {what}")

    def skip(self) -> None:
        if match := _TRIVIA.match(self.text, self.at):
            self.at = match.end()

    def value(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise self.fault("nested too deep")
        character = self.text[self.at : self.at + 1]
        if character in ("{", "["):
            return self.container(depth, is_object=character == "{")
        start = self.at
        if character in ('"', "'"):
            return Node(self.string(), start, self.at)
        if match := _NUMBER.match(self.text, self.at):
            self.at = match.end()
            return Node(_number(match[0]), start, self.at)
        match = _NAME.match(self.text, self.at)
        if match is None or match[0] not in _WORDS:
            raise self.fault("a value is expected")
        self.at = match.end()
        return Node(_WORDS[match[0]], start, self.at)

    def container(self, depth: int, *, is_object: bool) -> Node:
        start, close = self.at, "}" if is_object else "]"
        self.at += 1
        parts: dict[str | int, Part] = {}
        comma: int | None = None
        while True:
            self.skip()
            if self.text.startswith(close, self.at):
                break
            if parts and comma is None:
                raise self.fault(f"a comma or {close} is expected")
            part_start = self.at
            name: str | int = self.name() if is_object else len(parts)
            node = self.value(depth + 1)
            self.skip()
            comma = self.at if self.text.startswith(",", self.at) else None
            self.at += comma is not None
            parts.pop(name, None)  # of a name that stands there twice the last counts
            parts[name] = Part(part_start, node, comma)
        self.at += 1
        value: Any = [part.node.value for part in parts.values()]
        if is_object:
            value = dict(zip(parts, value, strict=True))
        return Node(value, start, self.at, parts)

    def name(self) -> str:
        if self.text[self.at : self.at + 1] in ('"', "'"):
            name = self.string()
        elif match := _NAME.match(self.text, self.at):
            name, self.at = match[0], match.end()
        else:
            raise self.fault("a name is expected")
        self.skip()
        if not self.text.startswith(":", self.at):
            raise self.fault("a colon is expected")
        self.at += 1
        self.skip()
        return name

    def string(self) -> str:
        quote = self.text[self.at]
        self.at += 1
        plain = _PLAIN[quote]
        written: list[str] = []
        while True:
            match = plain.match(self.text, self.at)
            assert match is not None
            written.append(match[0])
            self.at = match.end()
            character = self.text[self.at : self.at + 1]
            if character in ("", "\n", "\r"):
                raise self.fault("the text is not closed")
            self.at += 1
            if character == quote:
                return written[0] if len(written) == 1 else _joined("".join(written))
            written.append(self.escaped())

    def escaped(self) -> str:
        character = self.text[self.at : self.at + 1]
        self.at += 1
        digits = {"x": 2, "u": 4}.get(character, 0)
        if digits:
            code = self.text[self.at : self.at + digits]
            if not re.fullmatch(f"[0-9a-fA-F]{{{digits}}}", code):
                raise self.fault(f"\\{character} needs {digits} hexadecimal digits")
            self.at += digits
            return chr(int(code, 16))
        if character in ("\n", "\u2028", "\u2029"):
            return ""
        if character == "\r":
            self.at += self.text.startswith("\n", self.at)
            return ""
        return _ESCAPES.get(character, character)


def _joined(text: str) -> str:
    """Two escapes may name one character: the halves of a surrogate pair."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _number(text: str) -> int | float:
    sign, digits = (-1 if text.startswith("-") else 1), text.lstrip("+-")
    if digits[:2] in ("0x", "0X"):
        return sign * int(digits, 16)
    if digits in ("Infinity", "NaN"):
        return sign * float(digits)
    return sign * (int(digits) if digits.isdigit() else float(digits))


def written(value: Any, *, indent: str | None = None) -> str:
    """A value as JSON, on one line, or on several with that indentation."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


# ── Changes to the text of a configuration ──
# What is not meant stays as it was, comments and layout included.


Path = tuple[str | int, ...]


class Missing:
    """Stands for no value at all, which null is not."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


@dataclass(frozen=True)
class Edit:
    """Put `value` at `path`, or take away what is there. The number behind a list's last item adds one to it."""

    path: Path
    value: Any


def edited(text: str, edits: list[Edit]) -> str:
    """Each edit in turn. Only what means exactly what was meant is returned."""
    if "\r\n" in text and text.count("\n") == text.count("\r\n"):  # one kind of line end stays one kind
        return edited(text.replace("\r\n", "\n"), edits).replace("\n", "\r\n")
    wanted = parse(text).value
    for edit in edits:
        wanted = applied(wanted, edit)
        text = _removed(text, edit.path) if edit.value is MISSING else _put(text, edit.path, edit.value)
    if parse(text).value != wanted:
        raise InvalidInput("the file is laid out in a way that cannot be edited safely: change it by hand")
    return text


def value_at(config: Any, path: Path) -> Any:
    """What stands at the path, or MISSING."""
    for name in path:
        is_item = isinstance(config, list) and isinstance(name, int) and name < len(config)
        if not is_item and not (isinstance(config, dict) and name in config):
            return MISSING
        config = config[name]
    return config


def dotted(path: Path) -> str:
    text = ""
    for name in path:
        text += f"[{name}]" if isinstance(name, int) else f".{name}" if text else name
    return text


def applied(config: Any, edit: Edit) -> Any:
    """The configuration with the edit, as a value; the given one stays as it is."""
    if not edit.path:
        return edit.value
    name, rest = edit.path[0], Edit(edit.path[1:], edit.value)
    if isinstance(name, int):
        items = list(config)
        if edit.value is MISSING and not rest.path:
            del items[name]
        elif name == len(items):
            items.append(applied({}, rest))
        else:
            items[name] = applied(items[name], rest)
        return items
    members = dict(config)
    if edit.value is MISSING and not rest.path:
        del members[name]
    else:
        members[name] = applied(members.get(name, [] if _is_number(rest.path) else {}), rest)
    return members


def _is_number(path: Path) -> bool:
    return bool(path) and isinstance(path[0], int)


def _node_at(root: Node, path: Path) -> Node:
    for name in path:
        root = root.parts[name].node
    return root


def _put(text: str, path: Path, value: Any) -> str:
    root = parse(text)
    known = len(path)
    while value_at(root.value, path[:known]) is MISSING:
        known -= 1
    if known == len(path):
        node = _node_at(root, path)
        return text[: node.start] + _laid_out(text, value, _indent_at(text, node.start)) + text[node.end :]
    for name in reversed(path[known + 1 :]):
        value = [value] if isinstance(name, int) else {name: value}
    return _added(text, _node_at(root, path[:known]), path[known], value)


def _added(text: str, into: Node, name: str | int, value: Any) -> str:
    prefix = "" if isinstance(name, int) else f"{written(name)}: "
    close = into.end - 1
    if not into.parts:
        outer = _indent_at(text, into.start)
        inner = outer + _unit(text)
        comment = text[into.start + 1 : close].rstrip()
        body = f"{comment}\n{inner}{prefix}{_laid_out(text, value, inner)}\n{outer}"
        return text[: into.start + 1] + body + text[close:]
    last = list(into.parts.values())[-1]
    line = text.rfind("\n", 0, close) + 1
    comma, trailing = (",", "") if last.comma is None else ("", ",")  # who writes trailing commas gets one
    if line > last.node.end and not text[line:close].strip():  # the closing bracket has a line of its own
        indent = _indent_at(text, last.start)
        addition = f"{indent}{prefix}{_laid_out(text, value, indent)}{trailing}\n"
        return text[: last.node.end] + comma + text[last.node.end : line] + addition + text[line:]
    end = last.node.end if last.comma is None else last.comma + 1
    return text[:end] + f"{comma} {prefix}{written(value)}{trailing}" + text[end:]


def _removed(text: str, path: Path) -> str:
    holder = _node_at(parse(text), path[:-1])
    parts = list(holder.parts.values())
    part = holder.parts[path[-1]]
    at = parts.index(part)
    if len(parts) == 1 and not _has_comment(text, holder, part):
        return text[: holder.start + 1] + text[holder.end - 1 :]
    end = part.node.end if part.comma is None else part.comma + 1
    start, end = _whole_lines(text, part.start, end)
    text = text[:start] + text[end:]
    before = parts[at - 1].comma if at else None
    if part.comma is None and before is not None:  # it was the last: the comma that led to it goes, too
        text = text[:before] + text[before + 1 :]
    return text


def _has_comment(text: str, holder: Node, part: Part) -> bool:
    behind = part.node.end if part.comma is None else part.comma + 1
    return bool((text[holder.start + 1 : part.start] + text[behind : holder.end - 1]).strip())


def _whole_lines(text: str, start: int, end: int) -> tuple[int, int]:
    """With the lines, where nothing else stands on them; else with the space before."""
    line = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    if not text[line:start].strip() and line_end >= 0 and not text[end:line_end].strip():
        return line, line_end + 1
    while start and text[start - 1] in " \t":
        start -= 1
    return start, end


def _indent_at(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """One step of indentation, as the file has it."""
    lines = [line for line in text.split("\n")[1:] if line.strip() and line[0] in " \t"]
    return lines[0][: len(lines[0]) - len(lines[0].lstrip(" \t"))] if lines else "  "


def _laid_out(text: str, value: Any, indent: str) -> str:
    """Objects on several lines, in line with where they stand; short lists as the host's own writer has them."""
    return written(value, indent=_unit(text)).replace("\n", "\n" + indent)
