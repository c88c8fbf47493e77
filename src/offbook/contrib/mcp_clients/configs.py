"""A JSON configuration with our server in it, or without. Comments and layout stay."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from offbook.client.config_files.editing import MISSING, Edit, Path, applied, dotted, edited, parse, value_at
from offbook.client.config_files.toml import is_whole
from offbook.contrib.mcp_clients.clients import HOOK_SECONDS, NAME, checked_entry, is_our_hook, renewed
from offbook.model.errors import InvalidInput


class Draft:
    """Changes to one file, each on top of those before it."""

    def __init__(self, text: str) -> None:
        """Raises InvalidInput. An empty file is an empty object."""
        self._text = text if text.strip() else "{}\n"
        self.config = parse(self._text).value
        if not isinstance(self.config, dict):
            raise InvalidInput("it holds no object")
        self._edits: list[Edit] = []

    def put(self, path: Path, value: Any) -> None:
        if value_at(self.config, path) == value:
            return
        for length in range(1, len(path)):
            holder = value_at(self.config, path[:length])
            kind, named = (list, "list") if isinstance(path[length], int) else (dict, "object")
            if holder is not MISSING and not isinstance(holder, kind):
                raise InvalidInput(f"{dotted(path[:length])} is no {named}: mend that first")
        self._edit(Edit(path, value))

    def take(self, path: Path) -> None:
        if value_at(self.config, path) is not MISSING:
            self._edit(Edit(path, MISSING))

    def prune(self, path: Path) -> None:
        """What is empty now, from there up to a member of the root, was there for us."""
        while path and value_at(self.config, path) in ({}, []):
            self.take(path)
            path = path[:-1]

    def _edit(self, edit: Edit) -> None:
        self.config = applied(self.config, edit)
        self._edits.append(edit)

    @property
    def text(self) -> str:
        return edited(self._text, self._edits)

    @property
    def is_changed(self) -> bool:
        return bool(self._edits)


def add_server(draft: Draft, servers: tuple[str, ...], entry: dict[str, Any]) -> None:
    """What somebody added to our entry stays. Raises InvalidInput where what stands under our name is not ours."""
    path: Path = (*servers, NAME)
    found = value_at(draft.config, path)
    if found is MISSING:
        draft.put(path, entry)
        return
    known = checked_entry(found, dotted(path), entry["command"])
    for name, value in renewed(known, entry).items():
        if name == "env":
            for variable in known.get("env", {}).keys() - value.keys():
                draft.take((*path, "env", variable))
            for variable, text in value.items():
                draft.put((*path, "env", variable), text)
        else:
            draft.put((*path, name), value)


def remove_server(draft: Draft, servers: tuple[str, ...]) -> None:
    """Raises InvalidInput where what stands under our name is not ours."""
    path: Path = (*servers, NAME)
    found = value_at(draft.config, path)
    if found is MISSING:
        return
    checked_entry(found, dotted(path))
    draft.take(path)
    draft.prune(servers)


# ── A TOML configuration with our server in it, or without ──

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
    if not is_whole(text) or tomllib.loads(text) != wanted:
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
    headers = [
        at for at, line in enumerate(lines) if line.lstrip(" \t").startswith("[") and is_whole("".join(lines[:at]))
    ]
    found: list[tuple[int, int]] = []
    for number, start in enumerate(headers):
        if ours.match(lines[start]):
            end = headers[number + 1] if number + 1 < len(headers) else len(lines)
            while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
                end -= 1
            found.append((start, end))
    return found


def _written(value: Any) -> str:
    """As TOML: its basic strings are those of JSON, but for DEL."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {_written(inner)}" for name, inner in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


# ── Our hooks among those of Claude Code or Codex: `hooks.<event>[n].hooks[m]` in both ──


def add_hooks(draft: Draft, events: tuple[str, ...], host: str, command: str) -> None:
    """Behind those of others: Codex knows a hook that it was told to trust by its number."""
    for event in events:
        ours = list(_ours(draft.config, event, host, command))
        for group, hook in ours:
            draft.put(("hooks", event, group, "hooks", hook, "command"), command)
        if not ours:
            groups = value_at(draft.config, ("hooks", event))
            at = len(groups) if isinstance(groups, list) else 0
            handler = {"type": "command", "command": command, "timeout": HOOK_SECONDS}
            draft.put(("hooks", event, at), {"hooks": [handler]})


def remove_hooks(draft: Draft, host: str) -> None:
    """Ours, under whatever event they stand."""
    events = value_at(draft.config, ("hooks",))
    for event in list(events) if isinstance(events, dict) else []:
        for group, hook in reversed(list(_ours(draft.config, event, host))):
            path = ("hooks", event, group, "hooks")
            draft.take((*path, hook))
            if value_at(draft.config, path) == []:
                draft.take(path[:-1])
        if value_at(events, (event,)):  # an empty list of somebody's own is not for us to take
            draft.prune(("hooks", event))


def our_hooks(config: Any, host: str) -> tuple[tuple[str, ...], str]:
    """The events under which ours stand, and how the first of them is called."""
    events = value_at(config, ("hooks",))
    found = {
        event: value_at(config, ("hooks", event, group, "hooks", hook, "command"))
        for event in (events if isinstance(events, dict) else {})
        for group, hook in _ours(config, event, host)
    }
    return tuple(found), str(next(iter(found.values()), ""))


def _ours(config: Any, event: str, host: str, command: str | None = None) -> Iterator[tuple[int, int]]:
    """`command`: how we are called now, which may be by any name."""
    groups = value_at(config, ("hooks", event))
    for group, found in enumerate(groups if isinstance(groups, list) else []):
        hooks = found.get("hooks") if isinstance(found, dict) else None
        for number, hook in enumerate(hooks if isinstance(hooks, list) else []):
            called = hook.get("command") if isinstance(hook, dict) else None
            if is_our_hook(called, host) or (called is not None and called == command):
                yield group, number
