"""What of a configuration may be shown: secrets stand beside what we change, and a report is pasted into an issue."""

from __future__ import annotations

import re
from typing import Any

from offbook.client.config_files.json5 import Node, parse, written

MASK = "***"
_SECRET = re.compile(
    r"token|key|secret|passw|passphrase|credential|authorization|cookie|(?:^|[_-])(?:pat|pass|pwd)(?:$|[_-])",
    re.IGNORECASE,
)
_PLACE = re.compile(r"(?:File|Path|(?:^|[_-])(?:file|path|FILE|PATH))$")
"""Where a secret lies is none."""
_USER = re.compile(r"(?<=://)[^/@\s\"']+(?=@)")
_PAIR = re.compile(
    r"(?<![\w$.-])(?P<before>(?P<quote>[\"']?)(?P<name>[\w$.-]{1,80})(?P=quote)\s*[:=]\s*)"
    r"(?P<value>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[^\s,{}\[\]\"']{8,})"
)
"""A name and its value where no reader sees them: in a comment, or under a name that stands there twice."""

_GAP = r"(?:\s|(?:#|//)[^\n]*+\n|/\*(?:[^*]|\*(?!/)){0,500}+\*/)*+"
_FLAG = re.compile(
    r"(?P<quote>[\"'])(?P<name>--?[\w.-]{1,80}+)"
    rf"(?:=(?P<within>(?:\\.|(?!(?P=quote))[^\\\n])++)|(?P=quote){_GAP},{_GAP}"
    r"(?P<next>(?![\"']--)(?:\"(?:\\.|[^\"\\\n])*+\"|'(?:\\.|[^'\\\n])*+')))"
)
"""An option of a command, as an item of a list, and its value: in the same item, or the next one."""
_HEADER_FLAGS = ("-H", "--header", "--headers")


def masked(value: Any, *names: str | int, is_secret: bool = False) -> Any:
    """The value that stands under these names, with every text under the name of a secret masked."""
    for name in names:
        is_secret = _is_secret(name, is_secret)
    if isinstance(value, dict):
        return {name: masked(inner, name, is_secret=is_secret) for name, inner in value.items()}
    if isinstance(value, list):
        return [masked(inner, is_secret=is_secret) for inner in value]
    if not isinstance(value, str):
        return value
    return MASK if is_secret else _USER.sub(MASK, value)


def masked_text(text: str) -> str:
    """A file as it may be shown; its layout stays."""
    for start, end in sorted(_secrets(parse(text), is_secret=False), reverse=True):
        text = text[:start] + written(MASK) + text[end:]
    return masked_pairs(text)


def masked_pairs(text: str) -> str:
    """The same for a text in whatever notation: by what looks like a name and its value."""
    return _USER.sub(MASK, _PAIR.sub(_masked_pair, _FLAG.sub(_masked_flag, text)))


def _secrets(node: Node, *, is_secret: bool) -> list[tuple[int, int]]:
    if isinstance(node.value, str):
        return [(node.start, node.end)] if is_secret else []
    return [
        place
        for name, part in node.parts.items()
        for place in _secrets(part.node, is_secret=_is_secret(name, is_secret))
    ]


def _masked_pair(match: re.Match[str]) -> str:
    return match["before"] + written(MASK) if _is_secret(match["name"], False) else match[0]


def _masked_flag(match: re.Match[str]) -> str:
    if not _is_secret(match["name"], False) and match["name"] not in _HEADER_FLAGS:
        return match[0]
    if match["within"] is not None:
        return match[0].removesuffix(match["within"]) + MASK
    return match[0].removesuffix(match["next"]) + written(MASK)


def _is_secret(name: str | int, is_within: bool) -> bool:
    if isinstance(name, int):
        return is_within
    return not _PLACE.search(name) and (is_within or _SECRET.search(name) is not None)
