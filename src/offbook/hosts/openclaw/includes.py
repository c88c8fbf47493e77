"""A configuration in several files, put together as the host does it. For reading only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from offbook.errors import InvalidInput, OffbookError
from offbook.hosts.openclaw.json5 import parse

_DEEPEST = 10
"""The host's own limit."""


def resolved(config: Any, folder: Path, depth: int = 0) -> Any:
    """Every `$include` replaced: files are merged in order, and what stands beside them wins. Raises InvalidInput."""
    if isinstance(config, list):
        return [resolved(item, folder, depth) for item in config]
    if not isinstance(config, dict):
        return config
    beside = {name: resolved(value, folder, depth) for name, value in config.items() if name != "$include"}
    if "$include" not in config:
        return beside
    if depth >= _DEEPEST:
        raise InvalidInput("$include is nested too deep")
    names = config["$include"] if isinstance(config["$include"], list) else [config["$include"]]
    merged: Any = {}
    for name in names:
        merged = _merged(merged, _included(folder / str(name), depth + 1))
    return _merged(merged, beside) if beside else merged


def _included(path: Path, depth: int) -> Any:
    try:
        return resolved(parse(path.read_text(encoding="utf-8")).value, path.parent, depth)
    except (OSError, UnicodeDecodeError, OffbookError) as error:
        raise InvalidInput(f"{path} is included and cannot be read: {error}") from None


def _merged(under: Any, over: Any) -> Any:
    if isinstance(under, dict) and isinstance(over, dict):
        return under | {name: _merged(under.get(name, {}), value) for name, value in over.items()}
    return over
