"""What the records of others hold, read with care: any field may be missing, or be something else."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from offbook.portability.formats import Owner
from offbook.portability.openclaw.mapping import AFTER_LATEST, EARLIEST, moment
from offbook.portability.wires import bounded, milliseconds


def moment_of(value: Any) -> datetime | None:
    """ISO 8601, or a number since 1970, in UTC. None for what is no time that a provider takes."""
    value = milliseconds(value)
    if not isinstance(value, str):
        return moment(value)
    try:
        found = datetime.fromisoformat(value.strip())
        found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return found if EARLIEST <= found < AFTER_LATEST else None


def key_of(value: Any) -> str | None:
    """A session key or a message id as a provider takes it; None where there is none."""
    return bounded(value) if isinstance(value, str) and value else None


def owner_in(folder: Path, owner: Owner) -> Owner:
    """Plugins keep what is of an agent in `agents/<agentId>/<name>`: it is of that one, unless its key says another or
    somebody else was named."""
    agents, agent_id = ("", "", *folder.absolute().parts)[-3:-1]
    if agents != "agents":
        return owner
    return lambda key: owner(key if key.startswith("agent:") else f"agent:{agent_id}:")
