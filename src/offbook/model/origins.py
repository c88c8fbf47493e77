"""Where a request may come from and go to: loopback addresses, and the Host and Origin that a server takes.

Any web page can reach a loopback port (DNS rebinding), so both are checked there too.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from offbook.model.errors import Forbidden

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(?::[0-9]{0,5})?")
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_host(host: str | None, allowed: frozenset[str] | None) -> None:
    """`allowed` None: any name (a remote provider, where TLS and the token decide)."""
    if allowed is None:
        return
    name = _host_name(host or "")
    if name not in allowed:
        raise Forbidden(f"Host {host!r} is not this provider: use localhost, or add the name to `server.allowedHosts`")


def check_origin(origin: str | None, allowed: frozenset[str] | None, host: str | None = None) -> None:
    """A request from a web page must come from a page of ours: where any name is taken, from that of the request."""
    if origin is None:
        return
    try:
        name = (urlsplit(origin).hostname or "").lower()
    except ValueError:
        name = ""
    ours = allowed if allowed is not None else LOOPBACK_NAMES | {_host_name(host or "")} - {""}
    if name not in ours:
        raise Forbidden(f"requests from the origin {origin!r} are not taken")


def _host_name(host: str) -> str:
    """Of a Host header, which is a name or an address and perhaps a port, and nothing else."""
    found = _HOST.fullmatch(host)
    return found[1].strip("[]").lower() if found else ""
