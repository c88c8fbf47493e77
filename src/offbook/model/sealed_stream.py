"""A file that is sealed from beginning to end: a backup or an export of an encrypted data folder.

OFFBOOK-SEALED-1\\n   what it is
keys.json            in one line: the wrapped master key, so that the passphrase opens it anywhere
salt                 32 bytes, from which and from the master key comes the key of this file
chunks               AES-256-GCM; the nonce is the chunk's number and whether it is the last, so that none can be
                     left out, moved or cut off
"""

from __future__ import annotations

import io
import secrets
from pathlib import Path
from typing import IO

import msgspec

from offbook.model.errors import InvalidInput, KeyNeeded
from offbook.model.keys import KEYS_FILE, KeyDocument, Keys, keys_from, parsed, read_keys

MAGIC = b"OFFBOOK-SEALED-1\n"
CHUNK_BYTES = 1024 * 1024
TAG_BYTES = 16
SALT_BYTES = 32
MOST_LINE_BYTES = 16 * 1024


def is_sealed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def sealed_keys(path: Path) -> KeyDocument | None:
    """The keys that a sealed file names; None where it is not sealed."""
    with path.open("rb") as file:
        return _read_document(file, path) if file.read(len(MAGIC)) == MAGIC else None


class SealedWriter(io.RawIOBase):
    """Seals what is written to it; whole when it is closed. `with` closes it only where nothing went wrong."""

    def __init__(self, target: IO[bytes], keys: Keys) -> None:
        document = read_keys(keys.folder)
        if document is None:
            raise KeyNeeded(f"{keys.folder / KEYS_FILE} is missing: put it back from a copy or from a backup")
        salt = secrets.token_bytes(SALT_BYTES)
        target.write(MAGIC + msgspec.json.encode(document) + b"\n" + salt)
        self._target = target
        self._cipher = _cipher(keys, salt)
        self._waiting = bytearray()
        self._chunks = 0

    def writable(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview) -> int:  # type: ignore[override]
        self._waiting += data
        while len(self._waiting) > CHUNK_BYTES:  # the last one is written at the end, and is never empty before it
            self._seal(bytes(self._waiting[:CHUNK_BYTES]), is_last=False)
            del self._waiting[:CHUNK_BYTES]
        return len(data)

    def finish(self) -> None:
        self._seal(bytes(self._waiting), is_last=True)
        self._waiting.clear()

    def _seal(self, chunk: bytes, *, is_last: bool) -> None:
        self._target.write(self._cipher.encrypt(_nonce(self._chunks, is_last=is_last), chunk, None))
        self._chunks += 1


class SealedReader(io.RawIOBase):
    """What was sealed. InvalidInput where it was altered or cut off, KeyNeeded where the key is not there."""

    def __init__(self, source: IO[bytes], path: Path) -> None:
        """`source` stands behind the magic."""
        document = _read_document(source, path)
        self._path = path
        self._source = source
        self._cipher = _cipher(keys_from(document, path), source.read(SALT_BYTES))
        self._next = source.read(CHUNK_BYTES + TAG_BYTES)
        self._chunks = 0
        self._left = b""
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._left and not self._is_over:
            self._left = self._opened()
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def close(self) -> None:
        super().close()
        self._source.close()

    def _opened(self) -> bytes:
        from cryptography.exceptions import InvalidTag

        chunk, self._next = self._next, self._source.read(CHUNK_BYTES + TAG_BYTES)
        self._is_over = not self._next
        try:
            data: bytes = self._cipher.decrypt(_nonce(self._chunks, is_last=self._is_over), chunk, None)
        except (InvalidTag, ValueError):
            raise InvalidInput(f"{self._path} was altered, damaged or cut off: take another copy") from None
        self._chunks += 1
        return data


def open_maybe_sealed(path: Path) -> IO[bytes]:
    """The file, opened where it is sealed."""
    file = path.open("rb")
    try:
        if file.read(len(MAGIC)) == MAGIC:
            return io.BufferedReader(SealedReader(file, path), CHUNK_BYTES)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _read_document(source: IO[bytes], path: Path) -> KeyDocument:
    return parsed(source.readline(MOST_LINE_BYTES), path / KEYS_FILE)


def _cipher(keys: Keys, salt: bytes):  # type: ignore[no-untyped-def]
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(keys.derived("stream", salt))


def _nonce(chunk: int, *, is_last: bool) -> bytes:
    return chunk.to_bytes(11) + bytes([is_last])
