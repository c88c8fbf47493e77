"""Pages that Offbook wrote itself, for people to read: what they say is remembered already, and not taken in."""

from __future__ import annotations

from offbook.model.lesson import PAGE_FIELDS

HEAD_CHARS = 8_192
"""Enough to know one by."""
_LESSON, _COLD = frozenset(PAGE_FIELDS), frozenset({"id", "role", "session", "seq", "logRef"})
_SUBJECT = frozenset({"id", "kind", "name", "statements", "sessions"})
_DAY = (frozenset({"agent", "date"}), frozenset({"agent", "date", "part"}))
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
    is_day = fields.keys() in _DAY and title.startswith("# ") and f", {day}" in title
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
