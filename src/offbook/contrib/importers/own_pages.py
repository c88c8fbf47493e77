"""Pages that Offbook wrote itself, for people to read: what they say is remembered already, and not taken in."""

from __future__ import annotations

import re

from offbook.model.lesson import PAGE_FIELDS

HEAD_CHARS = 8_192
"""Enough to know one by."""
_FIELD = re.compile(r"([A-Za-z_]\w*):(?: .*)?")
_LESSON, _COLD = frozenset(PAGE_FIELDS), frozenset({"id", "role", "session", "seq", "logRef"})
_DAY = (frozenset({"agent", "date"}), frozenset({"agent", "date", "part"}))
_DAY_TITLE = re.compile(r"\n# .+, \d{4}-\d\d-\d\d(?:, part \d+)?\n")
_INDEX = re.compile(r"# [^\n]+\n\n\[(?:All agents|Index)\]\(\.\./index\.md\)\n")
_AGENTS = re.compile(r"# Memory\n\n(?:No agent has been heard yet\.\n|(?:- \[[^\n]*\]\([^\n]+/index\.md\)\n)+)")
_SUMMARY = re.compile(r"<!--\n(?:  \w+: [^\n]*\n)*?  level: L\d\n(?:  \w+: [^\n]*\n)*?  firstAt: ")
"""The plugin writes no `firstAt`."""


def is_own_page(head: str) -> bool:
    """By how it begins: a page of the wiki, or a summary of `offbook export --format summaries`."""
    head = head.removeprefix("\ufeff").replace("\r\n", "\n")
    if _INDEX.match(head) or _AGENTS.fullmatch(head) or _SUMMARY.match(head):
        return True
    front, end, body = head.removeprefix("---\n").partition("\n---\n")
    if not head.startswith("---\n") or not end:
        return False
    fields = frozenset(field[1] for line in front.split("\n") if (field := _FIELD.fullmatch(line)))
    is_day = fields in _DAY and _DAY_TITLE.match(f"\n{body.lstrip()}") is not None
    return fields >= _LESSON or fields >= _COLD or is_day
