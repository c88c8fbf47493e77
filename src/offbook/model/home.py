"""The data folder: what lies where, who owns it, and the tokens that open it."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import string
import sys
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from offbook.model.errors import SettingsError, StoreOwned, StoreReadOnly
from offbook.model.types import Caller

SHORTEST_TOKEN = 20
TOKEN_PREFIX = "offbook_"  # noqa: S105 - a prefix, so that redaction and scanners know our tokens
LONGEST_SOCKET_PATH = 103 if sys.platform == "darwin" else 107
"""Bytes the system allows for the path of a Unix socket."""


class BoundToken(msgspec.Struct, frozen=True, rename="camel"):
    """A token for some agents only. The token itself is shown once and never stored."""

    name: str
    digest: str
    agents: list[str]
    created_at: str


class Home:
    def __init__(self, folder: Path) -> None:
        self.folder = folder.expanduser()
        self.database = self.folder / "offbook.db"
        self.socket = self.folder / "offbook.sock"
        self.token = self.folder / "token"
        self.bound_tokens = self.folder / "tokens.json"
        self.lock = self.folder / "offbook.lock"
        self.blobs = self.folder / "blobs"
        self.outboxes = self.folder / "outbox"
        self.models = self.folder / "models"
        self.indexes = self.folder / "index"
        self.summaries = self.folder / "summaries"
        self.wiki = self.folder / "wiki"
        self.wiki_state = self.folder / "wiki-state"
        self.backups = self.folder / "backups"
        self.receipts = self.folder / "receipts"
        self.config = self.folder / "config.toml"
        self.unfinished_restore = self.folder / "restore.json"

    def prepare(self) -> None:
        """Make the folder where it is missing, for its owner only."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not os.access(self.folder, os.W_OK | os.X_OK):
                raise PermissionError(f"no permission to write in {self.folder}")
        except OSError as error:
            raise StoreReadOnly(
                f"the data folder {self.folder} cannot be made or written ({error}): "
                "mend its permissions, or set OFFBOOK_HOME to another folder"
            ) from None

    def check_socket_path(self) -> None:
        length = len(os.fsencode(self.socket))
        if length > LONGEST_SOCKET_PATH:
            raise SettingsError(
                f"the socket's path {self.socket} is {length} bytes long, the system allows {LONGEST_SOCKET_PATH}: "
                "set OFFBOOK_HOME to a shorter folder"
            )

    def owner_token(self) -> str:
        """The token of the folder's owner, made at first use, readable by the owner only."""
        try:
            token = self.token.read_text().strip()
        except FileNotFoundError:
            pass
        else:
            if len(token) < SHORTEST_TOKEN:
                raise SettingsError(
                    f"the token in {self.token} is empty or too short to keep anybody out: remove the file, "
                    "and a new one is made at the next start"
                )
            return token
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        write_private(self.token, token + "\n")
        return token

    def read_bound_tokens(self) -> list[BoundToken]:
        try:
            return msgspec.json.decode(self.bound_tokens.read_bytes(), type=list[BoundToken])
        except FileNotFoundError:
            return []
        except msgspec.DecodeError as error:
            raise SettingsError(f"{self.bound_tokens} cannot be read ({error}): mend or remove it") from None

    def write_bound_tokens(self, tokens: list[BoundToken]) -> None:
        write_private(self.bound_tokens, msgspec.json.format(msgspec.json.encode(tokens)).decode() + "\n")


class TokenBook:
    """Who each token stands for. Reads the files again when they change, so that a revocation holds at once."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._callers: dict[str, Caller] = {}
        self._seen: tuple[Any, ...] = ()

    def callers(self) -> dict[str, Caller]:
        seen = (_stamp(self._home.token), _stamp(self._home.bound_tokens))
        if seen != self._seen:
            owner = {token_digest(self._home.owner_token()): Caller(name="owner")}
            bound = {
                token.digest: Caller(name=f"token:{token.name}", agents=frozenset(token.agents))
                for token in self._home.read_bound_tokens()
            }
            self._callers, self._seen = bound | owner, seen
        return self._callers


class Lock:
    """One process owns a data folder. The lock goes with the process, however it ends."""

    def __init__(self, home: Home) -> None:
        self._descriptor = os.open(home.lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            raise StoreOwned(
                f"another Offbook (process {owner}) runs on {home.folder}: talk to it through {home.socket}, "
                f"stop it, or set OFFBOOK_HOME to another folder"
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def home_folder(environ: Mapping[str, str]) -> Path:
    """`OFFBOOK_HOME`, or `~/.offbook`."""
    try:
        return Path(environ.get("OFFBOOK_HOME") or "~/.offbook").expanduser().absolute()
    except RuntimeError as error:
        raise SettingsError("the home folder is not known; set OFFBOOK_HOME") from error


def token_digest(token: str) -> str:
    """Tokens are looked up by digest: nothing about a wrong one can be learnt from the time it takes."""
    return sha256(token.encode()).hexdigest()


def make_private(folder: Path) -> None:
    """Make a folder where it is missing, for its owner only; of one of ours that is there, keep others out."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = folder.stat()
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid == os.geteuid() and mode & 0o077:
        with suppress(OSError):  # not every file system has modes
            folder.chmod(mode & 0o700)


def write_private(path: Path, text: str, *, is_durable: bool = True) -> None:
    """Replace a file at once, readable by its owner only. What can be made again need not be durable."""
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            if is_durable:
                os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_ino


# ── Names of agents as names of files: safe on every file system, readable, and of one agent o ──

LONGEST_NAME = 120
"""Of a folder; file systems allow 255 bytes."""
KEPT_OF_A_LONG_NAME = 80
PLAIN = frozenset(string.ascii_lowercase + string.digits + "_-.")
"""Capitals are not: there are file systems that take them for small letters, and so two agents for one."""
_DEVICES = frozenset(("con", "prn", "aux", "nul", "conin$", "conout$", "clock$"))
_DEVICES |= {f"{port}{number}" for port in ("com", "lpt") for number in range(10)}
"""Windows takes these for devices, with any ending."""
_TAKEN = frozenset({"index.md"})
"""What lies beside the folders of agents."""


def encoded_name(name: str) -> str:
    """The name, percent-encoded where it is not plain; a long one is cut, and told apart by its digest."""
    plain = "".join(letter if letter in PLAIN else _encoded(letter) for letter in name)
    if plain.startswith("."):
        plain = _encoded(".") + plain[1:]
    if len(plain) <= LONGEST_NAME:
        return plain
    return f"{plain[:KEPT_OF_A_LONG_NAME]}~{sha256(name.encode()).hexdigest()[:32]}"  # no short name has a ~


def safe_name(name: str) -> str:
    """As `encoded_name`, and on Windows, too: no device, no dot at the end. Two names stay two: nothing else writes a
    small letter, or a dot at the end, as a number."""
    plain = encoded_name(name)
    if plain.partition(".")[0] in _DEVICES or plain in _TAKEN:
        plain = _encoded(plain[0]) + plain[1:]
    return plain[:-1] + _encoded(".") if plain.endswith(".") else plain


def _encoded(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode())
