"""The notes of a Markdown text: each paragraph and each item of a list, with the headings that stand above it.

No more of Markdown is known here than that takes. What is inside a fence is not looked at; an item keeps what is
indented under it, for it often makes no sense without; front matter, comments and rules are no notes. A comment that
does not end is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
FRONT_MATTER, COMMENTS = "front matter", "comments"
_COMMENT_BEGINS, _COMMENT_ENDS = "<!--", "-->"
_FIELD = re.compile(r"[^\s#-][^:]*:(?:[ \t].*)?|[\"']?[^\W\d][\w.-]*[\"']?:(?!//).+")
"""`key: value`; without the space where the key is one word, and the line neither an address nor a time of day."""
_UNDER_A_FIELD = (" ", "\t", "-", "]", "}")
_DOCUMENT_ENDS = "..."


class Note(NamedTuple):
    headings: tuple[str, ...]
    text: str
    line: int


def notes(text: str, leave: Callable[[str], None] = lambda what: None) -> Iterator[Note]:
    """`leave` is told what is no note and says something: `FRONT_MATTER`, `COMMENTS`."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    second_mark = _second_mark(lines)
    begin = second_mark if _is_front_matter(lines[: max(0, second_mark - 1)]) else 0
    if begin:
        leave(FRONT_MATTER)
    last_end = next((number for number in range(len(lines), 0, -1) if _COMMENT_ENDS in lines[number - 1]), 0)
    reading = _Reading(last_end, second_mark, leave)
    for number, line in enumerate(lines[begin:], begin + 1):
        yield from reading.line(number, line)
    yield from reading.finished_block()


class _Reading:
    """Where the reader is: under which headings, in which block, inside which fence or comment. `last_end` is the last
    line with an end of a comment; `rule` is a line that underlines no heading, whatever stands above it."""

    def __init__(self, last_end: int, rule: int, leave: Callable[[str], None]) -> None:
        self._last_end = last_end
        self._rule = rule
        self._leave = leave
        self._in_comment = False
        self._headings: dict[int, str] = {}
        self._block: list[str] = []
        self._begun = 0
        self._fence = ""

    def finished_block(self) -> Iterator[Note]:
        """The block that ends here, if it is a note."""
        body = _body(self._block)
        self._block = []
        if body:
            yield Note(tuple(self._headings[level] for level in sorted(self._headings)), body, self._begun)

    def line(self, number: int, line: str) -> Iterator[Note]:
        if self._fence:
            self._block.append(line)
            self._close(line)
            return
        bare = self._without_comments(number, line)
        if bare == line or bare.strip():  # a line of nothing but a comment is no blank one
            yield from self._bare(number, bare)

    def _without_comments(self, number: int, line: str) -> str:
        kept, position = [], 0
        while True:
            if not self._in_comment:
                begin = _comment_in(line, position)
                is_one = begin >= 0 and (line.find(_COMMENT_ENDS, begin + 4) >= 0 or number < self._last_end)
                kept.append(line[position : begin if is_one else len(line)])
                if not is_one:
                    break
                self._in_comment, position = True, begin + len(_COMMENT_BEGINS)
                self._leave(COMMENTS)
            end = line.find(_COMMENT_ENDS, position)
            if end < 0:
                break
            self._in_comment, position = False, end + len(_COMMENT_ENDS)
        return "".join(kept)

    def _bare(self, number: int, line: str) -> Iterator[Note]:
        if self._may_be_heading(number) and (under := _only_sign(line.rstrip(" \t"))) in ("=", "-"):
            _put(self._headings, 1 if under == "=" else 2, self._block[0].strip())
            self._block = []
        elif (heading := _HEADING.fullmatch(line)) and not (self._block and _is_indented(line)):
            yield from self.finished_block()
            _put(self._headings, len(heading[1]), (heading[2] or "").strip())
        elif _is_rule(line):
            yield from self.finished_block()
        elif line.strip():
            if self._is_next(line):
                yield from self.finished_block()
            self._add(number, line)
        elif self._in_item():
            self._block.append("")  # what follows indented is still of this item
        else:
            yield from self.finished_block()

    def _may_be_heading(self, number: int) -> bool:
        """Whether the block is one if this line underlines it."""
        return len(self._block) == 1 and not self._in_item() and number != self._rule

    def _in_item(self) -> bool:
        return bool(self._block) and _ITEM.match(self._block[0]) is not None

    def _is_next(self, line: str) -> bool:
        """Whether the block ends before this line."""
        if not self._block or _is_indented(line):
            return False
        return _ITEM.match(line) is not None or self._block[-1] == ""

    def _add(self, number: int, line: str) -> None:
        if not self._block:
            self._begun = number
        self._block.append(line)
        bare = line.lstrip(" \t")
        if bare.startswith(("```", "~~~")):
            self._fence = bare[: len(bare) - len(bare.lstrip(bare[0]))]

    def _close(self, line: str) -> None:
        mark = line.strip()
        if mark.startswith(self._fence) and not mark.strip(self._fence[0]):
            self._fence = ""


