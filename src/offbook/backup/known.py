"""Which backups there are, as far as is known: those in the data folder, and where others were written to.

Whoever forgets something has to know where else it may still be. What was copied or moved by hand is not known here.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from offbook.backup.archive import Manifest
from offbook.backup.rotation import listed, time_of
from offbook.home import Home, make_private, write_private
from offbook.types import Value

KNOWN = "known.json"
MOST_KNOWN = 1_000
"""The newest: a backup every hour for six weeks."""


class KnownBackup(Value, frozen=True):
    path: str
    made_at: datetime
    agents: list[str]
    is_there: bool = True
    """Whether the file can be seen now: it may lie on a disk that is not attached, or be gone."""
    trouble: str | None = None
    """Why it cannot be read; whose memory it holds is not known then."""


def known_backups(home: Home) -> list[KnownBackup]:
    """Oldest first."""
    here = [
        KnownBackup(path=one.file, made_at=one.made_at, agents=one.agents, trouble=one.trouble) for one in listed(home)
    ]
    paths = {one.path for one in here}
    elsewhere = [
        msgspec.structs.replace(one, is_there=Path(one.path).is_file()) for one in _noted(home) if one.path not in paths
    ]
    return sorted([*here, *elsewhere], key=lambda one: (one.made_at, one.path))


def note_backup(home: Home, path: Path, manifest: Manifest) -> None:
    """Best effort: a backup that was made is made, whether or not this can be written."""
    if path.parent == home.backups and time_of(path.name) is not None:
        return  # it is found by its name
    # A name that is not UTF-8 cannot be said in JSON; it is named as well as can be.
    name = str(path.absolute()).encode("utf-8", "backslashreplace").decode()
    one = KnownBackup(path=name, made_at=manifest.created_at, agents=[agent.agent_id for agent in manifest.agents])
    with suppress(OSError):
        known = [each for each in _noted(home) if each.path != name] + [one]
        make_private(home.backups)
        text = msgspec.json.format(msgspec.json.encode(known[-MOST_KNOWN:])).decode()
        write_private(home.backups / KNOWN, text + "\n")


def _noted(home: Home) -> list[KnownBackup]:
    try:
        return msgspec.json.decode((home.backups / KNOWN).read_bytes(), type=list[KnownBackup])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return []
