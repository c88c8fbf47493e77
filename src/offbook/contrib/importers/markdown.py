"""Memory that is kept as Markdown files: MEMORY.md, CLAUDE.md, a folder of daily notes, any folder of notes.

A note is known by its file, its headings and its text. So after an edit only what is new is added, and what was taken
out of a file stays in the log: a log is of what was once noted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from offbook.client.history.conversations import Conversation, Damage, Damaged, ImportReport, Ready
from offbook.client.history.files import LINKS, Why, bounded, digest_of, files_under, ready, time_of
from offbook.client.history.formats import FORMATS, Owner
from offbook.model.files import open_regular
from offbook.model.lesson import PAGE_FIELDS

ORIGIN = "memory:markdown"
SUFFIXES = (".md", ".markdown")
NAMED_SUFFIXES = (*SUFFIXES, ".txt")
"""Of a file that is named itself."""
OWN = "Offbook wrote them from what it remembers; a lesson is edited in the wiki itself"
NOT_NOTED = "about the page, and no note in it"
LARGEST_BYTES = 64 * 1024 * 1024
_PACKAGES = frozenset({"node_modules", "__pycache__"})
_DAY = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")


def conversations(path: Path, report: ImportReport, owner: Owner) -> list[Conversation]:
    folder = path if path.is_dir() else path.parent
    files = list(_files(path, report)) if path.is_dir() else [path]
    if not files:
        report.cannot_read(str(path), f"holds no Markdown file: {FORMATS['markdown'].give}")
    found = []
    for each in files:
        name = each.relative_to(folder).as_posix()
        if not path.is_dir() and not name.lower().endswith(NAMED_SUFFIXES):
            report.cannot_read(
                name, f"no Markdown by its name: {', '.join(NAMED_SUFFIXES)} are read; rename it if it is some"
            )
            continue
        if _is_own(each):
            report.leave("pages of Offbook's own", OWN)
            continue
        key = bounded(f"markdown:{name}".encode(errors="replace").decode())
        try:
            size = each.stat().st_size
        except OSError as error:
            report.cannot_read(name, f"cannot be read: {error}")
            continue
        found.append(Conversation(owner(key), key, size, partial(_messages, each, name, report)))
    return found


def _files(folder: Path, report: ImportReport) -> Iterator[Path]:
    for path in files_under(folder, report, _why_not):
        if path.is_symlink():
            report.leave(*LINKS)
        elif path.name.lower().endswith(SUFFIXES):
            yield path
        else:
            report.leave("files that are no Markdown", "only .md and .markdown files are read from a folder")


def _why_not(folder: str) -> Why | None:
    """Few of these hold notes, and nobody wants those of a program's packages; who does gives the folder itself."""
    if folder.startswith("."):
        return "hidden folders", "programs keep their own in them: give one itself if it holds notes"
    return ("folders of packages", "they hold no notes") if folder in _PACKAGES else None


def _is_own(path: Path) -> bool:
    try:
        with open_regular(path) as source:
            return is_own_page(source.read(HEAD_CHARS).decode(errors="replace"))
    except OSError:
        return False  # it is told where it is read


def _messages(path: Path, name: str, report: ImportReport, damaged: Damaged) -> Iterator[Ready]:
    try:
        with open_regular(path) as source:
            data = source.read(LARGEST_BYTES + 1)
            changed_at = os.fstat(source.fileno()).st_mtime
        if len(data) > LARGEST_BYTES:
            raise ValueError(f"larger than {LARGEST_BYTES:,} bytes: split it")
        text = data.decode()
    except UnicodeDecodeError as error:
        damaged(Damage(name, f"not UTF-8 at byte {error.start:,}: save it as UTF-8", is_whole=True))
        return
    except (OSError, ValueError) as error:
        damaged(Damage(name, f"cannot be read: {error}", is_whole=True))
        return
    seen: set[str] = set()
    for note in notes(text, lambda what: report.leave(what, NOT_NOTED)):
        message_id = digest_of(name, *note.headings, note.text)
        if message_id in seen:
            continue
        title = note.headings[0] if note.headings and not seen else None
        meta = {"file": name, "headings": list(note.headings), "line": note.line, "title": title}
        seen.add(message_id)
        at = _noted_at(note, name) or time_of(changed_at)
        where = f"{name} line {note.line}"
        yield ready(message_id, "user", _format_note(note), at=at, where=where, labels={"origin": ORIGIN}, meta=meta)


def _format_note(note: Note) -> str:
    """A note that is found alone must still say what it is about."""
    if not note.headings:
        return note.text
    between = "\n" if "\n" in note.text else " "
    return f"{' › '.join(note.headings)}:{between}{note.text}"


def _noted_at(note: Note, name: str) -> datetime | None:
    """The day that the nearest heading names, or the file. Noon: that day in nearly every zone."""
    for text in (*reversed(note.headings), Path(name).stem):
        day = _DAY.search(text)
        if day is None:
            continue
        try:
            return time_of(datetime.fromisoformat(day[0]).replace(hour=12, tzinfo=UTC).isoformat())
        except ValueError:
            continue
    return None


# ── Pages that Offbook wrote itself, for people to read: what they say is remembered already ──


HEAD_CHARS = 8_192
"""Enough to know one by."""
_LESSON, _COLD = frozenset(PAGE_FIELDS), frozenset({"id", "role", "session", "seq", "logRef"})
_SUBJECT = frozenset({"id", "kind", "name", "statements", "sessions"})
_DAY_PAGE = (frozenset({"agent", "date"}), frozenset({"agent", "date", "part"}))
_UP = ("[All agents](../index.md)", "[Index](../index.md)")
_NOBODY_YET = "No agent has been heard yet."


def is_own_page(head: str) -> bool:
    """By how it begins: a page of the wiki, or a summary of `offbook export --format summaries`."""
    head = head.removeprefix("\ufeff").replace("\r\n", "\n")
    if _is_index(head.split("\n")) or _is_summary(head):
        return True
    front, end, body = head.removeprefix("---\n").partition("\n---\n")
    if not head.startswith("---\n") or not end:
        return False
    fields = {name: value.strip() for line in front.split("\n") for name, _, value in [line.partition(":")]}
    title = body.lstrip().partition("\n")[0]
    day = fields.get("date", "").strip("'\"")
    is_day = fields.keys() in _DAY_PAGE and title.startswith("# ") and f", {day}" in title
    return fields.keys() >= _LESSON or fields.keys() >= _COLD or fields.keys() >= _SUBJECT or is_day


def _is_index(lines: list[str]) -> bool:
    """Of one agent, or of all."""
    if lines[0] == "# Memory":
        agents = [line for line in lines[1:] if line]
        return bool(agents) and all(
            line == _NOBODY_YET or (line.startswith("- [") and line.endswith("/index.md)")) for line in agents
        )
    return lines[0].startswith("# ") and lines[1:2] == [""] and lines[2:3] != [] and lines[2] in _UP


def _is_summary(head: str) -> bool:
    """The plugin writes no `firstAt`."""
    comment = head.partition("-->")[0]
    return head.startswith("<!--\n") and "\n  level: L" in comment and "\n  firstAt: " in comment


# ── The notes of a Markdown text ──
# Each paragraph and each item of a list, with the headings that stand above it.
# No more of Markdown is known here than that takes. What is inside a fence is not looked at; an item keeps what is
# indented under it, for it often makes no sense without; front matter, comments and rules are no notes. A comment
# that does not end is none.


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
