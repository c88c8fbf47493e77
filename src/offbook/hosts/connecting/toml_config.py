"""A TOML configuration with our server in it, or without. Python reads TOML and writes none, so the text is changed,
and only what reads as exactly what was meant is returned."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from offbook.errors import InvalidInput
from offbook.hosts.connecting.server import NAME, checked_entry, renewed

_HEADER = re.compile(r"[ \t]*\[")
_BY_HAND = "the file is laid out in a way that cannot be edited safely; {} by hand"


def read_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"it is not TOML: {error}") from None


def with_server(text: str, table: str, entry: dict[str, Any]) -> str:
    """Raises InvalidInput, also where what stands under our name is not ours. What somebody added to it stays."""
    config = read_toml(text)
    servers = config.get(table, {})
    if not isinstance(servers, dict) or not isinstance(servers.get(NAME, {}), dict):
        raise InvalidInput(f"{table} is no table: mend that first")
    known = servers.get(NAME)
    wanted = entry
    if known is not None:
        wanted = renewed(checked_entry(known, f"{table}.{NAME}", entry["command"]), entry)
    if known == wanted:
        return text
    new = _appended(text, table, wanted) if known is None else _rewritten(text, table, known, wanted)
    # A table that is written in one line cannot have a header elsewhere: what is to be in it goes between its braces.
    line = f"{NAME} = {_written(wanted)}"
    by_hand = f"put `{line}` into {table}" if known is None else f"make it `{line}` in {table}"
    return _checked(new, {**config, table: {**servers, NAME: wanted}}, by_hand)


def without_server(text: str, table: str) -> str:
    """Raises InvalidInput, also where what stands under our name is not ours."""
    config = read_toml(text)
    servers = config.get(table)
    if not isinstance(servers, dict) or NAME not in servers:
        return text
    checked_entry(servers[NAME], f"{table}.{NAME}")
    lines = text.splitlines(keepends=True)
    for start, end in reversed(_blocks(lines, table)):
        first = start - 1 if start and not lines[start - 1].strip() else start
        del lines[first:end]
    rest = {name: value for name, value in servers.items() if name != NAME}
    others = {name: value for name, value in config.items() if name != table}
    # A header of the table of all servers, with none in it, may stay.
    new = "".join(lines)
    wanted = {**config, table: rest} if rest or table in read_toml(new) else others
    return _checked(new, wanted, f"take {table}.{NAME} away")


def _checked(text: str, wanted: dict[str, Any], what: str) -> str:
    if not _is_toml(text) or tomllib.loads(text) != wanted:
        raise InvalidInput(_BY_HAND.format(what))
    return text


def _appended(text: str, table: str, entry: dict[str, Any]) -> str:
    end = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text else end if text.endswith("\n") else end * 2
    lines = [f"[{table}.{NAME}]", *(f"{name} = {_written(value)}" for name, value in entry.items())]
    return text + gap + end.join(lines) + end


def _rewritten(text: str, table: str, known: dict[str, Any], wanted: dict[str, Any]) -> str:
    """Each value that changes stands on a line of its own, or it is not ours to change: then nothing is changed."""
    lines = text.splitlines(keepends=True)
    blocks = _blocks(lines, table)
    if not blocks:
        return text
    start, end = blocks[0]
    for name, value in wanted.items():
        if known.get(name) == value:
            continue
        line = f"{name} = {_written(value)}\n"
        places = [at for at in range(start + 1, end) if re.match(rf"[ \t]*{name}[ \t]*=", lines[at])]
        if places:
            lines[places[0]] = line
        else:
            lines.insert(start + 1, line)
            end += 1
    return "".join(lines)


def _blocks(lines: list[str], table: str) -> list[tuple[int, int]]:
    """From the header of our table, or of one in it, to its last value: comments behind that are no part of it."""
    ours = re.compile(rf"[ \t]*\[\s*{re.escape(table)}\s*\.\s*[\"']?{NAME}[\"']?\s*[.\]]")
    headers = [at for at, line in enumerate(lines) if _HEADER.match(line) and _is_toml("".join(lines[:at]))]
    found: list[tuple[int, int]] = []
    for number, start in enumerate(headers):
        if ours.match(lines[start]):
            end = headers[number + 1] if number + 1 < len(headers) else len(lines)
            while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
                end -= 1
            found.append((start, end))
    return found


def _is_toml(text: str) -> bool:
    """What comes before a header is whole. What comes before a line that only looks like one, in a text or a list over
    several lines, is not."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _written(value: Any) -> str:
    """As TOML: its basic strings are those of JSON, but for DEL."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {_written(inner)}" for name, inner in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
