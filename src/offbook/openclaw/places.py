"""Where OpenClaw keeps transcripts, and what the names of its files say.

Under `<state>/agents/<agentId>/`:

    agent/openclaw-agent.sqlite                    since 2026.7.2
    sessions/<sessionId>.jsonl                     before; also `<sessionId>-topic-<thread>.jsonl`
    sessions/sessions.json, sessions.json.bak.N    before: session key -> {sessionId, sessionFile, …}
    sessions/<sessionId>.jsonl.{reset,deleted,bak}.<time>[.<generation>][.zst]
    sessions/cold/<sha256>.jsonl.zst               inactive transcripts, moved out of the database
    session-sqlite-import-archive/<key>.<file>.imported-<ms>   originals of what was moved into the database
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import msgspec

from offbook.model.errors import NotFound
from offbook.model.plain_names import is_digits, is_hex
from offbook.openclaw.transcripts import Archive, Window

STATE_VARIABLE = "OPENCLAW_STATE_DIR"
HOME_VARIABLE = "OPENCLAW_HOME"
_UNSET = ("", "undefined", "null")
"""What the host takes for no value at all in its variables."""
DATABASE = Path("agent", "openclaw-agent.sqlite")

_TIME = r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}(?:\.\d{3})?Z(?:\.[0-9a-f]{32})?"
_ARCHIVED = re.compile(rf"(?P<session>.+)\.jsonl\.(?:reset|deleted|bak)\.{_TIME}(?:\.zst)?")
_LISTS = "sessions.json"


class Agent(NamedTuple):
    agent_id: str
    folder: Path

    @property
    def database(self) -> Path:
        return self.folder / DATABASE


class File(NamedTuple):
    """A transcript in a file of its own. `session` is what its name says, where it says so."""

    path: Path
    session: str | None
    is_cold: bool = False


def named_path(environ: Mapping[str, str], name: str) -> Path | None:
    """What a variable of the host names, as the host reads it."""
    value = environ.get(name, "").strip()
    return None if value in _UNSET else Path(value).expanduser().absolute()


def state_folder(environ: Mapping[str, str]) -> Path:
    """Where the host keeps sessions: OPENCLAW_STATE_DIR, else `.openclaw` in its home, which OPENCLAW_HOME may move."""
    home = named_path(environ, HOME_VARIABLE) or Path.home()
    return named_path(environ, STATE_VARIABLE) or home / ".openclaw"


def folder_with_agents(given: str | None, environ: Mapping[str, str]) -> Path:
    """The state folder to read from, with `agents` in it. Raises NotFound and says where it looked."""
    folder = Path(given).expanduser() if given else state_folder(environ)
    if (folder / "agents").is_dir():
        return folder
    variables = [name for name in (STATE_VARIABLE, HOME_VARIABLE) if named_path(environ, name) is not None]
    source = "--state" if given else (variables or ["the default"])[0]
    problem = "has no folder `agents`" if folder.is_dir() else "is not there"
    raise NotFound(
        f"no OpenClaw state here: {folder} ({source}) {problem}. "
        f"Name the folder with --state DIR or {STATE_VARIABLE}{_others(folder)}"
    )


def _others(tried: Path) -> str:
    """Profiles have folders of their own, and so had the host under its earlier name."""
    candidates = sorted([*Path.home().glob(".openclaw*"), Path.home() / ".clawdbot"])
    found = [str(each) for each in candidates if each != tried and (each / "agents").is_dir()]
    return f"; there is {', '.join(found)}" if found else "; `openclaw status` shows where it lives"


def agents(state: Path) -> list[Agent]:
    folders = sorted(each for each in (state / "agents").iterdir() if each.is_dir())
    return [Agent(folder.name, folder) for folder in folders]


def transcript_files(agent: Agent) -> Iterator[File]:
    for path in _files(agent.folder / "sessions"):
        archived = _ARCHIVED.fullmatch(path.name)
        session = archived["session"] if archived else path.stem if path.suffix == ".jsonl" else ""
        if session and not _is_copy(session):
            yield File(path, session)
    for path in _files(agent.folder / "sessions" / "cold"):
        if path.name.endswith(".jsonl.zst") and is_hex(path.name.removesuffix(".jsonl.zst"), 64):
            yield File(path, None, is_cold=True)
    for path in _files(agent.folder / "session-sqlite-import-archive"):
        original = _migrated(path.name)
        if original.endswith(".jsonl") and not _is_copy(original.removesuffix(".jsonl")):
            yield File(path, None)


def session_lists(agent: Agent) -> list[Path]:
    """The newest last: what it says holds."""
    folders = (agent.folder / "session-sqlite-import-archive", agent.folder / "sessions")
    lists = [path for folder in folders for path in _files(folder) if _is_session_list(path.name)]
    return sorted(lists, key=lambda path: (path.name == "sessions.json", path.stat().st_mtime))


def _is_copy(session: str) -> bool:
    """A copy made before a compaction, or a record of runs: what is said in them is in the transcript itself."""
    name = session.lower()
    _, is_checkpoint, id_ = name.rpartition(".checkpoint.")
    return name.endswith(".trajectory") or (bool(is_checkpoint) and len(id_) == 36)


def _migrated(name: str) -> str:
    """What a file was called that was moved into the database; "" where it was not."""
    original, _, moved_at = name.rpartition(".imported-")
    return original if is_digits(moved_at.replace(".", "", 1), most=40) else ""


def _is_session_list(name: str) -> bool:
    backup = name.removeprefix(f"{_LISTS}.bak.")
    return name == _LISTS or (backup != name and is_digits(backup)) or _migrated(name).endswith(_LISTS)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []


# ── Which session key a session id belongs to: the database knows, else the older session lists ──

WITHOUT_AGENT = frozenset({"global", "unknown"})
"""Keys that the host leaves as they are."""


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
