"""Changes to the text of a configuration: what is not meant stays as it was, comments and layout included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from offbook.client.config_files.json5 import Node, Part, parse, written
from offbook.model.errors import InvalidInput

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
