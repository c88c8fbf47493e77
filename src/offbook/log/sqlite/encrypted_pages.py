"""The pages of an encrypted file, one by one, without SQLite: to look through every byte of it, and to save what can be
read of a damaged one.

The format is that of the cipher `chacha20` of SQLite3 Multiple Ciphers: at the end of each page a nonce and a tag, of
the first page 24 bytes in the clear, which say how large a page is.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from offbook.log.sqlite.pages import MAGIC, USUAL_PAGE_BYTES

NONCE_BYTES = TAG_BYTES = 16
RESERVED_BYTES = NONCE_BYTES + TAG_BYTES
CLEAR_BYTES = 24
"""At the beginning of the first page: a salt in place of SQLite's own mark, then the size of a page."""
WAL_HEADER_BYTES = 32
PAGE_SIZES = frozenset(2**power for power in range(9, 17))
FRAME_HEADER_BYTES = 24


def decrypted_page(key: bytes, number: int, page: bytes) -> bytes | None:
    """None where it is not what was written."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
    from cryptography.hazmat.primitives.poly1305 import Poly1305

    end = len(page) - RESERVED_BYTES
    nonce, tag = page[end : end + NONCE_BYTES], page[end + NONCE_BYTES :]
    counter = int.from_bytes(nonce[12:], "little") ^ number

    def cipher(with_key: bytes, count: int) -> Cipher[None]:
        return Cipher(ChaCha20(with_key, struct.pack("<I", count & 0xFFFFFFFF) + nonce[:12]), mode=None)

    once = cipher(key, counter).encryptor().update(bytes(64))
    try:
        Poly1305.verify_tag(once[:32], page[: end + NONCE_BYTES], tag)
    except InvalidSignature:
        return None
    clear = CLEAR_BYTES if number == 1 else 0
    text = cipher(once[32:], counter + 1).decryptor().update(page[clear:end])
    head = MAGIC + page[len(MAGIC) : clear] if clear else b""
    return head + text + bytes(RESERVED_BYTES)


def page_bytes(descriptor: int, key: bytes) -> int:
    """As the first page says where that can be opened; else as all of ours are."""
    said = int.from_bytes(os.pread(descriptor, 2, 16))
    size = 65_536 if said == 1 else said
    if size in PAGE_SIZES and decrypted_page(key, 1, os.pread(descriptor, size, 0)) is not None:
        return size
    return USUAL_PAGE_BYTES


def pages_of_file(descriptor: int, key: bytes) -> Iterator[bytes | None]:
    """Every page in its order; None for each that cannot be opened."""
    size, number = page_bytes(descriptor, key), 0
    while page := os.pread(descriptor, size, number * size):
        number += 1
        yield decrypted_page(key, number, page) if len(page) == size else None


def pages_of_log(descriptor: int, key: bytes) -> Iterator[bytes | None]:
    """Those in a write-ahead log, also such as are no longer in use."""
    said, at = int.from_bytes(os.pread(descriptor, 4, 8)), WAL_HEADER_BYTES
    size = said if said in PAGE_SIZES else USUAL_PAGE_BYTES
    while frame := os.pread(descriptor, FRAME_HEADER_BYTES + size, at):
        at += len(frame)
        if len(frame) == FRAME_HEADER_BYTES + size:
            yield decrypted_page(key, int.from_bytes(frame[:4]), frame[FRAME_HEADER_BYTES:])
