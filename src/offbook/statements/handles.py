"""What runs or is held, by the identifiers it goes by: processes, ports, jobs, sessions, branches, pull requests.

Identifiers are found by how they are written and by what calls of tools name, not by what is said about them.
Whatever is heard of one later stands beside it, so that whoever reads it sees how it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from offbook.search.words import CAMEL
from offbook.statements.exchanges import Call, strings_in

READ_CHARS = 4_000
MAX_IDS = 6
"""Of one handle."""
LONGEST_NAME_CHARS = 120
MAX_NAMES = 16

_LABELS = "pid|port|job|task|process|session|container|branch|worktree|sandbox|agent|run|pr"
_ID = re.compile(
    rf"\b(?P<label>(?:{_LABELS})(?:[_ -]?(?:id|key|name))?|[a-z]+(?:Id|_id|Key|_key))\b"
    r"[\"'*`]{0,3}\s{0,2}(?P<sign>[:=#]?)\s{0,2}[\"'`*]{0,2}(?P<id>[\w/~][\w:./@~+-]{0,119})",
    re.IGNORECASE,
)
_LOCAL = re.compile(
    r"https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\])(?::(\d{2,5}))?(?:/[^\s\"'<>)\]`,*]{0,200})?"
)
_JOB = re.compile(r"^\[\d+\] (\d{2,8})$", re.MULTILINE)
_PULL = re.compile(r"https?://\S{3,100}/(?:pull|merge_requests)/(\d{1,8})\b")
_BACKGROUND = re.compile(
    r"(?<![&>|])&\s*(?:disown|echo\b.*|sleep\b.*)?(?:\n|$)|\b(?:nohup|setsid|disown)\b|\s--?d(?:etach)?\s"
)
_PORT = re.compile(r"(?:--port[ =]|\bPORT=|http\.server |localhost:|127\.0\.0\.1:|0\.0\.0\.0:)(\d{2,5})\b")
_NEW_BRANCH = re.compile(r"\bgit (?:-C \S+ )?(?:checkout -[bB]|switch -[cC]|worktree add(?: -[bB])?) ([^\s;&|]{1,120})")
_BACKGROUND_KEYS = ("run_in_background", "background", "is_background", "isBackground", "detach", "detached")
_COMMAND_KEYS = ("command", "cmd", "script", "commandLine", "command_line")
_STARTS = frozenset(("spawn", "launch", "start", "delegate"))
_ENDS = frozenset(
    ("kill", "pkill", "stop", "close", "cancel", "terminate", "delete", "remove", "rm", "down", "merge", "abort")
)
"""Verbs of commands and tools, which are the same in every language."""
_WORD = re.compile(r"[\w.@:/~+-]+")


class Effect(NamedTuple):
    """What a call would start or end, should it succeed."""

    starts: bool
    """It runs on when the call has returned."""
    ids: list[str]
    """Known before the result."""
    ends: list[str]


def command_of(arguments: Mapping[str, Any]) -> str:
    """The command line of a call, where it has one."""
    for key in _COMMAND_KEYS:
        given = arguments.get(key)
        if isinstance(given, list):
            given = " ".join(str(one) for one in given)
        if isinstance(given, str) and given.strip():
            return given[:READ_CHARS].strip()
    return ""


def effect_of(call: Call) -> Effect:
    command = command_of(call.arguments)
    names = [text for _, text in strings_in(call.arguments) if 0 < len(text) <= LONGEST_NAME_CHARS]
    named = {part.lower() for part in CAMEL.findall(call.name[:LONGEST_NAME_CHARS])}
    verbs = named | ({name.lower() for name in names if name.isalpha()} if not command else set(_WORD.findall(command)))
    flagged = any(call.arguments.get(key) is True for key in _BACKGROUND_KEYS)
    branches = [f"branch {name}" for name in _NEW_BRANCH.findall(command)]
    is_start = flagged or bool(_BACKGROUND.search(command)) or not _STARTS.isdisjoint(named)
    ids = branches + [f"port {port}" for port in _PORT.findall(command) if is_start]
    ends = (_WORD.findall(command) if command else names) if not _ENDS.isdisjoint(verbs) else []
    return Effect(is_start or bool(branches), ids[:MAX_IDS], list(dict.fromkeys(ends))[: 2 * MAX_NAMES])


def ids_in(text: str) -> list[str]:
    """The identifiers a text names, each with what it is: "pid 4242", "http://localhost:3000"."""
    head = text[:READ_CHARS]
    found = [match[0].rstrip(".:;") for match in _LOCAL.finditer(head)]
    found += [f"pull request {number}" for number in _PULL.findall(head)]
    for match in _ID.finditer(head):
        name = match["id"].rstrip(".:,-/")
        label = match["label"].lower()
        if _is_id(name, label, is_marked=bool(match["sign"])):
            found.append(f"{'pull request' if label == 'pr' else _kind(label)} {name}")
    found += [f"pid {number}" for number in _JOB.findall(head)]
    return list(dict.fromkeys(found))[:MAX_IDS]


def bare(ids: Iterable[str]) -> set[str]:
    """The identifiers without what they are; an address also by its port."""
    found: set[str] = set()
    for one in ids:
        address = _LOCAL.match(one)
        found.add(one if address else one.rsplit(" ", 1)[-1])
        if address and address[1]:
            found.add(address[1])
    return found


def names_any(text: str, ids: Sequence[str]) -> bool:
    """Whether a text holds one of the identifiers as a whole."""
    names = [name for name in bare(ids) if name in text]
    if not names:
        return False
    words = {word.rstrip(".:,") for word in _WORD.findall(text)}
    words |= {part for word in words for part in word.split(":")}
    return any(name in words for name in names)


def _is_id(name: str, label: str, *, is_marked: bool) -> bool:
    if len(name) < 2:
        return name.isdigit() and label == "pr"
    if label in ("pid", "port", "pr"):
        return name.isdigit()
    has_digit = any(letter.isdigit() for letter in name)
    is_spelt = has_digit or any(letter in "/-_" for letter in name)
    # "job 2 of 5", "the branch they took": a name is written as no word is, and is no small number.
    return is_spelt and (is_marked or len(name) > 2)


def _kind(label: str) -> str:
    for ending in ("id", "key", "name"):
        label = label.removesuffix(ending).rstrip("_ -") if label != "pid" else label
    return label or "id"
