"""The fields that a person, or their editor, has in the front matter of a page of ours: they stay theirs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence

from offbook.projections.wiki.markdown import clean

_FIELD = re.compile(r"([A-Za-z_][\w-]*):(?: +(.*))?")
_FURTHER = (" ", "\t", "- ", "#")
"""What Obsidian and people put below a field begins so: lists, comments."""
_CONFLICT = frozenset(("<<<<<<<", "=======", ">>>>>>>"))
"""Left by a merge that is not finished."""


class BrokenPage(Exception):
    """What is wrong with the page."""


def without_own(text: str, page_id: str, ours: Collection[str], says: Callable[[str], bool]) -> str:
    """The page without what a person has in its front matter and `says` knows; all else in it stays, also what nobody
    has taken yet. Of a list only those items go, of anything else the field."""
    head, _, body = parted(text, page_id)
    fields = _with_lines_below(head)
    left = [_unsaid(lines, ours, says) for lines in fields]
    if left == fields:
        return text
    return "".join(["---\n", *(f"{line}\n" for lines in left for line in lines), "---\n", body])


def parted(text: str, page_id: str) -> tuple[str, dict[str, str], str]:
    """The front matter, its fields, and what is below it."""
    text = clean(text.removeprefix("\ufeff"))
    if any(line.partition(" ")[0] in _CONFLICT for line in text.split("\n")):
        raise BrokenPage("it holds the marks of a merge that is not finished")
    first, _, rest = text.partition("\n")
    head, end, body = f"\n{rest}".partition("\n---\n")
    if first.rstrip() != "---" or not end:
        raise BrokenPage("it does not begin with front matter between two lines of ---")
    fields = dict(_fields(head))
    if fields.get("id") != page_id:
        raise BrokenPage(f"its front matter does not say `id: {page_id}`")
    return head, fields, body


def _fields(head: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in head.split("\n")[1:]:
        field = _FIELD.fullmatch(line.rstrip())
        if field is not None:
            found.append((field[1], _value(field[2] or "")))
        elif line and not line.startswith(_FURTHER):
            raise BrokenPage(f"its front matter has a line that is no field: {line[:60]!r}")
    return found


def own_fields(head: str, ours: Collection[str]) -> str:
    """The fields that are not ours, with the lines below each."""
    own = [lines for lines in _with_lines_below(head) if _name(lines) is not None and _name(lines) not in ours]
    return "".join(f"{line}\n" for lines in own for line in lines)


def _with_lines_below(head: str) -> list[list[str]]:
    """By field: its line and those below it. Lines above all of them are the first, without a field."""
    found: list[list[str]] = []
    for line in head.split("\n")[1:]:
        if not found or _FIELD.fullmatch(line.rstrip()) is not None:
            found.append([])
        found[-1].append(line)
    return found


def _name(lines: Sequence[str]) -> str | None:
    field = _FIELD.fullmatch(lines[0].rstrip())
    return None if field is None else field[1]


def _unsaid(lines: list[str], ours: Collection[str], says: Callable[[str], bool]) -> list[str]:
    """A field and the lines below it without what says it. What we write is not for us to take here: what a lesson says
    is changed in the lesson."""
    first, below = (lines[:1], lines[1:]) if _name(lines) is not None else ([], lines)
    is_ours = not first or _name(lines) in ours
    if (is_ours and not below) or not says("\n".join(below if is_ours else lines)):
        return lines
    left = [*first, *(line for line in below if not says(line))]
    if _is_list(below) and not says("\n".join(left[len(first) :] if is_ours else left)):
        return left
    return first if is_ours else []


def _is_list(lines: Sequence[str]) -> bool:
    """Each item in a line of its own, and none within another."""
    items = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    before = {line.partition("- ")[0] for line in items}
    return len(before) <= 1 and not "".join(before).strip(" \t")


def _value(text: str) -> str:
    if text.startswith('"'):
        try:
            return str(json.loads(text))
        except ValueError:
            raise BrokenPage(f"a quote in its front matter does not end: {text[:60]!r}") from None
    if text.startswith("'"):
        return text.strip("'").replace("''", "'")
    return text.partition(" #")[0].strip()
