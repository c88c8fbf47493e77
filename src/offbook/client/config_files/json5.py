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
