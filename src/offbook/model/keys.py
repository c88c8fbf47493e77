"""The keys of an encrypted data folder: a master key, wrapped by a passphrase or a key file, and one for each agent.

A folder with a `keys.json` is encrypted: the database in it and its large parts are read and written with these keys,
also where it is a copy that was unpacked from a backup. An agent's key lies wrapped in `keys/`; destroying it leaves
whatever it sealed unreadable, in every copy that was made without it.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
import unicodedata
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from hmac import HMAC
from pathlib import Path
from typing import NamedTuple

import msgspec

from offbook.model.errors import InvalidInput, KeyNeeded, SettingsError
from offbook.model.private_files import make_folders, read_private, sync_folder, write_private
from offbook.model.types import Value

KEYS_FILE = "keys.json"
KEYS_FOLDER = "keys"
SEALED_INDEX = "index.sealed"
AGENT_KEYS = f"{KEYS_FOLDER}/{32 * '[0-9a-f]'}.key"
PASSPHRASE = "OFFBOOK_PASSPHRASE"  # noqa: S105 - the name of a variable
PASSPHRASE_FILE = "OFFBOOK_PASSPHRASE_FILE"  # noqa: S105
NEW_PASSPHRASE = "OFFBOOK_NEW_PASSPHRASE"  # noqa: S105
KEY_FILE = "OFFBOOK_KEY_FILE"
SECRET_VARIABLES = frozenset({PASSPHRASE, PASSPHRASE_FILE, NEW_PASSPHRASE, KEY_FILE})
WORKED_IN = (".restore-", "before-", "damaged-")
"""How the names of folders in a data folder begin that hold a copy of its database. No other folder above a file
counts: it may be anybody's."""
FORMAT = 1
KEY_BYTES = 32
NONCE_BYTES = 12
SHORTEST_PASSPHRASE = 12
SCRYPT_N = 2**17
"""With r = 8 that takes 128 MB and half a second: what OWASP asks of scrypt."""
SHRED_BYTES = 1024 * 1024
MOST_SCRYPT_BYTES = 2**30
"""A file may come from elsewhere: none of ours asks for more."""


class Scrypt(Value, frozen=True):
    salt: str
    n: int
    r: int = 8
    p: int = 1


class KeyDocument(Value, frozen=True):
    """What `keys.json` says. Without the secret it opens nothing."""

    id: str
    """Of the master key: two folders with the same have the same key."""
    wrapped: str
    scrypt: Scrypt | None = None
    key_file: str | None = None
    """Where the key file was when it was last used; `OFFBOOK_KEY_FILE` says where it is now."""
    format: int = FORMAT


class Secret(NamedTuple):
    """What wraps the master key."""

    data: bytes
    key_file: Path | None = None


class Keys:
    """Those of one folder, open."""

    def __init__(self, folder: Path, master: bytes) -> None:
        self.folder = folder
        self._master = master

    @property
    def id(self) -> str:
        return self.derived("id")[:16].hex()

    def derived(self, what: str, salt: bytes | None = None) -> bytes:
        """A key of its own for each use."""
        return _hkdf(self._master, what, salt)

    @property
    def database_key(self) -> bytes:
        return self.derived("database")

    def room(self, agent_id: str) -> str:
        """The agent's name as the name of a folder, which tells nobody who it is."""
        return HMAC(self.derived("rooms"), agent_id.encode(), sha256).hexdigest()[:32]

    def agent_key(self, agent_id: str) -> bytes | None:
        """None where it has none: nothing of it was sealed yet, or its key was destroyed."""
        room = self.room(agent_id)
        try:
            wrapped = b64decode(read_private(self._agent_file(room)))
        except FileNotFoundError:
            return None
        except ValueError:
            wrapped = b""
        return unseal(self.derived("agents"), wrapped, room.encode())

    def make_agent_key(self, agent_id: str) -> bytes:
        """The agent's, made and on the disk where it has none."""
        key = self.agent_key(agent_id)
        if key is None:
            room, key = self.room(agent_id), secrets.token_bytes(KEY_BYTES)
            is_new = not (self.folder / KEYS_FOLDER).is_dir()
            make_folders(self.folder / KEYS_FOLDER)
            wrapped = b64encode(seal(self.derived("agents"), key, room.encode())).decode()
            write_private(self._agent_file(room), wrapped + "\n")
            if is_new:
                sync_folder(self.folder)
        return key

    def destroy_agent_key(self, agent_id: str) -> bool:
        """Overwritten first: what is only unlinked stays on the disk. False where there was none."""
        path = self._agent_file(self.room(agent_id))
        if not path.exists():
            return False
        shred(path)
        sync_folder(path.parent)
        return True

    def _agent_file(self, room: str) -> Path:
        return self.folder / KEYS_FOLDER / f"{room}.key"


# ── whose keys, and how they are opened ──

_masters: dict[str, bytes] = {}
"""Those that were opened in this process, by id."""


