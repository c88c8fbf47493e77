"""Which session key a session id belongs to: the database knows, else the session lists of older hosts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

import msgspec

from offbook.portability.openclaw.database import Archive, Window
from offbook.portability.openclaw.places import Agent, session_lists

WITHOUT_AGENT = frozenset({"global", "unknown"})
"""Keys that the host leaves as they are."""
_INCOGNITO = re.compile(r"agent:[^:]+:(?:dashboard|subagent|internal-session-effects):incognito-[^:]+", re.IGNORECASE)


def is_incognito(session_key: str) -> bool:
    """Nobody wants these recorded: the plugin passes them over, and so does an import."""
    return _INCOGNITO.fullmatch(session_key.strip()) is not None


class Keys:
    def __init__(self, agent: Agent) -> None:
        self._agent_id = agent.agent_id
        self._keys: dict[str, str] = {}
        self._files: dict[str, str] = {}
        for path in session_lists(agent):
            try:
                content = msgspec.json.decode(path.read_bytes())
            except (OSError, ValueError, RecursionError):
                continue  # without it the sessions go under names of their own, which are told
            self._read(content)

    def learn(self, known: Iterable[Window | Archive]) -> None:
        """What the database says holds over any list."""
        self._keys |= {each.session_id: each.session_key for each in known if each.session_key}

    def session_of_file(self, name: str) -> str | None:
        """Of a file that a session list names."""
        return self._files.get(name)

    def of(self, session_id: str) -> str:
        """The host keeps no key of a session that was deleted before there was a database, and has no name for it."""
        return self._keys.get(session_id) or f"agent:{self._agent_id}:archived:{session_id}"

    def _read(self, content: Any) -> None:
        for key, entry in content.items() if isinstance(content, dict) else ():
            if not isinstance(entry, dict) or not isinstance(entry.get("sessionId"), str):
                continue
            session_key = key if key.startswith("agent:") or key in WITHOUT_AGENT else f"agent:{self._agent_id}:{key}"
            earlier = entry.get("usageFamilySessionIds")
            for session_id in [*(earlier if isinstance(earlier, list) else []), entry["sessionId"]]:
                if isinstance(session_id, str):
                    self._keys[session_id] = session_key
            if isinstance(entry.get("sessionFile"), str):
                self._files[PurePath(entry["sessionFile"].replace("\\", "/")).name] = entry["sessionId"]
