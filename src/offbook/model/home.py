"""The data folder: what lies where, who owns it, and the tokens that open it."""

from __future__ import annotations

import fcntl
import os
import secrets
import shlex
import stat
import string
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from offbook.model.errors import SettingsError, StoreOwned, StoreReadOnly
from offbook.model.keys import SEALED_INDEX, is_encrypted
from offbook.model.memory_folder import memory_folder
from offbook.model.private_files import make_folders, open_private, read_private, write_private
from offbook.model.types import Caller

SHORTEST_TOKEN = 20
TOKEN_PREFIX = "offbook_"  # noqa: S105 - a prefix, so that redaction and scanners know our tokens
SHARED_HOME = "OFFBOOK_SHARED_HOME"
"""A variable, not a setting: settings are read from the very folder, where others could write it."""
LONGEST_SOCKET_PATH = 103 if sys.platform == "darwin" else 107
"""Bytes the system allows for the path of a Unix socket."""


class BoundToken(msgspec.Struct, frozen=True, rename="camel"):
    """A token for some agents only. The token itself is shown once and never stored."""

    name: str
    digest: str
    agents: list[str]
    created_at: str


class Home:
    def __init__(self, folder: Path, *, may_be_shared: bool = False) -> None:
        """`may_be_shared`: also where others can write in the folder."""
        self.folder = folder.expanduser()
        self._may_be_shared = may_be_shared
        self.database = self.folder / "offbook.db"
        self.socket = self.folder / "offbook.sock"
        self.token = self.folder / "token"
        self.bound_tokens = self.folder / "tokens.json"
        self.lock = self.folder / "offbook.lock"
        self.node_file = self.folder / "node"
        self.blobs = self.folder / "blobs"
        self.outboxes = self.folder / "outbox"
        self.models = self.folder / "models"
        self.sealed_index = self.folder / SEALED_INDEX
        self.summaries = self.folder / "summaries"
        self.wiki = self.folder / "wiki"
        self.wiki_state = self.folder / "wiki-state"
        self.backups = self.folder / "backups"
        self.receipts = self.folder / "receipts"
        self.config = self.folder / "config.toml"
        self.unfinished_restore = self.folder / "restore.json"

    @property
    def is_encrypted(self) -> bool:
        return is_encrypted(self.folder)

    @property
    def indexes(self) -> Path:
        """The search index is no database that could be encrypted: of an encrypted folder it is kept in memory."""
        return memory_folder(self.folder) / "index" if self.is_encrypted else self.folder / "index"

    def prepare(self) -> None:
        """Make the folder where it is missing, for its owner only. One in which others can write is refused: they could
        put another log, another token or another socket in place of ours."""
        try:
            make_folders(self.folder)
            if not os.access(self.folder, os.W_OK | os.X_OK):
                raise PermissionError(f"no permission to write in {self.folder}")
        except OSError as error:
            raise StoreReadOnly(
                f"the data folder {self.folder} cannot be made or written ({error}): "
                "mend its permissions, or set OFFBOOK_HOME to another folder"
            ) from None
        mode = stat.S_IMODE(self.folder.stat().st_mode)
        if mode & 0o022 and not self._may_be_shared:
            raise SettingsError(
                f"others can write in the data folder {self.folder} (mode {mode:04o}): run "
                f"`chmod go-w {shlex.quote(str(self.folder))}`, set OFFBOOK_HOME to a folder of your own, or set "
                f"{SHARED_HOME}=1 where everybody who can write there is trusted"
            )

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
            token = read_private(self.token).decode(errors="replace").strip()
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

    def node(self) -> str:
        """What tells this folder's providers from those of other folders where they share a database."""
        try:
            return read_private(self.node_file).decode(errors="replace").strip()
        except FileNotFoundError:
            node = secrets.token_hex(8)
            write_private(self.node_file, node + "\n")
            return node

    def read_bound_tokens(self) -> list[BoundToken]:
        try:
            return msgspec.json.decode(read_private(self.bound_tokens), type=list[BoundToken])
        except FileNotFoundError:
            return []
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
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
    """One process owns a data folder. The lock goes with the process, however it ends.

    It is held on the folder, so that deleting the file that says who holds it lets nobody in, and on that file, since
    on a network file system the folder's lock holds on this machine only, or not at all.
    """

    def __init__(self, home: Home) -> None:
        self._held: list[int] = []
        try:
            self._hold(os.open(home.folder, os.O_RDONLY | os.O_DIRECTORY), is_folder=True)
            file = open_private(home.lock, os.O_RDWR | os.O_CREAT)
            self._hold(file)
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            self.release()
            raise _owned(home) from None
        except OSError as error:
            self.release()
            raise StoreReadOnly(
                f"{home.folder} cannot be locked ({error}): check its permissions, or set OFFBOOK_HOME to a folder on "
                "a local disk"
            ) from None
        except BaseException:
            self.release()
            raise

    def _hold(self, descriptor: int, *, is_folder: bool = False) -> None:
        self._held.append(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            if not is_folder:  # there are file systems that lock files only
                raise

    def release(self) -> None:
        while self._held:
            os.close(self._held.pop())


def lock_holder(home: Home) -> str | None:
    """The process that owns the data folder; None where none does."""
    for path in (home.folder, home.lock):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _noted_holder(home)
        except OSError:
            continue
        finally:
            os.close(descriptor)
    return None


def refuse_owned(home: Home) -> None:
    if lock_holder(home) is not None:
        raise _owned(home)


def _owned(home: Home) -> StoreOwned:
    return StoreOwned(
        f"another Offbook (process {_noted_holder(home)}) runs on {home.folder}: talk to it through {home.socket}, "
        "stop it, or set OFFBOOK_HOME to another folder"
    )


def _noted_holder(home: Home) -> str:
    try:
        return read_private(home.lock)[:32].decode(errors="replace").strip() or "unknown"
    except (OSError, SettingsError):
        return "unknown"


def home_folder(environ: Mapping[str, str]) -> Path:
    """`OFFBOOK_HOME`, or `~/.offbook`."""
    try:
        return Path(environ.get("OFFBOOK_HOME") or "~/.offbook").expanduser().absolute()
    except RuntimeError as error:
        raise SettingsError("the home folder is not known; set OFFBOOK_HOME") from error


def token_digest(token: str) -> str:
    """Tokens are looked up by digest: nothing about a wrong one can be learnt from the time it takes."""
    return sha256(token.encode()).hexdigest()


def home_may_be_shared(environ: Mapping[str, str]) -> bool:
    return environ.get(SHARED_HOME, "").strip().lower() in ("1", "true", "yes", "on")


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
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
