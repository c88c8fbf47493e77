"""Values put into one table of a TOML file; everything else in it, comments included, stays as it was."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from offbook.model.errors import InvalidInput


def with_values(text: str, table: str, values: Mapping[str, Any]) -> str:
    """`values` are texts, numbers, truth values and lists of these, by the key as it is to be spelled. A key that is
    there in another spelling (`max_tokens`, `maxTokens`) is the same one. Raises InvalidInput."""
    document = _parsed(text)
    known = document.get(table, {})
    if not isinstance(known, dict):
        raise InvalidInput(f"{table} is no table: mend that first")
    spelled = {_plain(name): name for name in known}
    wanted = {spelled.get(_plain(name), name): value for name, value in values.items()}
    changed = {name: value for name, value in wanted.items() if name not in known or known[name] != value}
    if not changed:
        return text
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    place = _table_lines(lines, table)
    if place is None:
        gap = "" if not text else end if text.endswith("\n") else end * 2
        added = [f"[{table}]", *(f"{name} = {_written(value)}" for name, value in changed.items())]
        new = text + gap + end.join(added) + end
    else:
        new = _replaced(lines, *place, changed, end)
    if is_whole(new) and tomllib.loads(new) == {**document, table: {**known, **changed}}:
        return new
    by_hand = ", ".join(f"{name} = {_written(value)}" for name, value in changed.items())
    raise InvalidInput(f"it is laid out in a way that cannot be edited safely: set {by_hand} in [{table}] by hand")


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"it is not TOML: {error}; mend that first") from None


def _table_lines(lines: list[str], table: str) -> tuple[int, int] | None:
    """From behind the table's header to the next header. A line that only looks like one, in a text or a list over
    several lines, follows something that is not whole."""
    headers = [
        at for at, line in enumerate(lines) if line.lstrip(" \t").startswith("[") and is_whole("".join(lines[:at]))
    ]
    for number, at in enumerate(headers):
        if lines[at].lstrip(" \t")[1:].partition("]")[0].strip(" \t") == table:
            return at + 1, headers[number + 1] if number + 1 < len(headers) else len(lines)
    return None


def _replaced(lines: list[str], start: int, end: int, changed: Mapping[str, Any], line_end: str) -> str:
    block = lines[start:end]
    for name, value in changed.items():
        line = f"{name} = {_written(value)}{line_end}"
        first = next((at for at, each in enumerate(block) if each.partition("=")[0].strip(" \t") == name), None)
        if first is None:
            block.insert(0, line)
            continue
        length = next(
            (size for size in range(1, len(block) - first + 1) if is_whole("".join(block[first : first + size]))), 1
        )
        block[first : first + length] = [line]
    before = "".join(lines[:start])
    return before + (line_end if before and not before.endswith("\n") else "") + "".join(block + lines[end:])


def is_whole(text: str) -> bool:
    """What comes before a line that only looks like a header, in a text or a list over several lines, is not."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _written(value: Any) -> str:
    """As TOML: its basic strings are those of JSON, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