def _only_sign(line: str) -> str:
    """The sign that a line consists of; "" where it is another kind of line, or indented as code is."""
    bare = line.lstrip(" ")
    return bare[0] if bare and len(set(bare)) == 1 and len(line) - len(bare) < 4 else ""


def _is_rule(line: str) -> bool:
    signs = line.replace("\t", " ").rstrip(" ")
    indent = len(signs) - len(signs.lstrip(" "))
    return indent < 4 and len(signs.replace(" ", "")) > 2 and _only_sign(signs.replace(" ", "")) in tuple("-*_")


def _comment_in(line: str, position: int) -> int:
    """Where one begins, outside of what is marked as code; -1 where none does."""
    begin = line.find(_COMMENT_BEGINS, position)
    while begin >= 0 and line.count("`", 0, begin) % 2:
        begin = line.find(_COMMENT_BEGINS, begin + 1)
    return begin


def _is_indented(line: str) -> bool:
    return line.startswith(("  ", "\t"))


def _put(headings: dict[int, str], level: int, text: str) -> None:
    for deeper in [each for each in headings if each >= level]:
        del headings[deeper]
    if text:
        headings[level] = text


def _body(block: list[str]) -> str:
    """Its text without the mark of an item."""
    if not block:
        return ""
    item = _ITEM.match(block[0])
    if item is None:
        return "\n".join(line.rstrip() for line in block).strip()
    width = item.end()
    rest = [line[min(width, len(line) - len(line.lstrip())) :].rstrip() for line in block[1:]]
    return "\n".join([block[0][width:].rstrip(), *rest]).strip()


def _second_mark(lines: list[str]) -> int:
    """The line that ends the front matter, if it is some, that the first line begins; 0 where there is none."""
    if lines[0].rstrip(" \t") not in ("---", "+++"):
        return 0
    mark = lines[0].strip()
    return next((number for number, line in enumerate(lines[1:], 2) if line.rstrip() == mark), 0)


def _is_front_matter(lines: list[str]) -> bool:
    """Of the lines before the second mark. A page may begin with a rule as well: notes between two rules are notes."""
    return bool(lines) and (lines[0].strip() != "---" or _are_fields(lines[1:]))


def _are_fields(lines: list[str]) -> bool:
    """Whether a page is described here: the first line that says something is a field, and so is each that stands
    under none."""
    described = [line for line in lines if line.strip() and not line.startswith("#")]
    open_brackets = 0
    for number, line in enumerate(described):
        is_field = _FIELD.fullmatch(line) is not None
        is_under = number > 0 and (line.startswith(_UNDER_A_FIELD) or line.rstrip() == _DOCUMENT_ENDS)
        if not (is_field or is_under or open_brackets > 0):
            return False
        if open_brackets > 0 or (
            is_field and line.partition(":")[2].lstrip(" \t").startswith(("[", "{"))
        ):  # a list may go on where a line begins
            open_brackets += sum(line.count(mark) for mark in "[{") - sum(line.count(mark) for mark in "]}")
    return bool(described)
