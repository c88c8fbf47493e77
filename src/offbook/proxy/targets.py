"""What of the API's host a request may reach: what lies beneath the path of its base URL. Pure."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

TIMES_UNQUOTED = 2
"""Servers in a row that may each take the quotes off."""
NOWHERE = frozenset({b".", b".."})


def path_of(target: bytes) -> bytes:
    """Of a target that names the host too, only the path: the host is ours to choose."""
    if target.startswith(b"/"):
        return target
    _, separator, rest = target.partition(b"://")
    return b"/" + rest.partition(b"/")[2] if separator else b"/"


def is_beneath(target: bytes, base: bytes) -> bool:
    """Other doors of the same host (its administration, its native API) are not what the proxy was opened for."""
    path = path_of(target).partition(b"?")[0]
    if not base:
        return True
    if path != base and not path.startswith(base + b"/"):
        return False
    for _ in range(TIMES_UNQUOTED):
        path = unquote_to_bytes(path)
    # `..` as any server might understand it: quoted, with parameters, with the other slash.
    steps = path.replace(b"\\", b"/").split(b"/")
    return not any(step.partition(b";")[0] in NOWHERE for step in steps)
