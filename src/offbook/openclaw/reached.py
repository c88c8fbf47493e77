"""Which provider the plugin asks, as its own settings in the host's configuration say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offbook.client.config_files.editing import value_at
from offbook.client.endpoint import Endpoint, default_token
from offbook.openclaw.changes import ENTRY


@dataclass(frozen=True)
class Reached:
    """Where the plugin looks for the provider, the token it shows, and the data folder: as its own settings say."""

    endpoint: Endpoint
    token: str | None
    home: Path


def usual_home() -> Path:
    return Path("~/.offbook").expanduser()


def socket_of(home: Path) -> Endpoint:
    return Endpoint(scheme="unix", path=str(home / "offbook.sock"))


def reached_by(config: dict[str, Any], environ: Mapping[str, str]) -> Reached:
    """Raises InvalidInput for an endpoint that is none."""
    given = value_at(config, (*ENTRY, "config"))
    given = given if isinstance(given, dict) else {}

    def text(name: str) -> str | None:
        value = given.get(name)
        return value.strip() if isinstance(value, str) and value.strip() else None

    home = Path(text("home") or environ.get("OFFBOOK_HOME") or "~/.offbook").expanduser()
    named = text("endpoint") or environ.get("OFFBOOK_URL")
    endpoint = Endpoint.parse(named) if named else socket_of(home)
    token_file = Path(text("tokenFile") or home / "token").expanduser()
    try:
        token: str | None = token_file.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        token = default_token(endpoint, {**environ, "OFFBOOK_HOME": str(home)})
    return Reached(endpoint, token, home)