def keys_of(folder: Path, environ: Mapping[str, str] = os.environ) -> Keys | None:
    """Of the folder itself; None where it is not encrypted. KeyNeeded where the secret is missing or wrong."""
    document = read_keys(folder)
    if document is None:
        refuse_lost_keys(folder)
        return None
    return keys_from(document, folder, environ)


def refuse_lost_keys(folder: Path) -> None:
    """A folder without keys is a plain one, unless something in it was sealed by them."""
    if not is_encrypted(folder) and (any(folder.glob(AGENT_KEYS)) or (folder / SEALED_INDEX).exists()):
        raise KeyNeeded(
            f"{folder / KEYS_FILE} is missing, and {folder} is encrypted: put it back from a copy; it is in the header "
            "of any backup, so that `offbook restore FILE --home FOLDER` writes it, too"
        )


def keys_from(document: KeyDocument, folder: Path, environ: Mapping[str, str] = os.environ) -> Keys:
    """`folder`: what they open, or the file that they came with."""
    master = _masters.get(document.id)
    if master is None:
        master = _unwrapped(folder, document, _given_secret(folder, document, environ))
        _masters[document.id] = master
    return Keys(folder, master)


def keys_for(path: Path) -> Keys | None:
    """Of the folder that holds the file, or of the data folder that holds this one."""
    folder = path.parent
    if not is_encrypted(folder) and folder.name.startswith(WORKED_IN):
        folder = folder.parent
    return keys_of(folder)


def opened_keys() -> list[Keys]:
    """Every one that this process opened: a copy of a database does not say which it needs."""
    return [Keys(Path(), master) for master in _masters.values()]


def is_encrypted(folder: Path) -> bool:
    """A folder that cannot be looked into is told of by whoever opens what is in it."""
    try:
        (folder / KEYS_FILE).lstat()
    except OSError:
        return False
    return True


