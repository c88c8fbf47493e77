"""The host's configuration file: where it is, and what it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from offbook.client.config_files.file import ConfigFile, backups_of
from offbook.client.config_files.json5 import parse
from offbook.model.errors import InvalidInput, NotFound, OffbookError
from offbook.openclaw.history.places import named_path, state_folder

CONFIG_VARIABLE = "OPENCLAW_CONFIG_PATH"


def config_path(environ: Mapping[str, str]) -> Path:
    """OPENCLAW_CONFIG_PATH, else openclaw.json in the state folder."""
    return named_path(environ, CONFIG_VARIABLE) or state_folder(environ) / "openclaw.json"


def read(path: Path) -> ConfigFile:
    """Raises NotFound or InvalidInput; an OSError where it cannot be opened."""
    real = path.resolve()
    try:
        text = real.read_bytes().decode()
    except FileNotFoundError:
        raise NotFound(
            f"there is no {path}: name the file with --config, or the folder it is in with --state; "
            "where OpenClaw has none yet, `openclaw onboard` writes it"
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8: {error}") from None
    try:
        config = parse(text).value
    except InvalidInput as error:
        raise InvalidInput(f"{path}, {error.detail}") from None
    if not isinstance(config, dict):
        raise InvalidInput(f"{path} holds no object")
    return ConfigFile(real, text, config)


def backups(path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """What the file said before our changes to it, the newest first."""
    for backup in backups_of(path):
        with suppress(OSError, OffbookError):
            yield backup, read(backup).config


# ── A configuration in several files, put together as the host does it. For reading only ──

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
