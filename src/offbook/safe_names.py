"""Names of agents as names of files: safe on every file system, readable, and of one agent only. Pure functions."""

from __future__ import annotations

import re
import string
from hashlib import sha256

LONGEST_NAME = 120
"""Of a folder; file systems allow 255 bytes."""
KEPT_OF_A_LONG_NAME = 80
PLAIN = frozenset(string.ascii_lowercase + string.digits + "_-.")
"""Capitals are not: there are file systems that take them for small letters, and so two agents for one."""
_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|clock\$|com\d|lpt\d)(?:\..*)?")
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
    if _DEVICE.fullmatch(plain) or plain in _TAKEN:
        plain = _encoded(plain[0]) + plain[1:]
    return plain[:-1] + _encoded(".") if plain.endswith(".") else plain


def _encoded(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode())
