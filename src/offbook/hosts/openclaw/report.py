"""What the plugin wrote of itself: `<state>/offbook/report.json`."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import msgspec

REPORT = Path("offbook", "report.json")


class _Told(msgspec.Struct, frozen=True, rename="camel"):
    """Every field has a default: a plugin that is older or newer than we are may leave it out."""


class ProviderSeen(_Told, frozen=True):
    endpoint: str | None = None
    ok: bool | None = None
    checked_at: datetime | None = None
    error: str | None = None


class Captured(_Told, frozen=True):
    messages: int = 0
    delivered: int = 0
    waiting: int = 0
    waiting_bytes: int = 0
    turned_away: int = 0
    refused: int = 0
    last_at: datetime | None = None
    last_entry_id: str | None = None
    last_session_key: str | None = None
    last_delivered_at: datetime | None = None


class LastTurn(_Told, frozen=True):
    at: datetime | None = None
    session_key: str | None = None
    recall_chars: int = 0
    memory_chars: int = 0
    took_ms: float = 0
    error: str | None = None


class Turns(_Told, frozen=True):
    prepared: int = 0
    injected: int = 0
    late: int = 0
    failed: int = 0
    last: LastTurn | None = None


class LastAssembly(_Told, frozen=True):
    at: datetime | None = None
    session_key: str | None = None
    messages_in: int = 0
    messages_out: int = 0
    generation: int | None = None
    reason: str | None = None


class Engine(_Told, frozen=True):
    assembled: int = 0
    committed: int = 0
    swaps: int = 0
    fallbacks: int = 0
    last: LastAssembly | None = None


class HostSeen(_Told, frozen=True):
    version: str | None = None


class Permissions(_Told, frozen=True):
    conversation: bool | None = None


class Trouble(_Told, frozen=True):
    at: datetime | None = None
    what: str = ""
    detail: str = ""
    times: int = 1


class Report(_Told, frozen=True):
    plugin: str | None = None
    pid: int | None = None
    started_at: datetime | None = None
    saved_at: datetime | None = None
    level: str | None = None
    host: HostSeen = HostSeen()
    provider: ProviderSeen = ProviderSeen()
    capture: Captured = Captured()
    turns: Turns = Turns()
    engine: Engine = Engine()
    permissions: Permissions = Permissions()
    agents: list[str] = []
    problems: list[Trouble] = []


def read_report(state: Path) -> Report | None:
    """None where the plugin never wrote one. Raises OSError, and ValueError for what is no report."""
    try:
        raw = (state / REPORT).read_bytes()
    except FileNotFoundError:
        return None
    return msgspec.json.decode(raw, type=Report)


def is_alive(pid: int | None) -> bool:
    """Whether that process runs, here and now."""
    if pid is None or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's, but there
        return True
    return True