def read_keys(folder: Path) -> KeyDocument | None:
    path = folder / KEYS_FILE
    try:
        return parsed(read_private(path), path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def parsed(document: bytes, path: Path) -> KeyDocument:
    try:
        read = msgspec.json.decode(document, type=KeyDocument)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise KeyNeeded(f"{path} cannot be read ({error}): put it back from a copy or from a backup") from None
    if read.format > FORMAT:
        raise KeyNeeded(f"{path} was written by a newer Offbook: upgrade Offbook")
    return read


def new_keys(folder: Path, secret: Secret) -> Keys:
    """Encrypts the folder, which is empty or just being made."""
    keys = Keys(folder, secrets.token_bytes(KEY_BYTES))
    write_keys(folder, keys, secret)
    _masters[keys.id] = keys._master
    return keys


def write_keys(folder: Path, keys: Keys, secret: Secret) -> None:
    """Wrap the master key; whoever had another secret before cannot open it with that any more."""
    scrypt = None if secret.key_file is not None else Scrypt(salt=secrets.token_hex(16), n=SCRYPT_N)
    wrapped = seal(_wrapping_key(secret, scrypt), keys._master, keys.id.encode())
    document = KeyDocument(
        id=keys.id,
        wrapped=b64encode(wrapped).decode(),
        scrypt=scrypt,
        key_file=str(secret.key_file.absolute()) if secret.key_file is not None else None,
    )
    write_private(folder / KEYS_FILE, msgspec.json.format(msgspec.json.encode(document)).decode() + "\n")


def _unwrapped(folder: Path, document: KeyDocument, secret: Secret) -> bytes:
    kind = "passphrase" if secret.key_file is None else f"key file {secret.key_file}"
    wrong = KeyNeeded(
        f"the {kind} does not open {folder}: give the one that it was encrypted with; nothing was changed"
    )
    try:
        wrapped = b64decode(document.wrapped, validate=True)
    except ValueError:
        raise KeyNeeded(f"{folder / KEYS_FILE} is damaged: put it back from a copy or from a backup") from None
    master = unseal(_wrapping_key(secret, document.scrypt), wrapped, document.id.encode(), wrong)
    if Keys(folder, master).id != document.id:
        raise wrong
    return master


def _wrapping_key(secret: Secret, scrypt: Scrypt | None) -> bytes:
    if scrypt is None:
        return _hkdf(secret.data, "key file", None)
    if min(scrypt.n, scrypt.r, scrypt.p) < 1 or 128 * scrypt.n * scrypt.r * scrypt.p > MOST_SCRYPT_BYTES:
        raise KeyNeeded(f"{KEYS_FILE} asks for more memory than any of ours does: put it back from a copy")
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt as Derivation

    try:
        salt = bytes.fromhex(scrypt.salt)
        derivation = Derivation(salt=salt, length=KEY_BYTES, n=scrypt.n, r=scrypt.r, p=scrypt.p)
    except ValueError as error:
        raise KeyNeeded(f"{KEYS_FILE} is damaged ({error}): put it back from a copy or from a backup") from None
    return derivation.derive(secret.data)


# ── the secret: from the environment, a file or a terminal ──


def _given_secret(folder: Path, document: KeyDocument, environ: Mapping[str, str]) -> Secret:
    if document.scrypt is None:
        path = environ.get(KEY_FILE) or document.key_file
        if not path:
            raise KeyNeeded(f"{folder} is encrypted with a key file: name it in {KEY_FILE}")
        return key_file_secret(Path(path), folder)
    passphrase = given_passphrase(environ, folder) or asked_passphrase(f"Passphrase of {folder}: ")
    if passphrase is None:
        raise KeyNeeded(f"{folder} is encrypted: give its passphrase in {PASSPHRASE}, or a file in {PASSPHRASE_FILE}")
    return passphrase_secret(passphrase)


def given_passphrase(environ: Mapping[str, str], folder: Path) -> str | None:
    """`folder`: what it opens, in which its file must not lie."""
    if passphrase := environ.get(PASSPHRASE):
        return passphrase
    if path := environ.get(PASSPHRASE_FILE):
        _refuse_inside(Path(path).expanduser(), folder)
        return _read_secret(Path(path).expanduser()).decode(errors="surrogateescape").rstrip("\r\n")
    return None


def asked_passphrase(prompt: str) -> str | None:
    """On a terminal; None where there is none."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    from getpass import getpass

    return getpass(prompt, sys.stderr)


def passphrase_secret(passphrase: str) -> Secret:
    return Secret(unicodedata.normalize("NFC", passphrase).encode(errors="surrogateescape"))


def new_passphrase_secret(passphrase: str) -> Secret:
    if len(passphrase) < SHORTEST_PASSPHRASE:
        raise InvalidInput(f"the passphrase has fewer than {SHORTEST_PASSPHRASE} characters: take a longer one")
    return passphrase_secret(passphrase)


def key_file_secret(path: Path, folder: Path, *, may_make: bool = False) -> Secret:
    path = path.expanduser().absolute()
    _refuse_inside(path, folder)
    if may_make and not path.exists():
        make_folders(path.parent)
        write_private(path, secrets.token_hex(KEY_BYTES) + "\n")
    data = _read_secret(path).strip()
    if len(data) < KEY_BYTES:
        raise KeyNeeded(f"the key file {path} has {len(data)} bytes: a key has at least {KEY_BYTES}")
    return Secret(data, path)


def _refuse_inside(path: Path, folder: Path) -> None:
    """Whoever takes the folder would have both. A link in it leads elsewhere, and one from elsewhere into it."""
    if path.resolve().is_relative_to(folder.resolve()):
        raise InvalidInput(f"the secret in {path} lies in the folder that it opens: keep it elsewhere")


def _read_secret(path: Path) -> bytes:
    try:
        # Nobody waits at a pipe; what was looked at is what is read.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise KeyNeeded(f"{path} is no file: it holds the secret that is needed")
            if status.st_mode & 0o077:
                mode = stat.S_IMODE(status.st_mode)
                raise KeyNeeded(f"others can read {path} (mode {mode:04o}): run `chmod 600 {path}`")
            return file.read()
    except OSError as error:
        raise KeyNeeded(f"{path} cannot be read ({error.strerror}): it holds the secret that is needed") from None


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that need not open the folder."""
    return {name: value for name, value in environ.items() if name not in SECRET_VARIABLES}


# ── sealing ──


def seal(key: bytes, data: bytes, associated: bytes) -> bytes:
    """AES-256-GCM, with its nonce before it."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, data, associated)


def unseal(key: bytes, data: bytes, associated: bytes, wrong: Exception | None = None) -> bytes:
    """Raises `wrong` where it was not sealed by this key and as this."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], associated)
    except (InvalidTag, ValueError):
        raise wrong or KeyNeeded("a key was damaged, or is of another folder: put it back from a backup") from None


def _hkdf(key: bytes, what: str, salt: bytes | None) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=salt, info=f"offbook {what}".encode()).derive(key)


def shred(path: Path) -> bool:
    """Overwrite and unlink; False where it was only unlinked. A file with another name is also somebody's snapshot, and
    is not overwritten. A disk that writes elsewhere, or a copy-on-write file system, keeps the old bytes."""
    is_overwritten = False
    with suppress(OSError):  # what cannot be written can be unlinked all the same
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            status = os.fstat(descriptor)
            left = status.st_size if status.st_nlink == 1 else 0
            while left > 0:
                left -= file.write(secrets.token_bytes(min(left, SHRED_BYTES))) or 0
            os.fsync(descriptor)
            is_overwritten = status.st_nlink == 1
    path.unlink(missing_ok=True)
    return is_overwritten


def need_cipher() -> None:
    """SettingsError where the SQLite that is installed cannot encrypt."""
    import apsw

    if not hasattr(apsw, "mc_version"):
        raise SettingsError(
            "the SQLite that is installed cannot encrypt, since `apsw` took the place of `apsw-sqlite3mc`: run "
            "`pip uninstall -y apsw`, then `pip install --force-reinstall --no-deps apsw-sqlite3mc`"
        )
