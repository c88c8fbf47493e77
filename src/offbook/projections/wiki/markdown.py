"""Texts of others in Markdown: shown as they are, and never more than text.

Nothing in them can end its block, begin a heading, or become a link, a tag or HTML, in CommonMark, on Git hosts and in
Obsidian. What is no letter, and would make an editor take the file for a binary, is shown as a sign for it.
"""

from __future__ import annotations

import json
import re
from itertools import groupby
from urllib.parse import quote

from offbook.context.quotes import FENCE
from offbook.model.plain_names import is_plain_name

SHORTEST_FENCE = 3

_SIGNS = (
    {number: 0x2400 + number for number in range(0x20)}
    | dict.fromkeys((*range(128, 160), *range(55296, 57344)), 65533)
    | {0x7F: 0x2421, 0x85: 0x0A, 0x2028: 0x0A, 0x2029: 0x0A, 0x09: 0x09, 0x0A: 0x0A}
)
"""Control characters have pictures of their own in Unicode."""

_ANYWHERE = re.compile(
    r"[\\`*_\[\]<#|~$^]"
    r"|&(?=[#A-Za-z])"  # an entity
    r"|%(?=%)|(?<=%)%|=(?==)|(?<==)="  # Obsidian's comments and highlights
    r"|:(?=//)|(?<=www)\."  # what Git hosts make a link of by themselves
    r"|(?<=mailto):|(?<=xmpp):",
    re.IGNORECASE,
)
_AT_THE_START = re.compile(r"(\d{0,9})(?:(?<=\d)[.)]|(?<!\d)[-+=:>])")
"""A list, a line under a heading, a table, a quote."""
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")

_YAML_WORDS = frozenset(["true", "false", "null", "yes", "no", "on", "off", "y", "n"])
_NOT_PRINTABLE = (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)
_YAML_SIGNS = {number: f"\\u{number:04x}" for number in _NOT_PRINTABLE} | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


# ── text ──────────────────────────────────────────────────────────────────────────────────────


def clean(text: str) -> str:
    """With one kind of line end, and nothing that cannot be seen or written."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_SIGNS)


def fenced(text: str, info: str = "text") -> str:
    """As a block of its own, in a fence longer than any in it."""
    shown = clean(text)
    longest = max(map(len, FENCE.findall(shown)), default=SHORTEST_FENCE - 1)
    fence = "`" * (longest + 1)
    return f"{fence}{info}\n{shown}\n{fence}"


def plain_lines(text: str) -> str:
    """As a person reads it in a page: lines without blanks around them, paragraphs apart by one empty line."""
    lines = (line.strip() for line in clean(text).split("\n"))
    return "\n\n".join("\n".join(paragraph) for says_something, paragraph in groupby(lines, bool) if says_something)


def escaped(text: str) -> str:
    """As paragraphs. `unescaped` gives `plain_lines` of it."""
    return "\n".join(_escaped_line(line) for line in plain_lines(text).split("\n"))


def unescaped(text: str) -> str:
    """What somebody wrote in a page, as text."""
    return plain_lines(_ESCAPED.sub(r"\1", clean(text)))


def one_line(text: str, max_chars: int) -> str:
    """In one line, escaped: for titles and lists. Never empty, since an empty link cannot be seen."""
    line = " ".join(clean(text).split())
    shown = line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"
    return _escaped_line(shown) or "(blank)"


def _escaped_line(line: str) -> str:
    shown = _ANYWHERE.sub(r"\\\g<0>", line)
    start = _AT_THE_START.match(shown)  # nothing that is escaped already
    return shown if start is None else f"{start[1]}\\{shown[len(start[1]) :]}"


# ── front matter and links ────────────────────────────────────────────────────────────────────


def yaml_value(text: str) -> str:
    """As it is where YAML takes it for nothing else, else in quotes, as JSON: YAML reads that, too."""
    is_plain = is_plain_name(text, also="_./@:-", most_chars=len(text)) and text[0].isalpha() and text[-1].isalnum()
    if is_plain and text.casefold() not in _YAML_WORDS:
        return text
    return json.dumps(text, ensure_ascii=False).translate(_YAML_SIGNS)


def front_matter(fields: dict[str, str], more: str = "") -> str:
    """The values are YAML; `more` is lines of it."""
    lines = "".join(f"{name}: {value}\n" for name, value in fields.items())
    return f"---\n{lines}{more}---\n"


def link(label: str, path: str, anchor: str = "") -> str:
    """The label is Markdown, the path relative to the page."""
    target = quote(path, safe="/-._~")
    return f"[{label}]({target}{f'#{anchor}' if anchor else ''})"
