"""Who may come in: tokens, and the Host and Origin of a request. Pure decisions over headers.

Over the Unix socket the file's mode (0600) is the authentication, so a token is optional there; one that
is sent is checked all the same, so that a token bound to some agents binds there too. Over TCP every
request needs one, on loopback as well: any web page can reach a loopback port (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from offbook.model.errors import Forbidden, Unauthorized
from offbook.model.home import token_digest
from offbook.model.types import Caller

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
LOCAL_OWNER = Caller(name="local")
"""Whoever can open the socket file: the owner of the data folder."""


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def identify(authorization: str | None, callers: Callable[[], Mapping[str, Caller]], *, is_socket: bool) -> Caller:
    """The caller a request comes from. `callers` gives the callers known now, by token digest."""
    if authorization is None:
        if is_socket:
            return LOCAL_OWNER
        raise Unauthorized("send `Authorization: Bearer <token>`; the token is in the file `token` of the data folder")
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    caller = callers().get(token_digest(token)) if token and scheme.lower() == "bearer" else None
    if caller is None:
        raise Unauthorized("this token is not known: read it again from the file `token` of the data folder")
    return caller


def check_host(host: str | None, allowed: frozenset[str] | None) -> None:
    """`allowed` None: any name (a remote provider, where TLS and the token decide)."""
    if allowed is None:
        return
    name = _host_name(host or "")
    if name not in allowed:
        raise Forbidden(f"Host {host!r} is not this provider: use localhost, or add the name to `server.allowedHosts`")


def check_origin(origin: str | None, allowed: frozenset[str] | None) -> None:
    """A request from a web page must come from a page of ours."""
    if origin is None:
        return
    try:
        name = (urlsplit(origin).hostname or "").lower()
    except ValueError:
        name = ""
    if name not in (allowed if allowed is not None else LOOPBACK_NAMES):
        raise Forbidden(f"requests from the origin {origin!r} are not taken")


def check_agent(caller: Caller, agent_id: str) -> None:
    if not caller.may_act_for(agent_id):
        raise Forbidden(f"this token is not for the agent {agent_id!r}: use one that is (`offbook token create`)")


def _host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
